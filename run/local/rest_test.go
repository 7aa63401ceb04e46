package local_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local"
	"github.com/musterdl/muster/run/local/cgroup"
	"github.com/musterdl/muster/run/local/supervise"
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
	d.driver = local.New(local.Config{State: state, Exe: exe, SlotCPU: 500, AllowRoot: true, CheckpointWait: 30 * unit.Second, Grace: 10 * unit.Second, SummaryEvery: 500 * unit.Millisecond, Log: slog.New(slog.DiscardHandler)})
	d.driver.Recover(live, func(e engine.Event) { d.events <- e })
	return d
}

// want waits for an event of a kind, past observations.
func (d *drive) want(kind engine.Kind) engine.Event {
	d.t.Helper()
	for deadline := time.After(inTime); ; {
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
	t.Parallel()
	state := stateDir(t)
	ticks := filepath.Join(state, "ticks")
	order := run.Order{Verb: plan.Start, Name: "restless", Attempt: 1, Workers: []run.Worker{{Share: unit.Whole}, {Share: unit.Whole}},
		Spec: &workload.Job{Name: "restless", Program: workload.Program{Env: []string{"PATH=" + os.Getenv("PATH")},
			Command: shell("while :; do echo $RANK >>" + ticks + "; sleep 0.02; done")}}}
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

// TestOneReportReleasesAll: of a gang of which one worker alone reports what it saved nobody
// is kept waiting for a report of his own, also by a control plane that finds the gang
// while it is being stopped.
func TestOneReportReleasesAll(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		order := run.Order{Verb: plan.Start, Name: "gang", Attempt: 1, Workers: []run.Worker{{Share: unit.Whole}, {Share: unit.Whole}},
			Spec: &workload.Job{Name: "gang", Checkpoint: workload.Checkpoint{OnRequest: true},
				Program: workload.Program{Env: []string{"PATH=" + os.Getenv("PATH")}, Command: shell(`trap 'exit 143' TERM
while :; do
	if [ $RANK = 0 ] && grep -q checkpoint $MUSTER_CONTROL && [ ! -e saved ]; then touch saved; sleep 0.5; echo checkpoint step=7 >>$MUSTER_PROGRESS; fi
	sleep 0.02
done`)}}}
		state := stateDir(t)
		d := newDrive(t, state)
		d.driver.Order(order)
		d.want(engine.Started)
		stop := order
		stop.Verb = plan.Stop
		d.driver.Order(stop)
		if again {
			time.Sleep(200 * time.Millisecond)
			order.Status = plan.Stopping
			d = newDrive(t, state, order)
			d.want(engine.Started)
		}
		d.want(engine.Stopped)
		left := time.Now()
		records, _, err := supervise.ReadRecords(d.driver.MemberDir("gang", 1, 0), 0)
		if err != nil {
			t.Fatal(err)
		}
		saved := slices.IndexFunc(records, func(r supervise.Record) bool { return r.Kind == supervise.Checkpoint })
		if saved < 0 {
			t.Fatal("rank 0 left without a report of what it saved")
		}
		if took := left.Sub(time.UnixMicro(int64(records[saved].At))); took > time.Second {
			t.Errorf("found again %v: the gang left %s after it had saved", again, took)
		}
	}
}

// TestRegrant: a run that goes on with another share is held to it by the driver that
// hears of it, and by one that finds it with a share that nobody told its workers.
func TestRegrant(t *testing.T) {
	if support := cgroup.Probe(); !support.CPU {
		t.Skip(support)
	}
	state := stateDir(t)
	order := func(verb plan.Verb, share unit.Milli) run.Order {
		return run.Order{Verb: verb, Name: "granted", Attempt: 1, Workers: []run.Worker{{Devices: []plan.DeviceID{0}, Share: share}},
			Spec: &workload.Job{Name: "granted", Program: workload.Program{Command: []string{"/bin/sleep", "1000"}}}}
	}
	held := func(cores float64) {
		t.Helper()
		got := 0.0
		for range 100 {
			if got = quotaOf(t, filepath.Join(state, "attempts", "granted.1", "0")); got == cores {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("it is held to %v cores, expected %v", got, cores)
	}
	d := newDrive(t, state)
	d.driver.Order(order(plan.Start, unit.Whole))
	d.want(engine.Started)
	held(0.5)
	d.driver.Order(order(plan.Regrant, 400))
	held(0.2)
	found := order(plan.Start, 600)
	found.Status = plan.Running
	d = newDrive(t, state, found)
	d.want(engine.Started)
	held(0.3)
	d.driver.Order(order(plan.Stop, 600))
	d.want(engine.Stopped)
}

// quotaOf is how many cores the group of a worker may use.
func quotaOf(t *testing.T, dir string) float64 {
	t.Helper()
	records, _, err := supervise.ReadRecords(dir, 0)
	if err != nil || len(records) == 0 {
		t.Fatal(records, err)
	}
	var quota, period float64
	if g := records[0].Group; g.CPU != "" {
		for file, into := range map[string]*float64{"cpu.cfs_quota_us": &quota, "cpu.cfs_period_us": &period} {
			data, err := os.ReadFile(filepath.Join(g.CPU, file))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Sscan(string(data), into)
		}
	} else if data, err := os.ReadFile(filepath.Join(g.Unified, "cpu.max")); err == nil {
		fmt.Sscan(string(data), &quota, &period)
	}
	return quota / period
}
