// Package room gets a job its room: what is free, or else what others give up for it, by a claim of their queues,
// by moves, or by rank. It keeps the law of package law and that of a commit, plan.View.Law, that nobody's run is
// ended in vain: a run gives way to one start of the same decision that needs its room, whoever wished for that,
// and who gave way takes nothing from others in it.
package room

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/agenda"
	"github.com/musterdl/muster/engine/claims"
	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/moves"
	"github.com/musterdl/muster/schedule/victims"
)

// Parts are those of a composition that have a word in who gives way; as in package compose.
type Parts struct {
	Order   schedule.Order   // nil under a joint decider
	Rules   schedule.Rules   // of the order
	Weigher schedule.Weigher // the order, if it is one
	Victims victims.Chooser  // nil are the lowest ranked for a rank, and the cheapest for a claim
	Moves   moves.Policy
	Sharer  allocate.Sharer
}

// Round is what a joint decider's round says of the runs in the way of its wishes.
type Round interface {
	// Turn is how long jobs run at least that take turns by design, 0 where they do not.
	Turn() unit.Duration
	// Between reports whether only starts are carried out, of a round that was asked for before.
	Between() bool
	// Yields are the jobs whose runs the decider wishes away or smaller, and which go on until others need their room.
	Yields() []plan.JobID
	// GoesFrom is from when on such a run goes for a wish.
	GoesFrom(v plan.View, run plan.RunID) unit.Time
	// HandOver suspends those who are wished so on the devices of a wish, if that begins then.
	HandOver(d *plan.Draft, w *allocate.Wish, begins func() bool) bool
}

// Files are where jobs are filed: among those who wait, or those who run.
type Files interface {
	Drop(v plan.View, job plan.JobID)
	File(v plan.View, job plan.JobID)
	FileRunning(v plan.View, job plan.JobID)
	// Smaller is the next smaller size that a job may start with, or 0.
	Smaller(v plan.View, job plan.JobID, n int32) int32
}

// owners are whom is asked who may have room, when, and who is tried.
type owners struct {
	parts   Parts
	round   Round // nil under an order
	files   Files
	placing *placing.Placing
	agenda  *agenda.Agenda
	claims  *claims.Claims
	lines   *lines.Lines
}

// hand carries a wish out on the draft.
type hand struct {
	*owners
	keeps plan.PlanTerms // of a run that goes on in processes that are left, while it is started
	why   placing.Why    // what keeps the job that is tried from starting, in all ways that were tried
}

// begins starts a job as wished with n workers, and notes what keeps it from that.
func (h *hand) begins(d *plan.Draft, w *allocate.Wish, n int32) bool {
	ok, why := h.placing.Start(d, w, n, h.keeps)
	h.why = h.why.Also(why)
	return ok
}

// Maker gets jobs their room.
type Maker struct {
	*Grounds
	// Chooser chooses who gives way to a claim and, where the composition names it, to a rank.
	Chooser victims.Chooser

	hand     *hand
	yielding *yielding
	clearing *clearing
	found    []allocate.Candidate // of the sharer
	lows     []lines.Item         // scratch: who may end, and has not
	below    []lines.Item         // running jobs that are looked at and that rank below one that waits
	failed   []attempt            // how room could not be made since the draft last changed
}

// New gets jobs room as the parts say. A round is nil under an order.
func New(parts Parts, round Round, files Files, by *placing.Placing) *Maker {
	o := &owners{parts: parts, round: round, files: files, placing: by}
	h, g := &hand{owners: o}, &Grounds{owners: o}
	m := &Maker{Grounds: g, Chooser: parts.Victims, hand: h, yielding: &yielding{owners: o, hand: h, grounds: g}, clearing: &clearing{owners: o, hand: h, grounds: g}}
	if parts.Victims == nil {
		m.Chooser = &victims.Cheapest{}
	}
	return m
}

// Ask has the owners asked.
func (m *Maker) Ask(a *agenda.Agenda, c *claims.Claims, l *lines.Lines) {
	m.agenda, m.claims, m.lines = a, c, l
}

// Begin begins a decision, in which nobody stays yet.
func (m *Maker) Begin() {
	m.stays, m.failed, m.clearing.looked = m.stays[:0], m.failed[:0], 0
}

// Again begins a decision again, of which everything but who stays was taken back.
func (m *Maker) Again() { m.failed = m.failed[:0] }

// Ruled reports whether claims or the calendar have a word in who may run. Then a run is stopped only for one
// that starts in its room, since a decider may have wished it away for one that may not start.
func (m *Maker) Ruled() bool { return m.claims.Bounds() || !m.agenda.Empty() }

// Moves reports whether runs may be moved so that jobs fit.
func (m *Maker) Moves() bool { return m.clearing.may() }

// Scattered reports whether as much is free, in pieces, as a job takes at least, where runs may be moved to make
// one of them.
func (m *Maker) Scattered(v plan.View, shape *plan.Shape) bool { return m.clearing.scattered(v, shape) }

// Got is how a job fared that asked for room.
type Got struct {
	Workers int32 // of its run, 0 for none
	Took    bool  // others gave way
	Why     placing.Why
}

// Start starts a job as wished with n workers where there is room that is nobody else's, in the processes that are
// kept of its last run, if any are.
func (m *Maker) Start(d *plan.Draft, w *allocate.Wish, n int32, keeps plan.PlanTerms) bool {
	m.hand.keeps = keeps
	defer func() { m.hand.keeps = plan.PlanTerms{} }()
	return m.hand.begins(d, w, n)
}

