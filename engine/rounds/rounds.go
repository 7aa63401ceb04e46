// Package rounds carries out what a decider for all jobs at once wishes, as far as queues, the calendar and the law
// of package law let it.
package rounds

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/claims"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/engine/room"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Cycle is what a round has the cycle do, and asks of it.
type Cycle interface {
	room.Files
	Queue
	Words
}

// Queue is whose turn it is, and who has had it.
type Queue interface {
	// NextLeaf is the queue that is served next of those in which somebody asks, or none.
	NextLeaf() int32
	// Reserve gives a job that does not fit a place in the calendar, and reports whether that is this moment.
	Reserve(d *plan.Draft, job plan.JobID, why placing.Why) bool
	// Settled moves a job that was just promised a run from the waiting to the running.
	Settled(d *plan.Draft, it lines.Item, n, want int32)
	// Evicted queues the guests that have had to give way to what was started.
	Evicted(d *plan.Draft)
}

// Words are why jobs wait.
type Words interface {
	// Obstacle is what keeps a job from starting, and Explain says so, where the decider has this reason.
	Obstacle(d *plan.Draft, job plan.JobID, own plan.Reason) plan.Reason
	Explain(d *plan.Draft, job plan.JobID, own plan.Reason)
}

// Round is the part that decides for all jobs at once, with what it wished last. It is
// asked when something happened, no more often than its rhythm allows for the sake of
// running jobs, and at once where a job waits and there is room.
type Round struct {
	abilities
	Questions // of a decider whose answers come from outside
	cycle     Cycle
	switcher  allocate.Switcher
	placing   *placing.Placing
	room      *room.Maker
	claims    *claims.Claims
	lines     *lines.Lines

	line      []plan.JobID // waiting or running, by id
	shown     []plan.JobID // of them, to the decider; scratch
	wishes    []allocate.Wish
	wish      []int32      // by job: its wish, counted from 1, while wishes are carried out
	yields    []plan.JobID // runs that the decider wishes away or smaller, and that go on until others need their room
	turns     []plan.JobID // runs that it wishes suspended, and that go on until another takes their turn, where the queues or the calendar rule
	ended     endings      // of runs that it has ended at once
	why       reasons
	otherwise bool       // a run goes on where it is though it is wished at another size, or elsewhere
	asking    [][]asking // by leaf: who asks for room still, in the order of their turns
	wake      unit.Time  // of the claims when they were remembered
	between   bool       // only starts are carried out: runs are looked at when the rhythm allows it
	last      unit.Time  // when wishes were asked for
	again     unit.Time
}

// abilities are the decider, and what it can do beside its contract.
type abilities struct {
	decider allocate.Joint
	rhythm  allocate.Rhythm // it has one
	renter  allocate.Renter // it rents
	gathers bool            // jobs are to wait for a batch
}

// DefaultHorizon is how far ahead the gain of a change counts.
const DefaultHorizon = unit.Hour

// New makes the round of a decider that was not asked yet.
func New(d allocate.Joint, switcher allocate.Switcher, by *placing.Placing, cycle Cycle) *Round {
	r := &Round{abilities: abilities{decider: d}, switcher: switcher, placing: by, cycle: cycle, wake: unit.Never}
	r.slow, _ = strategy.Can[allocate.Slow](d)
	r.rhythm, _ = strategy.Can[allocate.Rhythm](d)
	r.renter, _ = strategy.Can[allocate.Renter](d)
	if by, ok := strategy.Can[allocate.Rotating](d); ok {
		r.ended.turn = by.Turn()
	}
	_, r.gathers = strategy.Can[allocate.Gathering](d)
	return r
}

// Reset forgets who is in the line, and when the decider was asked.
func (r *Round) Reset() { r.line, r.asking, r.asked, r.last = r.line[:0], nil, nil, -1 }

// Take has a round use those who say who may have room, who gets it, and who waits.
func (r *Round) Take(m *room.Maker, c *claims.Claims, l *lines.Lines) {
	r.room, r.claims, r.lines = m, c, l
	c.SetWake(r.wake)
}

// Figures are when the decider was and wants to be asked, when a run may be displaced again and whether something
// has happened since it was asked: what Recall wants to know.
func (r *Round) Figures() [4]int64 {
	between := int64(0)
	if r.between {
		between = 1
	}
	if r.claims != nil {
		r.wake = r.claims.Wake()
	}
	return [4]int64{int64(r.last), int64(r.again), int64(r.wake), between}
}

// Recall goes on from where the figures were taken. A question that was out is put again.
func (r *Round) Recall(f [4]int64) {
	r.last, r.again, r.wake, r.between, r.asked = unit.Time(f[0]), unit.Time(f[1]), unit.Time(f[2]), f[3] != 0, nil
	if r.claims != nil {
		r.claims.SetWake(r.wake)
	}
}

