package supervise

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local/cgroup"
)

// lawful is the law a worker is under, and what it has seen and set.
type lawful struct {
	law   control.Law
	state control.State
	set   unit.Milli
	at    time.Time
	cpu   unit.Duration // of the worker at the last step
	ticks [2]int64      // of the machine at the last step: idle, all
	host  hostMeter
	idle  bool // the worker is in the idle class
}

// stepLaw lets the worker's law see the last interval and sets what it decides.
func (s *supervisor) stepLaw() {
	if s.spec.Law == "" || s.spec.Limits.CPU == 0 {
		return
	}
	l := &s.law
	if l.law.Step == nil {
		l.law, _ = control.Find(s.spec.Law) // the engine has checked the name
	}
	idle, all := machineTicks()
	o := control.Observation{Idle: unit.Whole}
	var news bool
	if o.Rate, o.Solo, news = l.host.measure(s.spec.Host, time.Now()); !news && !l.at.IsZero() {
		return // a law that answers twice to the same news answers too much
	}
	if d := all - l.ticks[1]; l.ticks[1] > 0 && d > 0 {
		o.Idle = unit.Milli((idle - l.ticks[0]) * 1000 / d)
	}
	now := time.Now()
	if span := now.Sub(l.at).Microseconds(); !l.at.IsZero() && span > 0 {
		o.Used = unit.Milli(int64(s.sampler.usage.CPU-l.cpu) * 1000 / span)
	}
	l.at, l.cpu, l.ticks = now, s.sampler.usage.CPU, [2]int64{idle, all}
	if l.law.Step == nil {
		return
	}
	var a control.Actuator
	a, l.state = l.law.Step(control.Range{Floor: max(1, s.spec.Limits.CPU/10), Ceiling: s.spec.Limits.CPU}, o, l.state)
	if a.Yield && !l.idle {
		l.idle = true
		if err := s.yield(); err != nil {
			s.say(fmt.Errorf("law %s: %w", s.spec.Law, err))
		}
	}
	if a.CPU == l.set {
		return
	}
	if err := s.group.SetLimits(cgroup.Limits{CPU: a.CPU}); err != nil {
		s.say(fmt.Errorf("law %s: %w", s.spec.Law, err))
		return
	}
	l.set = a.CPU
}

// yield has the worker run only where nobody else wants the processor: all of its
// group, or else each of its threads, whose children inherit it.
func (s *supervisor) yield() error {
	err := s.group.SetIdle()
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	for _, p := range descendants(os.Getpid()) {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
		if err != nil {
			continue // it has ended
		}
		for _, t := range threads {
			if tid, err := strconv.Atoi(t.Name()); err == nil {
				_ = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0) // likewise
			}
		}
	}
	return nil
}

// machineTicks is how long all processors together were idle, and in all, in clock
// ticks since the machine started; zeros where the kernel does not say.
func machineTicks() (idle, all int64) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	for i, word := range strings.Fields(line) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			continue // the name of the line
		}
		all += n
		if i == 4 || i == 5 { // idle, and waiting for storage
			idle += n
		}
	}
	return idle, all
}