// Place starts a job where there is room for it, at the size wished or the largest smaller one, or else in room
// that others must give up for it: what its queue may claim before what its rank may.
func (m *Maker) Place(d *plan.Draft, it lines.Item, w *allocate.Wish) (got Got) {
	m.hand.why = placing.Why{}
	got.Workers, got.Took = m.place(d, it, w)
	got.Why = m.hand.why
	return got
}

func (m *Maker) place(d *plan.Draft, it lines.Item, w *allocate.Wish) (n int32, took bool) {
	if n := m.free(d, w); n > 0 {
		return n, false
	}
	gave := d.Ended(w.Job)                                 // who gave way takes nothing by force in the same decision
	moves := gave != nil && gave.Reason.Code == plan.Moved // a guest, which goes on as one if it gets nothing
	force := moves || gave == nil && m.mayForce(d.View, w.Job)
	if force {
		if n := m.claim(d, w); n > 0 {
			return n, true
		}
	}
	beside, part := m.beside(d, w)
	if part >= asGood && m.hand.begins(d, &beside, beside.Workers) {
		return beside.Workers, false
	}
	if force {
		if n := m.clearing.clear(d, w); n > 0 {
			return n, true
		}
		if m.displace(d, it, w) {
			return w.Workers, true
		}
	}
	if part >= asWell && part < asGood && m.hand.begins(d, &beside, beside.Workers) {
		return beside.Workers, false
	}
	return 0, false
}

// mayForce returns whether others may be stopped or moved for a job: not before its last run has left, since it could not
// start, nor in the instant in which it was stopped, of which it notes when that is over.
func (m *Maker) mayForce(v plan.View, job plan.JobID) bool {
	j := v.Job(job)
	if j.Preemptions > 0 && j.Since == v.Now() {
		m.Retry = min(m.Retry, v.Now().Add(law.AtLeast))
		return false
	}
	return j.Leaving == plan.None
}

// claim takes room back for a job that its queue may claim, at the size wished or the largest smaller one, and
// returns that.
func (m *Maker) claim(d *plan.Draft, w *allocate.Wish) int32 {
	shape, j := d.Shape(w.Job), d.Job(w.Job)
	leaf := m.claims.LeafOf(d.View, &j)
	for n := w.Workers; n > 0; n = m.files.Smaller(d.View, w.Job, n) {
		entitled := m.claims.Shared() && m.claims.Entitled(leaf, shape.Models, shape.Milli(n), j.Priority) && m.claims.MayTakeBack(d.View, m.lines.Pass(), shape, j.Priority)
		if (entitled || m.round != nil && len(m.round.Yields()) > 0) && m.takeBack(d, w, n) {
			m.agenda.Overrule()
			return n
		}
	}
	return 0
}

// free starts a job in free room, at the size wished or the largest smaller one. Exact
// places that were wished for another time or for a cluster without claims are only
// tried.
func (m *Maker) free(d *plan.Draft, w *allocate.Wish) int32 {
	if w.Slots == nil {
		return m.anywhere(d, w)
	}
	if m.round.HandOver(d, w, func() bool { return m.hand.begins(d, w, w.Workers) }) {
		return w.Workers
	}
	if placing.Guest(w) || !m.round.Between() && !m.Ruled() {
		return 0
	}
	there := *w
	there.Slots = nil
	return m.anywhere(d, &there)
}

// anywhere starts a job where the placer likes it best, at the size wished or the largest smaller one.
func (m *Maker) anywhere(d *plan.Draft, w *allocate.Wish) int32 {
	for n := w.Workers; n > 0; n = m.files.Smaller(d.View, w.Job, n) {
		if m.hand.begins(d, w, n) {
			return n
		}
	}
	return 0
}

// asGood is the part of its rate at which a job takes a place beside others before any has to give way
// to it, and asWell the one at which it does rather than wait.
const asGood, asWell = 900, 200

// beside finds the place where a job would go fastest as the guest of others, at a size that it may have.
func (m *Maker) beside(d *plan.Draft, w *allocate.Wish) (there allocate.Wish, part int64) {
	if m.parts.Sharer == nil || m.round != nil || w.Slots != nil || d.Job(w.Job).Run != plan.None || d.Ended(w.Job) != nil {
		return there, 0
	}
	need := allocate.Need{Job: w.Job, Attempt: d.Job(w.Job).Attempt, Shape: d.Shape(w.Job)}
	for n := w.Workers; n > 0; n = m.files.Smaller(d.View, w.Job, n) {
		need.Workers = n
		m.found = m.parts.Sharer.Beside(d.View, need, m.found[:0])
		if len(m.found) > 0 {
			c := &m.found[0]
			return allocate.Wish{Job: w.Job, Workers: n, Slots: slices.Clone(c.Slots), Share: c.Share, Reason: plan.Reason{Code: plan.Packed, A: int64(c.Share.Guest)}}, c.Score
		}
	}
	return there, 0
}

// Hopeless reports what is plain of most who wait: fewer devices are free than the job takes at
// least, nobody ranks below it or shares devices with it, and no queue or claim has a word in it.
func (m *Maker) Hopeless(v plan.View, it *lines.Item, shape *plan.Shape) bool {
	if m.placing.MayFind() || m.parts.Sharer != nil || m.claims.Bounds() || m.parts.Victims != nil || shape.HasRoom(v, shape.Least()) || m.clearing.scattered(v, shape) {
		return false
	}
	if !m.parts.Rules.Preempt {
		return true
	}
	low, found := m.worst(v)
	return !found || !it.Before(&low)
}
