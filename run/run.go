// Package run is step 6: make it so. It declares what a live driver is told and
// how it answers; run/local and run/simulated carry changes out, and make no
// choices about scheduling.
package run

import (
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
)

// Driver carries out changes and reports what happens. Its methods do not block.
type Driver interface {
	// Recover is called once, before anything else, with the runs that the journal
	// says are alive; the driver finds them again and reports those that are not.
	Recover(live []Order, report func(engine.Event))
	Order(o Order)
}

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
}

// Worker is where one rank of a run goes.
type Worker struct {
	Node    plan.NodeID
	Devices []plan.DeviceID
	Share   unit.Milli // of each device
	CPU     unit.Milli // cores asked for besides
	Memory  unit.MiB   // host memory asked for
}