// Ask asks the decider what it wishes, and reports whether it did.
func (r *Round) Ask(d *plan.Draft, why schedule.Trigger) bool {
	r.learn(why.Answers)
	r.shown = startable(d.View, r.line, r.shown[:0])
	if why.Rebuilt && r.last >= 0 && r.next(d.Now()) > d.Now() {
		r.pose(d.View, r.shown) // it may have been out
		return false            // nothing has happened, and what time alone makes it wish it says when to ask for
	}
	r.between = min(r.mayAsk(d.Now()), r.again) > d.Now() && len(why.Answers) == 0
	if r.between {
		if !r.idles(d.View) {
			return false
		}
		if r.slow != nil || r.gathers { // it knows nothing new
			r.wishes = r.wishes[:0]
			return r.room.Ruled()
		}
		r.wishes, _ = r.decider.Wishes(d.View, r.shown, r.wishes[:0])
		return true
	}
	r.last = d.Now()
	r.pose(d.View, r.shown)
	r.wishes, r.again = r.decider.Wishes(d.View, r.shown, r.wishes[:0])
	if r.again <= d.Now() {
		panic(fmt.Sprintf("rounds: a joint decider wants to decide again at %d, which is not after %d", r.again, d.Now()))
	}
	return true
}

// startable adds who a decider decides about: those in a line, but for waiting jobs that would not fit on the usable nodes
// even if these were empty. They are in nobody's way.
func startable(v plan.View, line, into []plan.JobID) []plan.JobID {
	var out []plan.NodeID
	for id := range plan.NodeID(v.Nodes()) {
		switch v.Node(id).Status {
		case plan.Down, plan.Cordoned, plan.Quarantined:
			out = append(out, id)
		}
	}
	into = append(into, line...)
	if len(out) == 0 {
		return into
	}
	return slices.DeleteFunc(into, func(job plan.JobID) bool {
		shape, _ := v.Kind(job)
		of := v.Shape(job)
		return v.RunOf(job) == plan.None && v.CapacityFor(shape, of.Models, out...) < int64(of.Least())
	})
}

// idles reports whether a job waits that there is free room for, or a claim to room:
// that does not wait for the decider's rhythm.
func (r *Round) idles(v plan.View) bool {
	last := int32(plan.None) // the shape looked at last, where all of a shape are alike
	for _, id := range r.line {
		if !r.lines.InLine(id) {
			continue
		}
		if shape, _ := v.Kind(id); !r.claims.Bounds() {
			if shape == last {
				continue
			}
			last = shape
		}
		j, shape := v.Job(id), v.Shape(id)
		least := shape.Least()
		leaf := r.claims.LeafOf(v, &j)
		if r.claims.Shared() && r.claims.Entitled(leaf, shape.Models, shape.Milli(least), j.Priority) {
			return true
		}
		if models, _ := v.MayTake(&r.claims.Ledger, id, shape.Models, shape.Milli(least)); models != 0 && shape.HasRoom(v, least) {
			return true
		}
	}
	return false
}

// mayAsk is the first instant at which the decider may be asked by its rhythm.
func (r *Round) mayAsk(now unit.Time) unit.Time {
	if r.rhythm != nil && r.last >= 0 {
		return max(now, r.last.Add(r.rhythm.Every()))
	}
	return now
}

// next is when the decider is to be asked next: as it said, or as soon as its rhythm allows where something
// has happened since.
func (r *Round) next(now unit.Time) unit.Time {
	if r.between {
		return min(r.again, r.mayAsk(now))
	}
	return r.again
}

// AskNext is when the decider is to be asked next, but not while nothing runs
// and nobody who waits could start, whatever it wishes.
func (r *Round) AskNext(v plan.View) unit.Time {
	if r.renter == nil && !slices.ContainsFunc(r.line, r.lines.Runs) && !r.idles(v) {
		return unit.Never
	}
	return r.next(v.Now())
}

// QueueUp keeps the jobs that wait or run in the line that the decider is shown.
func (r *Round) QueueUp(id plan.JobID, lives bool) {
	switch at, in := slices.BinarySearch(r.line, id); {
	case lives && !in:
		r.line = slices.Insert(r.line, at, id)
	case !lives && in:
		r.line = slices.Delete(r.line, at, at+1)
	}
}

// of is the wish for a job, nil if there is none.
func (r *Round) of(id plan.JobID) *allocate.Wish {
	if int(id) < len(r.wish) && r.wish[id] > 0 {
		return &r.wishes[r.wish[id]-1]
	}
	return nil
}

// Rent sends for the nodes that the decider wants and gives back those it does not.
func (r *Round) Rent(d *plan.Draft) {
	if r.renter == nil {
		return
	}
	want, unwanted := r.renter.Rentals(d.View)
	for _, id := range want {
		d.Rent(id, plan.Reason{Code: plan.Rented, A: int64(id)})
	}
	for _, id := range unwanted {
		d.Return(id, plan.Reason{Code: plan.NotNeeded, A: int64(id)})
	}
}

// Next is who asks next of a leaf where somebody does, and the turn of that among all who ask.
func (r *Round) Next(leaf int32) (job plan.JobID, turn int32) {
	a := &r.asking[leaf][0]
	return a.job, a.turn
}
