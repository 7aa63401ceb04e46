// Package placing starts a job: on devices that it may have, where the placer likes it best, on the terms that
// step 2 gave it and steps 4 and 5 add. Whose turn it is and who gives way is decided elsewhere.
package placing

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// Parts are those of a composition that have a word in how a job is started; as in package compose.
type Parts struct {
	Placer   allocate.Placer
	Rater    allocate.Rater
	Planner  Planner
	Switcher allocate.Switcher
	Flow     flow.Policy
	Explain  bool
}

// Planner is step 4 as a start asks it: the pipeline plan of a job that asked for one, on its slots, and what
// the null plan would take. Without slots it is a plan for like devices.
type Planner interface {
	Plan(v plan.View, job plan.JobID, on []plan.Slot) (p plan.Pipeline, null unit.Duration, ok bool)
}

// Others are those whose room a start has to leave alone.
type Others interface {
	// MayTake returns the device models, of a set, of which a job's queue lets it have so much, and what bars it
	// from the others.
	MayTake(v plan.View, job plan.JobID, models uint64, milli int64) (uint64, queue.Bar)
	// Bounds reports whether queues have limits at all.
	Bounds() bool
	// Holds are what claims and windows keep from a start, and whether there are any.
	Holds(d *plan.Draft, job plan.JobID, workers int32) ([]plan.Hold, bool)
	// Closes reports whether a window closes a node before an instant.
	Closes(node plan.NodeID, now, until unit.Time) bool
	// Started is told of a run that was promised by the last change of a draft.
	Started(d *plan.Draft, run plan.RunID)
}

// Why is what beside room keeps a job from starting; nothing of it where there is just no room.
type Why struct {
	Bar      plan.Reason // its queue may have no more
	Narrowed bool        // it may have fewer device models now than others of its shape
	Held     bool        // claims or windows have a word in where it may stand
}

// Also is what keeps a job from starting that was tried in two ways.
func (w Why) Also(o Why) Why {
	if o.Bar.Code != plan.NoReason {
		w.Bar = o.Bar
	}
	return Why{w.Bar, w.Narrowed || o.Narrowed, w.Held || o.Held}
}

// Placing starts jobs.
type Placing struct {
	parts  Parts
	others Others
	finder bool                 // the placer, or a link of it, may find room that the count of free devices does not show
	found  []allocate.Candidate // by the last try
	narrow plan.Shape           // of the job that is tried, with the models that it may have
}

// New starts jobs as the parts say, and leaves the room of others alone.
func New(parts Parts, others Others) *Placing {
	p := &Placing{parts: parts, others: others}
	for _, link := range allocate.Links(parts.Placer) {
		_, finds := strategy.Can[allocate.Finder](link)
		p.finder = p.finder || finds
	}
	return p
}

// MayFind reports whether the placer may find room for some job that the count of free devices does not show.
func (p *Placing) MayFind() bool { return p.finder }

// Finds reports whether it may for this job.
func (p *Placing) Finds(v plan.View, job plan.JobID) bool {
	if !p.finder {
		return false
	}
	f, ok := allocate.CanFor[allocate.Finder](p.parts.Placer, v, job)
	return ok && f.Finds(v, job)
}

// Guest reports whether a wish is for a run in the gaps of another's, which reserves nothing.
func Guest(w *allocate.Wish) bool { return w.Share != nil && w.Share.Guest != plan.None }

// Start promises a job n workers, on the slots wished or else where the placer likes it best: on devices that its
// queue may have, and that nobody else has a claim on. It keeps the processes that are said to be kept. It returns
// whether there is such a place, and if not why.
func (p *Placing) Start(d *plan.Draft, w *allocate.Wish, n int32, keeps plan.PlanTerms) (ok bool, why Why) {
	shape, why := p.mayHave(d, w, n)
	if shape == nil {
		return false, why
	}
	anywhere := w.Slots == nil && !Guest(w) && !p.Finds(d.View, w.Job)
	if anywhere && !shape.HasRoom(d.View, n) {
		return false, why
	}
	var holds []plan.Hold
	if holds, why.Held = p.others.Holds(d, w.Job, n); anywhere && !shape.HasRoom(d.View, n, holds...) {
		return false, why
	}
	d.Hold(holds)
	chosen := p.find(d, w, n, shape)
	began := chosen != nil && p.begin(d, w, chosen, keeps)
	if d.Unhold(); !began { // the calendar looks at what is free
		return false, why
	}
	p.others.Started(d, d.Job(w.Job).Run)
	return true, Why{}
}

// mayHave is the shape of a job with the device models of which its queue lets it have so many workers now; nil, with
// why, where those are none.
func (p *Placing) mayHave(d *plan.Draft, w *allocate.Wish, n int32) (shape *plan.Shape, why Why) {
	shape = d.Shape(w.Job)
	models, milli := shape.Models, shape.Milli(n)
	if w.Models != 0 {
		models &= w.Models
	}
	if Guest(w) {
		if milli = 0; p.others.Bounds() && d.Job(w.Share.Guest).Run == plan.None {
			return nil, why // without a host it would hold what nobody counts
		}
	}
	models, bar := p.others.MayTake(d.View, w.Job, models, milli)
	if bar.Kind != queue.NoBar && models == 0 {
		return nil, Why{Bar: plan.Barred(bar)}
	}
	if models != shape.Models {
		p.narrow = *shape
		p.narrow.Models = models
		shape, why.Narrowed = &p.narrow, true
	}
	return shape, why
}

// find is the place for n workers, nil if there is none: the slots wished, or that of those which the placer
// proposes that the rater likes best.
func (p *Placing) find(d *plan.Draft, w *allocate.Wish, n int32, shape *plan.Shape) *allocate.Candidate {
	need := allocate.Need{Job: w.Job, Attempt: d.Job(w.Job).Attempt, Workers: n, Shape: shape}
	switch p.found = p.found[:0]; {
	case w.Slots != nil:
		if !p.open(d.View, w, n, shape) {
			return nil
		}
		p.found = append(p.found, allocate.Candidate{Slots: slices.Clone(w.Slots)}) // placers use it again
	case p.parts.Rater != nil:
		p.found = p.parts.Placer.Place(d.View, need, ratedCandidates, p.found)
	case p.parts.Explain:
		p.found = p.parts.Placer.Place(d.View, need, 2, p.found)
	default:
		p.found = p.parts.Placer.Place(d.View, need, 1, p.found)
	}
	if len(p.found) == 0 {
		return nil
	}
	best := 0
	if p.parts.Rater != nil && len(p.found) > 1 {
		best = p.parts.Rater.Rate(d.View, need, p.found)
	}
	if w.Share != nil {
		p.found[best].Share = w.Share
	}
	return &p.found[best]
}

// open reports whether the slots wished are on devices of the shape's models, on nodes that no window closes before
// the job is likely to end.
func (p *Placing) open(v plan.View, w *allocate.Wish, n int32, shape *plan.Shape) bool {
	until := min(v.Now().Add(calendar.Length(v, w.Job, n)), calendar.Into(v, w.Job))
	return !slices.ContainsFunc(w.Slots, func(s plan.Slot) bool {
		return shape.Devices > 0 && shape.Models&(1<<v.Node(s.Node).Model) == 0 || p.others.Closes(s.Node, v.Now(), until)
	})
}

// ratedCandidates is how many places a rater is given to choose from.
const ratedCandidates = 8
