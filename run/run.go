// Package run is step 6: make it so. It declares what a live driver is told and
// how it answers; run/local and run/simulated carry changes out, and make no
// choices about scheduling.
package run

import (
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Standing is the least time without a step after which drivers say that a run stands.
const Standing = 10 * unit.Second

// Driver carries out changes and reports what happens. Its methods do not block.
type Driver interface {
	// Recover is called once, before anything else, with the runs that the journal
	// says are alive; the driver finds them again and reports those that are not.
	Recover(live []Order, report func(engine.Event))
	Order(o Order)
}

// Able is implemented by drivers that cannot do all that strategies may do with runs. A
// strategy that does more is refused before it decides anything.
type Able interface{ Can() strategy.Ability }

// Order is a change with all that a driver needs to carry it out.
type Order struct {
	Verb    plan.Verb
	Change  int64
	Job     plan.JobID
	Name    string
	Attempt int32
	Status  plan.RunStatus // of the run, for Recover
	Spec    *workload.Job
	Workers []Worker
	Plan    *plan.Pipeline
	Device  plan.DeviceID // of a reshape
	Shape   int16         // its geometry
	Node    plan.NodeID   // that is rented or given back
	Terms   plan.Terms    // under which it runs
	// Guest says that the run lives on devices of others, as Terms.Share.Bond says. Host is the
	// run beside which that is; its Name is empty where there is none.
	Guest bool
	Host  Host
}

// Host is the run of another job that a guest lives beside.
type Host struct {
	Name    string
	Attempt int32
}

// Worker is where one rank of a run goes.
type Worker struct {
	Node    plan.NodeID
	Kind    int32 // of the node's devices, as the cluster numbers them
	Devices []plan.DeviceID
	Share   unit.Milli // of each device; 0 of a guest's
	Ceiling unit.Milli // of each device it may use at most
	CPU     unit.Milli // cores asked for besides
	Memory  unit.MiB   // host memory asked for
}

// Carry describes a change that is ready to a driver; spec tells a job as it was asked
// for.
func Carry(v plan.View, c *plan.Change, spec func(plan.JobID) *workload.Job) Order {
	if !c.Verb.OfRun() {
		return Order{Verb: c.Verb, Change: c.ID, Job: c.Job, Attempt: c.Attempt, Device: c.Device, Shape: c.Shape, Node: c.Node}
	}
	o := orderOf(v, c.Run, spec)
	o.Verb, o.Change, o.Device, o.Shape = c.Verb, c.ID, c.Device, c.Shape
	return o
}

// Live describes the runs that a driver must find again.
func Live(v plan.View, spec func(plan.JobID) *workload.Job) []Order {
	var live []Order
	for id := range plan.RunID(v.RunSlots()) {
		if s := v.Run(id).Status; s == plan.Starting || s == plan.Running || s == plan.Suspended || s == plan.Resuming || s == plan.Stopping {
			o := orderOf(v, id, spec)
			o.Change = v.Run(id).Change
			live = append(live, o)
		}
	}
	return live
}

func orderOf(v plan.View, id plan.RunID, spec func(plan.JobID) *workload.Job) Order {
	r := v.Run(id)
	shape := v.Shape(r.Job)
	job := *spec(r.Job)
	job.TimeLimit = v.Job(r.Job).TimeLimit // its queue may allow less
	o := Order{Job: r.Job, Name: v.Name(r.Job), Attempt: r.Attempt, Status: r.Status, Spec: &job, Terms: r.Terms}
	if r.Terms.Plan.ID != plan.None {
		pl := v.Pipeline(r.Terms.Plan.ID)
		o.Plan = &pl
	}
	if h := r.Terms.Share.Guest; h != plan.None {
		o.Guest = true
		if h != r.Job && v.Job(h).Run != plan.None {
			o.Host = Host{v.Name(h), v.Job(h).Attempt}
		}
	}
	n := int32(0)
	v.GrantsOf(id, func(g plan.Grant) {
		if n%max(1, shape.Devices) == 0 {
			o.Workers = append(o.Workers, Worker{Node: g.Node, Kind: v.Node(g.Node).Model, CPU: unit.Milli(g.CPU), Memory: unit.MiB(g.Host), Share: unit.Milli(g.Reserve), Ceiling: unit.Milli(g.Ceiling)})
		}
		n++
		if g.Device != plan.None {
			w := &o.Workers[len(o.Workers)-1]
			w.Devices = append(w.Devices, g.Device)
		}
	})
	return o
}
