package main

import (
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/script"
	"github.com/musterdl/muster/model/unit"
)

// hostScripts lets the strategies built from now on ask scripts, until end is called.
func hostScripts(h *script.Host) (end func()) {
	catalogue.Scripts = func(command []string, limit unit.Duration) catalogue.Exchange {
		return h.Process(command, time.Duration(limit)*time.Microsecond)
	}
	return func() {
		catalogue.Scripts = nil
		h.Close()
	}
}

// givenUpAfter is how often in a row a script may fail in a simulation.
const givenUpAfter = 5

// simulatedScripts lets simulations ask scripts, and ends those with the program however
// it is ended.
func simulatedScripts(logTo io.Writer) (end func()) {
	h := &script.Host{Log: slog.New(slog.NewTextHandler(logTo, nil)), GiveUp: givenUpAfter}
	end = hostScripts(h)
	of, once := catalogue.Scripts, sync.Once{}
	catalogue.Scripts = func(command []string, limit unit.Duration) catalogue.Exchange {
		once.Do(func() {
			told := make(chan os.Signal, 1)
			signal.Notify(told, syscall.SIGINT, syscall.SIGTERM)
			go func() {
				<-told
				h.Close()
				os.Exit(130)
			}()
		})
		return of(command, limit)
	}
	return end
}

// liveScripts lets the control plane ask the scripts that it was started with, and no
// others: a strategy may come over the wire.
func (f *upFlags) liveScripts(log *slog.Logger, strategy catalogue.Composition) (end func(), err error) {
	allowed := [][]string{strategy.Command()}
	for _, ref := range f.shadows {
		c, err := catalogue.Resolve(ref)
		if err != nil {
			return nil, err
		}
		allowed = append(allowed, c.Command())
	}
	for _, path := range f.scripts {
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		allowed = append(allowed, catalogue.ScriptCommand(path))
	}
	may := func(command []string) bool {
		return slices.ContainsFunc(allowed, func(a []string) bool { return slices.Equal(a, command) })
	}
	return hostScripts(&script.Host{Log: log, Allowed: may, BackOff: time.Second}), nil
}
