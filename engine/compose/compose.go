// Package compose builds the Scheduler that the engine calls from parts: an
// estimator, a gate, an order, a sizer, a placer, a pipeline planner and a flow
// policy. Package lines keeps the heaps: nobody sorts the queue.
//
// Waiting jobs of one owner, of equal shape and about one length, form a class with a heap of its own. When the best
// job of a class cannot be placed, none of them can, and the class is not tried
// again until room it could use comes free, a better job joins it, or (where the
// order preempts) a running job's rank gets worse. A decision therefore costs what
// changed, not the length of the queue.
package compose

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/agenda"
	"github.com/musterdl/muster/engine/booking"
	"github.com/musterdl/muster/engine/claims"
	"github.com/musterdl/muster/engine/filing"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/engine/pipelines"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/engine/room"
	"github.com/musterdl/muster/engine/rounds"
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/moves"
	"github.com/musterdl/muster/schedule/victims"
)

// Parts are what a Scheduler is composed of. Estimator, Placer, Flow and either Joint or
// Order and Sizer are required; a nil Gate admits all, a nil Planner plans nothing, a
// nil Reaction changes no run, nil
// Victims are the lowest ranked for a rank and the cheapest for a claim.
type Parts struct {
	Estimator profile.Estimator
	Gate      schedule.Gate
	Order     schedule.Order
	Sizer     allocate.Sizer
	Placer    allocate.Placer
	Planner   placing.Planner
	Reaction  reaction.Policy
	Flow      flow.Policy
	Victims   victims.Chooser
	Reserve   calendar.Policy
	// Moves, where there is one, has runs go elsewhere under an order so that a job fits.
	Moves moves.Policy
	// Rater, where there is one, chooses among the placer's candidates.
	Rater allocate.Rater
	// Sharer, where there is one, lets jobs that would wait under an order live beside others.
	Sharer allocate.Sharer
	// Switcher, where there is one, prices suspending: a joint decider's slice that is not
	// worth its switch is not made.
	Switcher allocate.Switcher
	// Joint, where there is one, decides for all jobs at once: Order and Sizer are not
	// asked, and neither is a part whose contract it fulfils as well.
	Joint allocate.Joint
	// Explain asks for the best rejected alternative of every decision, for dossiers.
	// It never changes a decision.
	Explain bool
}

// Scheduler is a composed one, under an order or a joint decider. It implements
// schedule.Scheduler, schedule.Rebuilder and strategy.Remembering; its caches follow from
// the State, and what it remembers besides is when it is to look next and the memories of
// its parts. Each of its owners answers one question about a job that wishes to run.
type Scheduler struct {
	parts       Parts
	rules       schedule.Rules
	able        abilities
	round       *rounds.Round  // of a joint decider, nil under an order
	lines       *lines.Lines   // whom to try
	claims      *claims.Claims // who may
	room        *room.Maker    // and who gives way
	agenda      agenda.Agenda  // when
	files       *filing.Files  // where jobs are filed until then
	books       *booking.Books // who gets room to come
	turns       filing.Turns   // whose turn it is
	reactions   pipelines.Reactions
	placing     *placing.Placing // how
	making      making
	memory      []byte // as it was encoded last
	judge       plan.Judge
	newBorrower bool // a start put a queue above its guarantee: others may have a claim now
}

// making is what it takes to carry a wish out on the draft.
type making struct {
	wish    allocate.Wish   // for the job that an order tries
	scanned int             // of the draft's changes, for guests that had to give way
	cut     []plan.DeviceID // devices that another strategy left cut
	resize  unit.Time
}

var (
	_ schedule.Scheduler   = (*Scheduler)(nil)
	_ schedule.Rebuilder   = (*Scheduler)(nil)
	_ strategy.Remembering = (*Scheduler)(nil)
	_ strategy.Asker       = (*Scheduler)(nil)
	_ strategy.Answerer    = (*Scheduler)(nil)
)

// item is a ranked job.
type item = lines.Item

