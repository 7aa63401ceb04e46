// Package schedule is step 3: which job is next, and which gives way. It declares
// the one contract the engine calls (Scheduler) and the parts that package compose
// builds one from.
package schedule

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Scheduler decides. It edits the draft and returns the instant at which it wants
// to be called even if nothing happens; unit.Never for none. It is called when
// something in its trigger changed or that instant came; also once more after a
// restart, when nothing changed, and must then decide nothing new.
//
// A job may be refused in the first decision that has it in its trigger, and never
// after. When another Scheduler takes over, the runs that are suspended are stopped
// and leases and memos cleared; what is packed stays so until somebody ends it.
type Scheduler interface {
	Decide(d *plan.Draft, why Trigger) (wake unit.Time)
}

// Rebuilder is a Scheduler with caches: it is told to build them anew from a state
// it has not seen before (recovery, a snapshot, a switch of strategy).
type Rebuilder interface {
	Rebuild(v plan.View)
}

// Trigger is why a Scheduler is called.
type Trigger struct {
	// Jobs are those whose phase, run or estimate changed, each once, in the order
	// it happened.
	Jobs []plan.JobID
	// Room says that devices came free, came back or changed shape.
	Room bool
	// Rebuilt says that nothing has happened: all live jobs are in Jobs since caches were built anew.
	Rebuilt bool
	// Wake says that the instant the Scheduler asked for has come.
	Wake bool
	// Answers are what outside deciders replied, in order of arrival.
	Answers []strategy.Answer
	// Broken are the runs with plans that ended because a device of theirs was lost.
	Broken []Broken
	// Observed is what running jobs were seen to do, in order of arrival.
	Observed []Observation
}

// Broken is a run that lost a device: its plan and how many workers it had, of which model of device and
// whether on several nodes, and how much of its work is to be done again.
type Broken struct {
	Job            plan.JobID
	Plan           int32
	Workers, Model int32
	Several        bool
	Redo           unit.Duration
	// Alive are the devices that it had, in their order, where the processes on those that are not lost
	// wait for a start that keeps them; nil where all have ended.
	Alive []plan.DeviceID
}

// Observation is what a run was seen to do in an interval at constant allocation: its
// rate in millionths of its job's reference, its loss and progress; 0 is not seen. One
// that stood has a rate of 0, and had for so long. Stages are how long a microbatch took in
// each stage, and Slow how many times as long each worker takes as its devices should, where that was
// probed.
type Observation struct {
	Job       plan.JobID
	RateMicro int64
	Busy      unit.Milli // of its devices' time; 0 is not seen
	Stood     unit.Duration
	Loss      float64
	Progress  int32
	Stages    []unit.Duration
	Slow      []float64
	Links     []float64 // as Slow, of the links of their nodes
}

// Key ranks jobs: smaller goes first, compared from the left; equal keys go by id.
type Key [3]int64

// Compare orders two keys and, where they tie, two ids.
func (k Key) Compare(id plan.JobID, o Key, oid plan.JobID) int {
	for i := range k {
		if k[i] != o[i] {
			if k[i] < o[i] {
				return -1
			}
			return 1
		}
	}
	return int(id) - int(oid)
}

// OrderPart says which job is next.
var OrderPart = strategy.NewPart[Order](strategy.Part{Name: "order", Rank: 50, Step: "schedule", Null: "fifo", Default: "fifo"})

// Order ranks jobs. Key returns a job's rank and until when it holds. The rank of
// a waiting job must hold that long exactly, unless a Pupil says that much has become known; that of a running job may improve
// before, but may not get worse.
type Order interface {
	Key(v plan.View, job plan.JobID) (Key, unit.Time)
	Rules() Rules
}

// Rules are how an Order wants its ranking applied.
type Rules struct {
	// Strict holds everybody back behind the first job that does not fit; otherwise
	// smaller work fills in around it.
	Strict bool
	// Preempt lets a waiting job take the room of running jobs ranked below it.
	Preempt bool
	// Turns says that jobs take turns by design: who displaced whom may be displaced by that one again.
	Turns bool
	// MinimumRun is how long a run is left alone before it may be displaced.
	MinimumRun unit.Duration
}

// Ager is an Order whose jobs age: when a waiting job's key runs out, Age may
// rewrite its memo (Tiresias' promotion).
type Ager interface {
	Age(v plan.View, job plan.JobID) (memo [2]int64, changed bool)
}

// Learner is an Order that learns from the jobs that finished. What it has learned
// must follow from the State alone: the same jobs, whatever order they come in
// within an instant, give the same ranks.
type Learner interface {
	Learn(v plan.View, job plan.JobID)
}

// Pupil is a Learner whose ranks change before they were said to where much has become known: what was
// so at Since counts.
type Pupil interface {
	Learner
	Since(v plan.View) unit.Time
}

// Knower is an Order that can say in sentences what it ranks a job by, and where it knows nothing.
type Knower interface {
	Known(v plan.View, job plan.JobID) []string
}

// Weigher is an Order that knows what a completion of a job is expected to cost: running time in
// seconds, of a job that waits with its start.
type Weigher interface {
	Cost(v plan.View, job plan.JobID) float64
	// Alike is how sure it is, of 1, that two jobs take the same time in all, and Ran for how many seconds one has.
	Alike(v plan.View, a, b plan.JobID) float64
	Ran(v plan.View, job plan.JobID) float64
}

// Controlled is an Order that also steps in around the decisions, such as to shed load:
// it puts itself around the Scheduler that was composed with it.
type Controlled interface {
	Control(s Scheduler) Scheduler
}

// GatePart says which jobs are taken on at all.
var GatePart = strategy.NewPart[Gate](strategy.Part{Name: "gate", Rank: 40, Step: "schedule", Null: "admit-all", Default: "admit-all"})

// Gate admits a job or refuses it, with the earliest terms that would be accepted,
// before its submission is acknowledged.
type Gate interface {
	Admit(v plan.View, job plan.JobID) (ok bool, why plan.Reason)
}
