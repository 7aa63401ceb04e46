// Package moves is what makes room in one piece out of room that is free in pieces: runs go
// elsewhere, which is a stop with time to save and a start in another place, at the same size
// and on the same device model, so that what every queue holds stays what it was. It says which
// runs may be moved, and declares the part of a composition that says how much that may cost.
//
// Who decides job by job moves while it decides (package compose), where its composition names
// a policy; an operator has a plan made for a gang and looks at it first (package defrag). Both
// go by the same rule of who may be moved and by the price of package victims.
package moves

import (
	"math"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
)

// Part says whether runs are moved for a job that waits under an order, and at what price.
var Part = strategy.NewPart[Policy](strategy.Part{Name: "moves", Rank: 75, Step: "schedule", Null: "no-moves", Default: "no-moves"})

// Policy bounds the moves that are made for one start. The zero Policy moves nobody.
type Policy struct {
	// Most is how many runs are moved for one start.
	Most int `yaml:"most" least:"1" most:"8"`
	// Part is what moves may cost: of the device time that the job is expected to take, all that
	// are made for it; and of its own time, those of a run that is moved, which has to have run for
	// long enough since it last began.
	Part float64 `yaml:"part" above:"0" most:"1"`
}

// None moves nobody.
var None = strategy.Description{
	Name: "no-moves", Part: Part, Status: "null",
	Source: "folklore: what runs stays where it is", Idea: "nobody is moved for a job that waits; an operator may (muster defrag)",
	Goal: "throughput", Needs: "nothing", Live: "as simulated",
}

// Description describes moves at a price.
var Description = strategy.Description{
	Name: "small-moves", Part: Part, Status: "ours",
	Source: "ours; stopping and starting elsewhere is the migration of Gandiva (OSDI 2018), here by checkpoint",
	Idea:   "the cheapest runs go elsewhere so that a job fits for which enough is free in pieces, if that costs a small part of its time",
	Goal:   "throughput", Needs: "jobs that save when asked; an estimate of the run time bounds the price",
	Live: "as simulated; who does not save when asked is not moved",
}

// Small is the default policy: a hundredth of the time, and as many runs as one device usually has.
func Small() Policy { return Policy{Most: 4, Part: .01} }

// Budget is what the moves for a job may cost, in device-microseconds, that is expected to take
// so long on so many thousandths of a device.
func (p Policy) Budget(length unit.Duration, milli int64) int64 {
	if length == unit.Forever {
		return math.MaxInt64
	}
	return int64(min(p.Part*float64(length)*float64(milli)/1000, math.MaxInt64/2))
}

// Rests reports whether a run that began so long ago stays where it is, since a move that takes
// so much of its time comes too soon.
func (p Policy) Rests(ran, takes unit.Duration) bool { return float64(takes) > p.Part*float64(ran) }
