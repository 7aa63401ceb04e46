package simulated

import (
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// live is what the driver knows of a run it was told to start.
type live struct {
	job     plan.JobID
	attempt int32
	status  plan.RunStatus
	since   unit.Time // of the status
	milli   int64
	stretches
	paying    bool      // it holds its devices and does not work
	leaving   bool      // it moves out, to be suspended
	paid      unit.Time // until when it pays
	ceiling   int32     // of its terms when they were last looked at
	plan      int32     // of its terms, likewise
	host      plan.JobID
	settles   unit.Time // when its law will have settled
	stands    bool      // it computes at no rate
	stood     unit.Time // since when
	pieces    []piece   // in which it held otherwise than now
	piecesRan unit.Duration
	version   int32 // of its scheduled end or start; older entries are void
	progress
}

// stretches are what the time of a run went into, for the books.
type stretches struct {
	before   unit.Duration // running time before the books were opened
	ran      unit.Duration // running time since, the present stretch left out
	useful   unit.Duration // running time whose work is kept
	lost     unit.Duration // running time whose work is not
	overhead unit.Duration // starting, saving, stopping
	width    int64         // millionths of a device that it could keep busy
	couldSec float64       // device seconds that it could have, the present stretch left out
	heldSec  float64       // device seconds that it held in its running time, the present stretch left out
	busySec  float64       // that it did, once it computes no more
	ending   engine.Ending // of all its running time, once it was told to stop
	idle     bool          // it was told to stop while suspended: it holds nothing in the books
}

// progress is kept for reports of progress alone: what the run had done, in microseconds
// of the true running time, at an instant, and its rate since.
type progress struct {
	done      float64
	doneAt    unit.Time
	rateMicro int64
}

// works reports whether a run does its job's work.
func (l *live) works() bool { return l.status == plan.Running && !l.paying }
