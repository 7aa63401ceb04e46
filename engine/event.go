package engine

import (
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Kind says what happened.
type Kind uint8

// The kinds of event. Requests come from people, reports from drivers.
const (
	Tick       Kind = iota // time passed
	Submit                 // request: a new job
	Cancel                 // request: end a job
	Hold                   // request: keep a job back
	Release                // request: let a held job go on
	Requeue                // request: stop a job's run, or put an ended job back in the queue
	Cordon                 // request: no new runs on a node
	Uncordon               // request: a node takes runs again
	Drain                  // request: cordon, and stop the node's runs
	Pause                  // request: decide nothing
	Unpause                // request: decide again
	Started                // report: a run computes
	NotStarted             // report: a run could not be started
	Stopped                // report: a run was stopped as told
	Exited                 // report: a run ended by itself
	Suspended              // report: a run is resident
	Resumed                // report: a run computes again
	Reshaped               // report: a device is cut as told
	NodeDown               // report: a node is lost
	NodeUp                 // report: a node is back
	DeviceDown             // report: a device is lost
	DeviceUp               // report: a device is back
	Observed               // report: what a run did in an interval
	Truth                  // report, simulated only: how long a job really runs
	Answered               // an outside decider replied
	Rebuilt                // the control plane was restarted: caches are built anew
	Switched               // request: another strategy decides; who builds it calls Switch
	Shares                 // request: another tree of queues
	Close                  // request: a maintenance window of a node
	Reopen                 // request: no maintenance window of a node any more
	Arranged               // request: runs are moved so that a job can start
	Joined                 // report: nodes are added to the cluster
	Occupied               // report: what work that is not ours uses of a node
	Confined               // report: the nodes that a set of nodes holds
	Assembled              // the state was put together from what a store kept; it replaces all
	numKinds
)

var kindNames = [...]string{"tick", "submit", "cancel", "hold", "release", "requeue", "cordon", "uncordon", "drain",
	"pause", "unpause", "started", "not-started", "stopped", "exited", "suspended", "resumed", "reshaped", "node-down",
	"node-up", "device-down", "device-up", "observed", "truth", "answered", "rebuilt",
	"switched", "shares", "close", "reopen", "arranged", "joined", "occupied", "confined", "assembled"}

// String names the kind as the journal does.
func (k Kind) String() string { return kindNames[k] }

// Event is something that happened, as it is journaled: its kind, whom it is about, and
// what events of its kind carry. Reports name the attempt they are about; those of an old
// attempt are ignored.
type Event struct {
	Kind            Kind          `json:"kind"`
	Job             plan.JobID    `json:"job,omitempty"`
	Attempt         int32         `json:"attempt,omitempty"`
	Node            plan.NodeID   `json:"node,omitempty"`
	Device          plan.DeviceID `json:"device,omitempty"`
	Spec            *workload.Job `json:"spec,omitempty"`   // of a submission
	Change          int64         `json:"change,omitempty"` // that is confirmed (Reshaped)
	Ending                        // NotStarted, Stopped, Exited
	Span            unit.Duration `json:"span,omitempty"` // true length (Truth)
	Observation                   // Observed
	By              string        `json:"by,omitempty"` // who asked
	strategy.Answer               // Answered
	Queues          *queue.Tree   `json:"queues,omitempty"` // another tree of them (Shares)
	Bounds                        // Close
	Moves           []Move        `json:"moves,omitempty"` // what is arranged for Job, whose own start is one of them
	Outside                       // Joined, Occupied, Confined
	Image           *Image        `json:"image,omitempty"` // a whole state (Assembled)
	// Setting is what a control plane that starts decides with (Rebuilt, Switched); the
	// engine does not read it.
	Setting []byte `json:"setting,omitempty"`
}

// Ending is what a driver says of a run that ended.
type Ending struct {
	Kept  unit.Duration     `json:"kept,omitempty"` // its running time whose work is kept
	Class plan.FailureClass `json:"class,omitempty"`
	// Unsaved says that it was asked to save, and has saved nothing since.
	Unsaved bool `json:"unsaved,omitempty"`
	// Alive says that the processes which lost no device of theirs wait, and hold among them all that is kept:
	// a start that is decided with this event may keep them. Else they leave.
	Alive bool `json:"alive,omitempty"`
	// Failure says how it failed, where its driver knows; the engine does not read it.
	Failure *plan.Failure `json:"failure,omitempty"`
}

// Observation is what a driver says of a run that goes on.
type Observation struct {
	Progress int32         `json:"progress,omitempty"` // millionths of the work done
	Saved    unit.Duration `json:"saved,omitempty"`    // running time covered by the last checkpoint
	Loss     float64       `json:"loss,omitempty"`
	// RateMicro is the rate at which it was seen to go, in millionths of its job's
	// reference; 0 is not seen.
	RateMicro int64 `json:"rate_micro,omitempty"`
	// RateOff is by how much that may be off; with no rate, by how much the one told before may be:
	// plan.Unmeasured before anybody has measured it.
	RateOff plan.Off `json:"rate_off,omitzero"`
	// Busy is how much of the time it was seen to keep its devices busy, beside nobody that computes there before it;
	// 0 is not seen.
	Busy unit.Milli `json:"busy_milli,omitempty"`
	// Stood is for how long it was seen to do nothing while it computes: its rate is 0 then.
	Stood unit.Duration `json:"stood,omitempty"`
	Timed
	// Goes is by which plan the run goes, where that is not the one that it was told.
	Goes *Going `json:"goes,omitempty"`
}

// Timed is how long the parts of a run with a pipeline plan were seen to take.
type Timed struct {
	// Stages are how long a microbatch took in each stage, all its passes together, in the mean since
	// the last report; nothing is not measured.
	Stages []unit.Duration `json:"stages_us,omitempty"`
	// Slow is how many times as long each worker takes as devices of its model do, which a driver that
	// tells has each of them do the same known work for: it tells a slow device from slow layers.
	// Nothing is not probed, and then layers are taken to be slow.
	Slow []float64 `json:"slow,omitempty"`
	// Links are the factors by which the links of the workers' nodes are slower than they should be. They are
	// measured for runs that go by a planner's plan; nothing is not measured.
	Links []float64 `json:"links,omitempty"`
}

// Going is the plan by which a run goes on.
type Going struct {
	Plan int32  `json:"plan"` // None without
	Why  string `json:"why"`  // not by the one that it was told
}

// Bounds are those of a maintenance window.
type Bounds struct {
	From unit.Time `json:"from_us,omitempty"`
	To   unit.Time `json:"to_us,omitempty"`
}

// Outside is what a driver says of the world beside the engine's own work.
type Outside struct {
	Nodes *cluster.Cluster `json:"nodes,omitempty"` // what joins
	Use   *Use             `json:"use,omitempty"`   // what others use of Node
	// Set is a set of nodes, counted from 1, and Within the nodes that it holds, 64 to a
	// word.
	Set    int32    `json:"set,omitempty"`
	Within []uint64 `json:"within,omitempty"`
}

// Image is a state that plan.State.Save wrote, and the jobs in it as they were asked
// for, by id; Strategy is the text of the one whose memory is in it, empty if nobody has
// decided yet.
type Image struct {
	Strategy string          `json:"strategy,omitempty"`
	State    []byte          `json:"state"`
	Specs    []*workload.Job `json:"specs"`
}

// Use is an amount of a node.
type Use struct {
	CPU     unit.Milli `json:"cpu"`
	Memory  unit.MiB   `json:"memory_mib"`
	Devices int32      `json:"devices"`
}

// Reported reports whether an event of this kind is somebody's report of what is so,
// which nobody can refuse and nobody waits for.
func (k Kind) Reported() bool {
	return k >= Started && k <= Observed || k >= Joined && k <= Confined
}
