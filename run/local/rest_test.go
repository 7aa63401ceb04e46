package local_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
)

// drive is a driver that is ordered about by hand.
type drive struct {
	t      *testing.T
	driver *local.Driver
	events chan engine.Event
}

func newDrive(t *testing.T, state string, live ...run.Order) *drive {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &drive{t: t, events: make(chan engine.Event, 1000)}
	d.driver = local.New(local.Config{State: state, Exe: exe, AllowRoot: true, Grace: unit.Second, Log: slog.New(slog.DiscardHandler)})
	d.driver.Recover(live, func(e engine.Event) { d.events <- e })
	return d
}

// want waits for an event of a kind, past observations.
func (d *drive) want(kind engine.Kind) engine.Event {
	d.t.Helper()
	for deadline := time.After(20 * time.Second); ; {
		select {
		case e := <-d.events:
			if e.Kind == kind {
				return e
			}
			if e.Kind != engine.Observed {
				d.t.Fatalf("the driver reports %s, expected %s", e.Kind, kind)
			}
		case <-deadline:
			d.t.Fatalf("the driver does not report %s", kind)
		}
	}
}

// TestRest: a gang is put to rest and woken, by one control plane and by the next,
// which also finishes what the one before had only begun.
func TestRest(t *testing.T) {
	state := stateDir(t)
	ticks := filepath.Join(state, "ticks")
	order := run.Order{Verb: plan.Start, Name: "restless", Attempt: 1, Workers: []run.Worker{{Share: unit.Whole}, {Share: unit.Whole}},
		Spec: &workload.Job{Name: "restless", Env: []string{"PATH=" + os.Getenv("PATH")},
			Command: shell("while :; do echo $RANK >>" + ticks + "; sleep 0.02; done")}}
	works := func() bool {
		before, _ := os.Stat(ticks)
		time.Sleep(300 * time.Millisecond)
		after, err := os.Stat(ticks)
		return err == nil && (before == nil || after.Size() > before.Size())
	}
	say := func(d *drive, verb plan.Verb, want engine.Kind) {
		t.Helper()
		o := order
		o.Verb = verb
		d.driver.Order(o)
		d.want(want)
	}
	d := newDrive(t, state)
	say(d, plan.Start, engine.Started)
	say(d, plan.Suspend, engine.Suspended)
	if works() {
		t.Error("a gang that rests works")
	}
	say(d, plan.Resume, engine.Resumed)
	if !works() {
		t.Error("a gang that was woken does not work")
	}
	say(d, plan.Suspend, engine.Suspended)

	for _, c := range []struct {
		name   string
		status plan.RunStatus
		change int64
		want   []engine.Kind
		works  bool
	}{
		{"it rests", plan.Suspended, 0, nil, false},
		{"it was to be woken", plan.Resuming, 7, []engine.Kind{engine.Resumed}, true},
		{"it runs", plan.Running, 0, nil, true},
		{"it was to rest", plan.Suspended, 8, []engine.Kind{engine.Suspended}, false},
	} {
		o := order
		o.Status, o.Change = c.status, c.change
		d = newDrive(t, state, o)
		d.want(engine.Started) // said again, and ignored where it is known
		for _, kind := range c.want {
			d.want(kind)
		}
		if works() != c.works {
			t.Errorf("%s: found again, it works: %v", c.name, !c.works)
		}
	}
	say(d, plan.Stop, engine.Stopped)
}
