package compose

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// round is the part that decides for all jobs at once, with what it wished last. It is
// asked when something happened, no more often than its rhythm allows for the sake of
// running jobs, and at once where a job waits and there is room.
type round struct {
	decider allocate.Joint
	slow    allocate.Slow   // the decider, if its answers come from outside
	rhythm  allocate.Rhythm // the decider, if it has one
	renter  allocate.Renter // the decider, if it rents
	gathers bool            // jobs are to wait for a batch
	turn    unit.Duration   // how long jobs run at least that take turns by design, 0 where they do not
	line    []plan.JobID    // waiting or running, by id
	wishes  []allocate.Wish
	wish    []int32      // by job: its wish, counted from 1, while wishes are carried out
	yields  []plan.JobID // runs that the decider wishes away or smaller, and that go on until others need their room
	turns   []plan.JobID // runs that it wishes suspended, and that go on until another takes their turn, where the queues or the calendar rule
	ended   []ending     // runs that it has ended at once
	failed  []attempt    // what could not be made room for, since the draft last changed
	why     []because    // by shape: why its jobs wait; since turn whyOf of the draft
	whyOf   int64
	asking  [][]asking // by leaf: who asks for room still, in the order of their turns
	wake    unit.Time  // of the claims when they were remembered
	between bool       // only starts are carried out: runs are looked at when the rhythm allows it
	last    unit.Time  // when wishes were asked for
	again   unit.Time
	asked   []byte // the question that is out, nil for none
	asks    []strategy.Ask
}

// DefaultHorizon is how far ahead the gain of a change counts.
const DefaultHorizon = unit.Hour

var (
	_ schedule.Scheduler   = (*Scheduler)(nil)
	_ schedule.Rebuilder   = (*Scheduler)(nil)
	_ strategy.Remembering = (*Scheduler)(nil)
	_ strategy.Asker       = (*Scheduler)(nil)
	_ strategy.Answerer    = (*Scheduler)(nil)
)

// newRound makes the round of a decider that was not asked yet.
func newRound(d allocate.Joint) *round {
	r := &round{decider: d, wake: unit.Never}
	r.slow, _ = strategy.Can[allocate.Slow](d)
	r.rhythm, _ = strategy.Can[allocate.Rhythm](d)
	r.renter, _ = strategy.Can[allocate.Renter](d)
	if by, ok := strategy.Can[allocate.Rotating](d); ok {
		r.turn = by.Turn()
	}
	_, r.gathers = strategy.Can[allocate.Gathering](d)
	return r
}

// ask asks the decider what it wishes, and reports whether it did.
func (s *Scheduler) ask(d *plan.Draft, why schedule.Trigger) bool {
	r := s.round
	if r.slow != nil {
		for _, a := range why.Answers {
			if r.asked = nil; len(a.Reply) > 0 {
				r.slow.Learn(a.Reply)
			}
		}
	}
	if why.Rebuilt && r.last >= 0 && r.next(d.Now()) > d.Now() {
		r.pose(d.View) // it may have been out
		return false   // nothing has happened, and what time alone makes it wish it says when to ask for
	}
	r.between = min(r.mayAsk(d.Now()), r.again) > d.Now() && len(why.Answers) == 0
	if r.between {
		if !s.idles(d.View) {
			return false
		}
		if r.slow != nil || r.gathers { // it knows nothing new
			r.wishes = r.wishes[:0]
			return s.ruled()
		}
		r.wishes, _ = r.decider.Wishes(d.View, r.line, r.wishes[:0])
		return true
	}
	r.last = d.Now()
	r.pose(d.View)
	r.wishes, r.again = r.decider.Wishes(d.View, r.line, r.wishes[:0])
	if r.again <= d.Now() {
		panic(fmt.Sprintf("compose: a joint decider wants to decide again at %d, which is not after %d", r.again, d.Now()))
	}
	return true
}

// idles reports whether a job waits that there is free room for, or a claim to room:
// that does not wait for the decider's rhythm.
func (s *Scheduler) idles(v plan.View) bool {
	last := int32(plan.None) // the shape looked at last, where all of a shape are alike
	for _, id := range s.round.line {
		if !s.lines.InLine(id) {
			continue
		}
		if shape, _ := v.Kind(id); !s.claims.Bounds() {
			if shape == last {
				continue
			}
			last = shape
		}
		j, shape := v.Job(id), v.Shape(id)
		least := shape.Least()
		leaf := s.claims.LeafOf(v, &j)
		if s.claims.Shared() && s.claims.Entitled(leaf, shape.Models, shape.Milli(least), j.Priority) {
			return true
		}
		if models, _ := v.MayTake(&s.claims.Ledger, id, shape.Models, shape.Milli(least)); models != 0 && roomFor(v, shape, least) {
			return true
		}
	}
	return false
}

// mayAsk is the first instant at which the decider may be asked by its rhythm.
func (r *round) mayAsk(now unit.Time) unit.Time {
	if r.rhythm != nil && r.last >= 0 {
		return max(now, r.last.Add(r.rhythm.Every()))
	}
	return now
}

// next is when the decider is to be asked next: as it said, or as soon as its rhythm allows where something
// has happened since.
func (r *round) next(now unit.Time) unit.Time {
	if r.between {
		return min(r.again, r.mayAsk(now))
	}
	return r.again
}

// askNext is when the decider is to be asked next, but not while nothing runs
// and nobody who waits could start, whatever it wishes.
func (s *Scheduler) askNext(v plan.View) unit.Time {
	if s.round.renter == nil && !slices.ContainsFunc(s.round.line, s.lines.Runs) && !s.idles(v) {
		return unit.Never
	}
	return s.round.next(v.Now())
}

// pose puts the decider's question outside, one at a time.
func (r *round) pose(v plan.View) {
	if r.slow == nil || r.asked != nil {
		return
	}
	if question := r.slow.Question(v, r.line); question != nil {
		r.asked = question
		r.asks = append(r.asks, strategy.Ask{Question: question})
	}
}

// Asks hands over the questions of the last decision.
func (s *Scheduler) Asks() (asks []strategy.Ask) {
	if s.round != nil {
		asks, s.round.asks = s.round.asks, nil
	}
	return asks
}

// Answer solves a question that the decider put.
func (s *Scheduler) Answer(question []byte) ([]byte, error) {
	if s.round != nil && s.round.slow != nil {
		return s.round.slow.Solve(question)
	}
	return nil, fmt.Errorf("this strategy asks nothing")
}

// queueUp keeps the jobs that wait or run in the line that the decider is shown.
func (r *round) queueUp(id plan.JobID, lives bool) {
	switch at, in := slices.BinarySearch(r.line, id); {
	case lives && !in:
		r.line = slices.Insert(r.line, at, id)
	case !lives && in:
		r.line = slices.Delete(r.line, at, at+1)
	}
}

// of is the wish for a job, nil if there is none.
func (r *round) of(id plan.JobID) *allocate.Wish {
	if int(id) < len(r.wish) && r.wish[id] > 0 {
		return &r.wishes[r.wish[id]-1]
	}
	return nil
}

// rent sends for the nodes that the decider wants and gives back those it does not.
func (s *Scheduler) rent(d *plan.Draft) {
	if s.round.renter == nil {
		return
	}
	want, unwanted := s.round.renter.Rentals(d.View)
	for _, id := range want {
		d.Rent(id, plan.Reason{Code: plan.Rented, A: int64(id)})
	}
	for _, id := range unwanted {
		d.Return(id, plan.Reason{Code: plan.NotNeeded, A: int64(id)})
	}
}
