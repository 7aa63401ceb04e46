// Package view is what people and programs see of a live Muster: values made from
// the plane's state by pure functions, the same for the JSON of the API and for the
// tables of the command line. It decides nothing and reads no clock.
//
// Times are RFC 3339 with microseconds; fields ending in _s are seconds; devices are
// counted in whole ones, so that half a device is 0.5.
package view

import (
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Job is a job as it stands.
type Job struct {
	ID       int32    `json:"id"`
	Name     string   `json:"name"`
	Phase    string   `json:"phase"`
	Reason   string   `json:"reason"`          // why it is there, in words
	Never    bool     `json:"never,omitempty"` // it can never start as things are
	Tenant   string   `json:"tenant,omitempty"`
	Queue    string   `json:"queue,omitempty"` // that the tenant's jobs are in; empty for the root
	User     string   `json:"user,omitempty"`
	Priority int32    `json:"priority,omitempty"`
	Gang     int32    `json:"gang"`
	Devices  float64  `json:"devices"` // that the gang asks for in all
	After    []string `json:"after,omitempty"`
	Command  []string `json:"command,omitempty"`
	Dir      string   `json:"dir,omitempty"`

	Times
	Course

	// Run is the status of its present run, or of one that is still stopping, and Where
	// that run is; both are empty without one.
	Run   string  `json:"run,omitempty"`
	Where []Place `json:"where,omitempty"`
	// Copies counts the copies of an array by their phases; nil is a job of its own. An
	// array's id is that of its first copy, and its devices are those of each.
	Copies map[string]int `json:"copies,omitempty"`

	// Failure is how the latest attempt that failed did so, whatever became of the job since.
	Failure *Failure `json:"failure,omitempty"`
}

// Times are when things happened to a job, and how long they took or may take.
type Times struct {
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"`
	Ended     time.Time `json:"ended,omitzero"`
	WaitedSec float64   `json:"waited_s"`
	RanSec    float64   `json:"ran_s"` // with devices, whatever it did with them
	// EstimateSec is what step 1 expects the job to run; 0 is unknown.
	EstimateSec  float64 `json:"estimate_s,omitempty"`
	TimeLimitSec float64 `json:"time_limit_s,omitempty"`
	// LeftSec is what is expected to be left of its present run; 0 is unknown, or no run.
	LeftSec float64 `json:"left_s,omitempty"`
	// Due is nil without a deadline.
	Due *Due `json:"due,omitempty"`
}

// Course is how a job has fared, and by which plan it goes on.
type Course struct {
	Attempt     int32   `json:"attempt"`
	Preemptions int32   `json:"preemptions"`
	Restarts    int32   `json:"restarts"`
	Progress    float64 `json:"progress"` // 0 to 1, as last reported
	FirstLoss   float64 `json:"first_loss,omitempty"`
	LastLoss    float64 `json:"last_loss,omitempty"`

	// Pipeline is the plan that it runs by; what is measured of it only an answer about one
	// job tells.
	Pipeline *Pipeline `json:"pipeline,omitempty"`
	// Reaction is how its run went on when something drifted or broke.
	Reaction *Reacted `json:"reaction,omitempty"`
	// Saving says that it does not save as its owner says that it does; empty where nothing is known against that.
	Saving string `json:"saving,omitempty"`
}

// State is the one word for where a job stands, which every text says and muster ls
// --phase takes: where its run does as long as that has devices, else its phase.
func (j *Job) State() string {
	switch {
	case j.Run != "":
		return j.Run
	case j.Phase == plan.Active.String(): // copies of an array, each with a run of its own
		return plan.Running.String()
	}
	return j.Phase
}

// Settled reports whether nothing comes of waiting for the job: it has ended, or can never start as things are.
func (j *Job) Settled() bool { return j.Never || j.Over() }

// Over reports whether the job has ended.
func (j *Job) Over() bool {
	for p := plan.Phase(0); ; p++ {
		if name := p.String(); name == j.Phase {
			return p.Over()
		} else if p == plan.Refused {
			return false
		}
	}
}

// Place is what a run holds on one node.
type Place struct {
	Node    string  `json:"node"`
	Devices []int32 `json:"devices,omitempty"` // by their position on the node
	Share   float64 `json:"share,omitempty"`   // of each of them; left out for whole ones
}

// Node is a machine and what is on it.
type Node struct {
	Name    string   `json:"name"`
	Model   string   `json:"model,omitempty"`
	Rack    string   `json:"rack,omitempty"`
	Status  string   `json:"status"`
	Free    float64  `json:"free"` // devices, parts included
	FreeCPU float64  `json:"free_cpu"`
	FreeMiB int64    `json:"free_memory_mib"`
	Devices []Device `json:"devices"`
	// Windows are the maintenance windows that have not ended.
	Windows []Window `json:"windows,omitempty"`
	// Closing says what a window that is asked for means to jobs.
	Closing *Closing `json:"closing,omitempty"`
}

// Device is one device of a node.
type Device struct {
	ID        int32    `json:"id"` // position on its node
	Status    string   `json:"status"`
	MemoryMiB int64    `json:"memory_mib"`
	Free      float64  `json:"free"`
	Geometry  string   `json:"geometry,omitempty"` // how it is cut
	Holders   []Holder `json:"holders,omitempty"`
}

// Holder is a run that has a part of a device.
type Holder struct {
	Job   string  `json:"job"`
	Run   string  `json:"run"` // its status
	Share float64 `json:"share"`
}

// Cluster sums up what there is and what goes on.
type Cluster struct {
	Name     string         `json:"name"`
	Strategy string         `json:"strategy"`
	At       time.Time      `json:"at"`
	Nodes    map[string]int `json:"nodes"` // by status
	Devices  Capacity       `json:"devices"`
	Jobs     map[string]int `json:"jobs"`   // by phase
	States   map[string]int `json:"states"` // the same jobs by the word that is said of them
	Queue    Queue          `json:"queue"`
	// NotHeld says which of the limits that jobs ask for are not held here, and why.
	NotHeld string `json:"not_held,omitempty"`
}

// Capacity counts devices: Total = Granted + Free + Closed + Lost.
type Capacity struct {
	Total   float64 `json:"total"`
	Granted float64 `json:"granted"`
	Free    float64 `json:"free"`
	Closed  float64 `json:"closed"` // free, on nodes that take no new runs
	Lost    float64 `json:"lost"`
}

// Queue sums up what waits.
type Queue struct {
	Waiting   int     `json:"waiting"` // for devices
	Held      int     `json:"held"`
	Blocked   int     `json:"blocked"` // after other jobs
	Backoff   int     `json:"backoff"` // to be tried again
	Devices   float64 `json:"devices"` // that the waiting ask for
	Oldest    string  `json:"oldest,omitempty"`
	OldestSec float64 `json:"oldest_s,omitempty"` // how long that one has waited
}

// Snapshot is everything a watcher sees at one moment.
type Snapshot struct {
	ID      string  `json:"id"` // to resume from
	Cluster Cluster `json:"cluster"`
	Jobs    []Job   `json:"jobs"`
	// JobsLeftOut counts live jobs beyond the limit on those listed.
	JobsLeftOut int    `json:"jobs_left_out,omitempty"`
	Nodes       []Node `json:"nodes"`
}

// Version says what answers.
type Version struct {
	Version string `json:"version"`
	API     string `json:"api"`
}

// Submitted answers a submission: the jobs that are durable, in the order given.
type Submitted struct {
	Jobs []Ref `json:"jobs"`
	// Notes say what was asked for and is not held here.
	Notes []string `json:"notes,omitempty"`
}

// Ref names a job, or an array.
type Ref struct {
	ID   int32  `json:"id"` // of the first copy of an array
	Name string `json:"name"`
	// Array is the number of its copies, NAME-0, NAME-1, ...; 0 is no array.
	Array int32 `json:"array,omitempty"`
}

// LogPiece is a piece of a log that is followed, and where to read on when the
// connection breaks behind it: Next is a byte of the output of Attempt.
type LogPiece struct {
	Attempt int32  `json:"attempt"`
	Next    int64  `json:"next"`
	Text    []byte `json:"text,omitempty"` // in base64
	Over    bool   `json:"over,omitempty"` // nothing comes any more
}

// instant is a time of the plane's as a time of the calendar; Never is the zero one.
func instant(t unit.Time) time.Time {
	if t == unit.Never {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// whole turns thousandths into whole ones.
func whole[T ~int32 | ~int64](milli T) float64 { return float64(milli) / 1000 }

// Jobs is a list of jobs.
type Jobs struct {
	Jobs    []Job `json:"jobs"`
	LeftOut int   `json:"left_out,omitempty"` // live ones beyond the limit
	// Quarantined says of each node that takes no runs because starts failed there why, and when one is tried again.
	Quarantined []string `json:"quarantined,omitempty"`
}

// Ready says that submissions are taken.
type Ready struct {
	Status string `json:"status"`
	// Quarantined says how many nodes take no runs because starts failed there; "" is none.
	Quarantined string `json:"quarantined,omitempty"`
}

// Nodes is a list of nodes.
type Nodes struct {
	Nodes []Node `json:"nodes"`
}
