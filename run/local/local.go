// Package local is step 6 on this machine: every worker of a run is a real process
// under a supervisor of its own that outlives the control plane. It turns orders
// into what supervisors are told and their records into events, and decides
// nothing: a gang starts when all of it is prepared, and ends when one of it fails.
package local

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/supervise"
)

// Config is a local driver.
type Config struct {
	State string // absolute; holds attempts/ and jobs/
	Exe   string // absolute; "EXE supervise DIR" is a supervisor
	// SlotCPU and SlotMemory are what one device is, where devices are declared slots;
	// zero where they are GPUs.
	SlotCPU    unit.Milli
	SlotMemory unit.MiB
	GPUs       bool
	GPU        []string         // by device: what CUDA calls it, where that is not its number
	Ability    strategy.Ability // that of the machine
	// AllowRoot lets jobs of root run as root.
	AllowRoot bool
	// CheckpointWait and Grace bound a stop: the time to save, and from SIGTERM to
	// SIGKILL.
	CheckpointWait, Grace unit.Duration
	// SummaryEvery is how often a worker's progress is recorded at most.
	SummaryEvery unit.Duration
	Log          *slog.Logger
	// Tell is what a run is told of the plan of its job's model, of which the order has the shape, on so
	// many workers of a kind of device; nil tells the shape.
	Tell func(j *workload.Job, kind, workers int32, shape string) ([]byte, pipeline.Why)
}

// Driver is the local driver.
type Driver struct {
	config Config
	report func(engine.Event)

	mu       sync.Mutex
	attempts map[key]*attempt
	fastest  map[plan.JobID]float64 // reference, in steps per second
}

var (
	_ run.Driver = (*Driver)(nil)
	_ run.Able   = (*Driver)(nil)
)

type key struct {
	job     plan.JobID
	attempt int32
}

// New returns a driver over a state directory.
func New(c Config) *Driver {
	if c.Grace == 0 {
		c.Grace = 10 * unit.Second
	}
	return &Driver{config: c, attempts: map[key]*attempt{}, fastest: map[plan.JobID]float64{}}
}

// SetSlotMemory sets what memory a slot has, where that is another than was declared. It
// is called before Recover.
func (d *Driver) SetSlotMemory(memory unit.MiB) { d.config.SlotMemory = memory }

// SetPlans sets Tell. It is called before Recover.
func (d *Driver) SetPlans(tell func(j *workload.Job, kind, workers int32, shape string) ([]byte, pipeline.Why)) {
	d.config.Tell = tell
}

// Recover finds the live runs again: workers that still have a supervisor are
// followed on, starts that never happened are made, and what died meanwhile is
// reported.
func (d *Driver) Recover(live []run.Order, report func(engine.Event)) {
	d.report = report
	for _, o := range live {
		d.adopt(o)
		o.Verb = plan.Regrant // nobody knows which grants the plane before had told
		d.Order(o)
	}
}

// Can implements run.Able.
func (d *Driver) Can() strategy.Ability { return d.config.Ability }

// Order carries out one change.
func (d *Driver) Order(o run.Order) {
	switch o.Verb {
	case plan.Start:
		d.adopt(o)
	case plan.Stop, plan.Suspend, plan.Resume, plan.Regrant:
		d.mu.Lock()
		a := d.attempts[key{o.Job, o.Attempt}]
		d.mu.Unlock()
		if a == nil && o.Verb == plan.Regrant {
			return // it has ended, and has been or will be reported
		}
		if a == nil {
			// Orders are given by who takes reports in: it must not wait for itself.
			go d.report(engine.Event{Kind: engine.Stopped, Job: o.Job, Attempt: o.Attempt})
			return
		}
		switch o.Verb {
		case plan.Stop:
			a.stop()
		case plan.Regrant:
			a.regrant(o)
		default:
			a.suspend(o.Verb == plan.Suspend)
		}
	case plan.Rent, plan.Return:
		d.config.Log.Error("this machine can neither be rented nor given back", "node", o.Node)
	case plan.Reshape:
		// No device found here has partitions, so no strategy can ask for this; say that
		// it did not happen rather than keep anybody waiting.
		d.config.Log.Error("a device cannot be cut another way on this machine", "device", o.Device)
	}
}

// adopt follows an attempt, starting what of it has not been started.
func (d *Driver) adopt(o run.Order) {
	a := newAttempt(d, o)
	d.mu.Lock()
	d.attempts[key{o.Job, o.Attempt}] = a
	d.mu.Unlock()
	go func() {
		d.joins(a)
		e := a.run()
		d.joins(a)
		d.mu.Lock()
		delete(d.attempts, key{o.Job, o.Attempt})
		d.mu.Unlock()
		d.report(e)
		for _, dir := range a.dirs {
			if err := supervise.Clean(dir); err != nil {
				d.config.Log.Warn("cleaning up behind a worker", "dir", dir, "error", err)
			}
		}
	}()
}

// MemberDir is the directory of a rank of an attempt, for its log.
func (d *Driver) MemberDir(name string, attempt, rank int32) string {
	s := supervise.Spec{State: d.config.State, Job: name, Attempt: attempt, Rank: rank}
	return s.MemberDir()
}

// String names the attempt as logs do.
func (o *attempt) String() string { return fmt.Sprintf("%s.%d", o.order.Name, o.order.Attempt) }
