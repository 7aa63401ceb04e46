package forecast

import (
	"github.com/musterdl/muster/model/unit"
)

// PromiseVersion is bumped when promises are made in another way, so that the old
// ones are not scored with the new.
const PromiseVersion = 1

// Basis is what a promise rests on.
type Basis string

// The bases of promises.
const (
	FromFutures Basis = "futures" // the engine run forward through sampled futures
	FromPast    Basis = "past"    // the past waits of the queue
)

// Promise is what was said about a job. It is written once and never changed.
type Promise struct {
	Version int    `json:"version"`
	Job     int32  `json:"job"`
	Name    string `json:"name"`
	Queue   string `json:"queue"`
	Milli   int64  `json:"milli"` // thousandths of a device in all

	Submitted unit.Time `json:"submitted_us"`
	Made      unit.Time `json:"made_us"`
	Running   bool      `json:"running,omitempty"` // by then: only its end is promised
	Basis     Basis     `json:"basis"`
	Samples   int       `json:"samples"`
	// Looked is how far the futures went: what stands there may come later.
	Looked unit.Time `json:"looked_us"`
	// Start and End are what was said; RawStart and RawEnd what the samples said
	// before they were corrected by past promises.
	Start    Range `json:"start"`
	End      Range `json:"end"`
	RawStart Range `json:"raw_start"`
	RawEnd   Range `json:"raw_end"`
	// Baseline is the start that the queue's past waits alone would have promised.
	Baseline Range `json:"baseline"`
}

// What is what became of a job.
type What string

// What becomes of jobs.
const (
	Started   What = "started"   // for the first time
	Ended     What = "ended"     // by itself, done or failed
	Withdrawn What = "withdrawn" // by another's hand: cancelled, refused, out of time
)

// Outcome is what became of a job, and when. A job has one start and one end at most.
type Outcome struct {
	Job  int32     `json:"job"`
	What What      `json:"what"`
	At   unit.Time `json:"at_us"`
}

// Entry is one record of the log of promises: either of the two.
type Entry struct {
	Promise *Promise `json:"promise,omitempty"`
	Outcome *Outcome `json:"outcome,omitempty"`
}
