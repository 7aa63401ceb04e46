package trainer

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/musterdl/muster/run/trainer/progress"
)

// requests collects what signals and the control file ask of this worker.
type requests struct {
	save    atomic.Bool
	batch   int    // asked for since the last step; 0 is none
	plan    string // the file of a plan that was asked for and not considered yet; empty is none
	control *progress.Control
	// stopping ends when the worker is asked to stop: it cuts waits short.
	stopping context.Context
	stop     context.CancelFunc
}

func newRequests(control *progress.Control) *requests {
	r := &requests{control: control}
	r.stopping, r.stop = context.WithCancel(context.Background())
	return r
}

// listen obeys SIGTERM and SIGUSR1 until the returned function is called.
func (r *requests) listen() (end func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGUSR1 {
					r.save.Store(true)
				} else {
					r.stop()
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		r.stop()
	}
}

// poll returns what has been asked since the last call; once asked, stop stays.
func (r *requests) poll() (save, stop bool, err error) {
	commands, err := r.control.Poll()
	for _, c := range commands {
		switch c.Verb {
		case progress.Save:
			r.save.Store(true)
		case progress.Stop, progress.Resize: // the next attempt has the new size
			r.stop()
		case progress.Batch:
			r.batch = c.Batch
		case progress.Plan:
			r.plan = c.Path
		}
	}
	if err != nil {
		return false, false, fmt.Errorf("read requests: %w", err)
	}
	return r.save.Swap(false), r.stopping.Err() != nil, nil
}