// New composes a Scheduler, within what its order puts around it.
func New(parts Parts) schedule.Scheduler {
	s := &Scheduler{parts: parts}
	if d := parts.Joint; d != nil {
		s.parts.Order, s.parts.Sizer = nil, nil
		instead(&s.parts.Gate, d)
		instead(&s.parts.Rater, d)
		instead(&s.parts.Switcher, d)
	} else {
		s.rules = parts.Order.Rules()
	}
	s.able = s.parts.abilities()
	s.placing = placing.New(placing.Parts{Placer: s.parts.Placer, Rater: s.parts.Rater, Planner: s.parts.Planner, Switcher: s.parts.Switcher, Flow: s.parts.Flow, Explain: s.parts.Explain}, others{s})
	planner, _ := parts.Planner.(*pipelines.Planner)
	s.reactions = pipelines.NewReactions(parts.Reaction, planner, hands{s})
	s.files = filing.New(filing.Parts{Order: s.parts.Order, Rules: s.rules, Sharer: s.parts.Sharer, Reserve: s.parts.Reserve, Patient: s.able.patient}, s.placing, &s.reactions)
	var joint room.Round
	if d := parts.Joint; d != nil {
		s.round = rounds.New(d, s.parts.Switcher, s.placing, cycle{s.files, s})
		joint = s.round
	}
	s.room = room.New(room.Parts{Order: s.parts.Order, Rules: s.rules, Weigher: s.able.weigher, Victims: parts.Victims, Moves: parts.Moves, Sharer: parts.Sharer}, joint, s.files, s.placing)
	s.books = booking.New(booking.Parts{Order: s.parts.Order, Rules: s.rules, Depth: s.parts.Reserve.Depth})
	s.reset()
	if c, ok := strategy.Can[schedule.Controlled](s.parts.Order); ok {
		return c.Control(s)
	}
	return s
}

// instead puts a joint decider in the place of a part whose contract it fulfils as well.
func instead[T any](part *T, d allocate.Joint) {
	if own, ok := strategy.Can[T](d); ok {
		*part = own
	}
}

func (s *Scheduler) reset() {
	s.lines, s.able.learned = nil, nil
	s.files.Elastic, s.making.resize = 0, unit.Never
	s.agenda = agenda.New(s.parts.Reserve, s.books.Rights())
	s.room.Reset()
	if s.round != nil {
		s.round.Reset()
	}
}

// Rebuild forgets every cache; the engine names all live jobs in the next trigger.
func (s *Scheduler) Rebuild(v plan.View) {
	s.reset()
	s.plant(v)
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Phase == plan.Finished {
			s.grow(v)
			s.learn(v, id)
		}
	}
	s.making.cut = s.making.cut[:0]
	for id := range plan.DeviceID(v.Devices()) {
		if v.Device(id).Geometry != 0 {
			s.making.cut = append(s.making.cut, id)
		}
	}
}

// plant reads the tree of queues, with nothing filed in it.
func (s *Scheduler) plant(v plan.View) {
	s.claims = claims.New(v, s.rules.Preempt || s.round != nil)
	s.lines = lines.New(lines.Rules{Strict: s.rules.Strict, Short: s.shortFirst()}, s.claims)
	s.room.Ask(&s.agenda, s.claims, s.lines)
	s.files.Ask(s.room, &s.agenda, s.claims, s.lines)
	s.books.Ask(&s.agenda, s.claims, s.lines)
	var asking filing.Asking
	if s.round != nil {
		s.round.Take(s.room, s.claims, s.lines)
		asking = s.round
	}
	s.turns = filing.NewTurns(s.claims, s.lines, asking)
}

// mend makes devices whole that another strategy left cut, as they fall idle: the
// parts of step 2 place on whole devices and on shares of them.
func (s *Scheduler) mend(d *plan.Draft) {
	s.making.cut = slices.DeleteFunc(s.making.cut, func(id plan.DeviceID) bool {
		if d.Device(id).First == plan.None {
			d.Reshape(id, 0, plan.Reason{Code: plan.Partitioned})
		}
		return d.Device(id).Geometry == 0
	})
}

