// Package victims is the mechanism of gentle preemption: of the running jobs that
// the rules allow to be displaced, it chooses those that make way for one that
// waits, so that the least work is lost. It prices a displacement, declares the
// contract of choosing and has three that fulfil it: Cheapest, which is exact for up
// to ten candidates and a heuristic that knows nodes above, and the two baselines to
// compare it with, Newest and LowestRank.
//
// Which candidates there are (ranks, shares, budgets of disruptions, minimum runs)
// is the caller's affair, and so is the last word on room: every set returned has
// been tried by the caller's oracle.
//
// A price is in device-microseconds: what would be computed again and the time that
// saving and loading take, times the devices held.
package victims

import (
	"math"
	"math/bits"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Candidate is a run that may be displaced; its workers go together.
type Candidate struct {
	Job   plan.JobID
	Run   plan.RunID
	Price int64        // device-microseconds lost with it, at least 0; see Price
	Key   schedule.Key // its rank; only LowestRank looks at it
}

// Input is one choice to be made. What room the candidates would leave is read off
// the view.
type Input struct {
	View       plan.View
	Need       allocate.Need
	Candidates []Candidate // no job twice
}

// VictimsPart says which runs give way. Where it is left open, the cheapest give a
// guarantee its room back, and the lowest ranked give way to a better rank.
var VictimsPart = strategy.NewPart[Chooser](strategy.Part{Name: "victims", Rank: 70, Step: "schedule", Null: "newest"})

// Chooser chooses whom to displace.
type Chooser interface {
	// Choose returns the candidates to displace, by their ascending positions in the
	// input, or false where it finds no set that will do. Only a set that try accepted
	// is returned; the empty one may be. try stops exactly those chosen in a draft,
	// reports whether the need can be placed then, and leaves the view as it was.
	// The slices given to try and returned are used again by the next call.
	Choose(in Input, try func(chosen []int) bool) ([]int, bool)
}

// Price is what displacing a run costs at this moment: the running time that would
// be lost, the time that saving and loading take, and both times the devices held,
// in device-microseconds. A job that saves when asked loses nothing but the save and
// the load; one that saves by itself loses what it did since, and never pays for a
// save on the way out; one that does neither loses the run. A promise costs nothing
// to take back, and neither does work without devices, which is priced in them.
func Price(v plan.View, id plan.RunID) (lost, restart unit.Duration, deviceMicros int64) {
	r := v.Run(id)
	j := v.Job(r.Job)
	switch r.Status {
	case plan.Promised, plan.Stopping, plan.Gone:
		return 0, 0, 0
	case plan.Starting:
		restart = j.Checkpoint.Load
	default:
		if j.Checkpoint.OnRequest {
			restart = add(j.Checkpoint.Save, j.Checkpoint.Load)
			break
		}
		restart = j.Checkpoint.Load
		ran, kept := v.Executed(r.Job)-j.Executed, r.Saved
		if every := j.Checkpoint.Every; every > 0 {
			kept = max(kept, ran/every*every)
		}
		lost = max(0, ran-kept) // a driver may count the pauses of a run as saved
	}
	milli := int64(0)
	v.GrantsOf(id, func(g plan.Grant) {
		if g.Device != plan.None {
			milli += int64(g.Reserve)
		}
	})
	return lost, restart, times(add(lost, restart), milli)
}

// times is a span times thousandths of devices in device-microseconds, rounded up so
// that no loss is free; what exceeds all numbers stays the largest of them.
func times(d unit.Duration, milli int64) int64 {
	if d <= 0 || milli <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(d), uint64(milli))
	lo, carry := bits.Add64(lo, 999, 0)
	if hi += carry; hi >= 1000 {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, 1000)
	return int64(min(q, math.MaxInt64))
}

// add adds two amounts that are not negative; the sum stops at the largest number.
func add[T ~int64](a, b T) T {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxInt64
}