// Decide is the cycle.
//  1. Take in what changed, and what runs were seen to do.
//  2. Open again what room or time has made worth a try.
//  3. Open the calendar: the claims of jobs that still wait, and the windows.
//  4. End guests that slow their hosts, and let jobs run: under an order resize, and then place job after job as the heap and
//     the tree of queues put them; under a joint decider ask for its wishes, if it is time
//     to, and place them. Whoever wished, place is what asks claims, calendar and victims,
//     and what would end a run in vain or against the law is decided again without that.
//  5. Give the oldest that has waited too long a claim.
//  6. Give runs another plan whose stages have drifted, where that pays.
//  7. Set what runs get of the network.
//  8. Keep the calendar, and say when to look again.
func (s *Scheduler) Decide(d *plan.Draft, why schedule.Trigger) unit.Time {
	if s.lines == nil {
		s.plant(d.View)
	}
	s.grow(d.View)
	s.lines.NextPass()
	s.making.scanned = 0
	s.room.Begin()
	for _, id := range why.Jobs {
		if d.Job(id).Phase == plan.Finished {
			s.learn(d.View, id)
		}
	}
	for _, id := range why.Jobs {
		s.fileByPhase(d, id)
	}
	s.files.RankAnew(d.View)
	s.files.RankObserved(d.View, why.Observed)
	why.Rebuilt = why.Rebuilt && s.claims.Wake() > d.Now() // else that is what has happened
	s.reopen(d, why.Room)
	s.books.Open(d)
	asked, ask, from := true, unit.Never, len(d.Changes())
	if s.round == nil {
		s.untilLawful(d, func() {
			s.unpack(d, &why)
			s.rebalance(d)
			s.reactions.GoOn(d, why.Broken)
			s.start(d)
		})
	} else if asked = s.round.Ask(d, why); asked {
		s.untilLawful(d, func() {
			s.unpack(d, &why)
			s.round.CarryOut(d)
			s.reactions.GoOn(d, why.Broken)
		})
		s.round.Remember(d, d.Changes()[from:])
		s.round.Rent(d)
	} else {
		s.unpack(d, &why)
		s.reactions.GoOn(d, why.Broken)
		if !why.Rebuilt {
			s.round.PutOffAll(d, why.Jobs)
		}
	}
	s.books.ReserveForOldest(d)
	s.reactions.Replan(d, why.Observed)
	if asked {
		s.shapeTraffic(d, why)
	}
	d.Reserve(s.agenda.Close())
	if s.round != nil {
		ask = s.round.AskNext(d.View)
	} else if s.files.Elastic > 0 && s.making.resize == unit.Never {
		s.making.resize = d.Now().Add(resizeEvery)
	}
	return min(s.files.Expires(), s.making.resize, s.room.Retry, s.claims.Wake(), s.agenda.Wake(d.Now()), ask)
}

// grow makes room for jobs and shapes that are new.
func (s *Scheduler) grow(v plan.View) {
	s.lines.Grow(v.Jobs())
	s.claims.Grow(v.Jobs())
	for len(s.able.learned) < v.Jobs() {
		s.able.learned = append(s.able.learned, false)
	}
}

// fileByPhase files a job where its phase says it belongs.
func (s *Scheduler) fileByPhase(d *plan.Draft, id plan.JobID) {
	j := d.Job(id)
	was, ranked := s.lines.Ranked(id)
	s.files.Drop(d.View, id)
	s.claims.DropWaiting(id)
	if s.round != nil {
		defer func() { s.round.QueueUp(id, s.lines.Filed(id)) }()
	}
	switch {
	case j.Phase == plan.Waiting && s.files.Never(d.View, id):
		s.explain(d, id, plan.None, plan.Reason{})
	case j.Phase == plan.Waiting:
		if j.Attempt == 0 && !s.parts.admit(d, id, &j) {
			return
		}
		if s.files.File(d.View, id); s.able.weigher != nil {
			s.lines.ReopenAll() // it may fill what another's start leaves, so that this pays
		}
	case j.Phase == plan.Active:
		s.files.FileActive(d.View, id)
		if r := d.Run(j.Run); s.rules.Preempt && r.Began == d.Now() {
			s.room.Retry = d.Now() // a promise no more: those ranked before it try again
		}
		if is, now := s.lines.Ranked(id); ranked && now && was.Before(&is) {
			s.lines.ReopenAll() // it may have to give way now
		}
	}
}

// reopen lets those be tried again for whom there may be a place now.
func (s *Scheduler) reopen(d *plan.Draft, room bool) {
	s.claims.Age(d.View)
	if room || s.room.Retry <= d.Now() {
		s.files.RecallAside(d.View)
	}
	if room {
		s.mend(d)
		s.files.ReopenRoomy(d.View)
	}
	if s.room.Retry <= d.Now() {
		s.room.Retry = unit.Never
		s.lines.ReopenAll()
	}
	if s.claims.Wake() <= d.Now() {
		s.claims.SetWake(unit.Never)
		s.files.ReopenTakers(d.View)
	}
	s.files.Expire(d)
}
