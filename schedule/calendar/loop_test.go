package calendar_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
)

// work is a job of a random case, with its truth.
type work struct {
	arrive unit.Time
	truth  unit.Duration
	job    plan.Job // with what is believed
	shape  plan.Shape
}

// fate is what became of a job.
type fate struct {
	id       plan.JobID
	end      unit.Time // true, once it runs; Never before
	started  unit.Time
	claimed  unit.Time // At of its claim as first made; Never without
	rank     int       // of the claim as first made
	bound    unit.Time // by when it must start once its claim has come due
	hopeless bool
}

// loop is a tiny event loop: strict order of arrival with so many claims, and work
// filled in around them.
type loop struct {
	s       *plan.State
	cal     calendar.Calendar
	placer  allocate.Placer
	depth   int  // claims at most; 0 fills nothing in: strict order
	sure    bool // estimates are upper bounds: no claim is ever given up
	unknown bool // no end is known: a claim is due when it is made
	works   []work
	fates   []fate
	waiting []int
	running map[plan.RunID]int
	open    func(v plan.View) error // looks at what runs in the place of the loop
	look    func(l *loop) error
}

func newLoop(c *cluster.Cluster, works []work, placer allocate.Placer, depth int) *loop {
	l := &loop{s: plan.NewState(c), placer: placer, depth: depth, works: works, running: map[plan.RunID]int{}}
	l.cal.Slack = unit.Duration(len(works) % 3 * 10)
	for range works {
		l.fates = append(l.fates, fate{end: unit.Never, started: unit.Never, claimed: unit.Never, rank: -1, bound: unit.Never})
	}
	return l
}

// run plays the case to its end.
func (l *loop) run() error {
	next := 0
	for {
		at := l.cal.Wake(l.s.Now)
		if l.depth == 0 && len(l.running) == 0 && next == len(l.works) && len(l.waiting) == 0 {
			return nil
		}
		if next < len(l.works) {
			at = min(at, l.works[next].arrive)
		}
		for _, i := range l.running {
			at = min(at, l.fates[i].end)
		}
		if at == unit.Never {
			break
		}
		l.s.Now = at
		l.finish()
		for ; next < len(l.works) && l.works[next].arrive <= at; next++ {
			l.admit(next)
		}
		if err := l.decide(); err != nil {
			return fmt.Errorf("at %d: %w", at, err)
		}
	}
	if len(l.waiting) > 0 {
		return fmt.Errorf("jobs %v were never started", l.waiting)
	}
	return l.s.Check()
}

func (l *loop) finish() {
	for run := range plan.RunID(len(l.s.Runs)) {
		if i, ok := l.running[run]; ok && l.fates[i].end <= l.s.Now {
			delete(l.running, run)
			l.s.EndRun(run, l.works[i].truth)
			l.s.SetPhase(l.fates[i].id, plan.Finished, plan.Reason{})
		}
	}
}

func (l *loop) admit(i int) {
	w := &l.works[i]
	l.s.Shapes = append(l.s.Shapes, w.shape)
	w.job.Shape = int32(len(l.s.Shapes) - 1)
	id := l.s.Admit(fmt.Sprint(i), w.job.Asked)
	l.s.Jobs[id].Estimate, l.fates[i].id = w.job.Estimate, id
	l.waiting = append(l.waiting, i)
}

func (l *loop) decide() error {
	d := l.s.Edit()
	if l.open != nil {
		if err := l.open(d.View); err != nil {
			return err
		}
	} else {
		l.cal.Look(d.View, func(run plan.RunID) (unit.Time, bool) { return calendar.Ends(d.View, run), false })
	}
	if lost := l.cal.Revise(nil); len(lost) > 0 && l.sure {
		return fmt.Errorf("the claims of %v were given up", lost)
	}
	l.due()
	kept, blocked := l.waiting[:0], false
	for _, i := range l.waiting {
		f := &l.fates[i]
		if !(blocked && l.depth == 0) && l.try(d, i) {
			continue
		}
		blocked = true
		if l.depth > len(l.cal.Claims()) && l.cal.Find(f.id) < 0 {
			w := &l.works[i]
			claim, ok := l.cal.Earliest(f.id, w.shape.Gang, calendar.Length(d.View, f.id, w.shape.Gang))
			if !ok && len(l.cal.Claims()) == 0 {
				f.hopeless = true // it would not fit an empty cluster
				continue
			}
			if !ok {
				kept = append(kept, i) // not beside a claim whose end is unknown
				continue
			}
			if err := l.checkEarliest(claim); err != nil {
				return err
			}
			l.cal.Insert(len(l.cal.Claims()), claim)
			if f.claimed == unit.Never {
				f.claimed, f.rank = claim.At, len(l.cal.Claims())-1
			}
			l.due()
			if claim.At == d.Now() && l.try(d, i) {
				continue // with its own room left open there is a place
			}
		}
		kept = append(kept, i)
	}
	l.waiting = kept
	changes, _ := d.Commit()
	for _, c := range slices.Clone(changes) {
		if len(c.After) > 0 {
			return fmt.Errorf("a start waits for %v", c.After)
		}
		l.s.Dispatch(c.Run)
		l.s.Began(c.Run)
	}
	if l.look != nil {
		return l.look(l)
	}
	return nil
}

// due notes by when the first claim must be honoured once it has come due.
func (l *loop) due() {
	if len(l.cal.Claims()) == 0 {
		return
	}
	claim := l.cal.Claims()[0]
	f := &l.fates[claim.Job]
	if f.bound != unit.Never || claim.Due > l.s.Now && !l.unknown {
		return
	}
	f.bound = l.s.Now
	for run, i := range l.running {
		l.s.View().GrantsOf(run, func(g plan.Grant) {
			if slices.ContainsFunc(claim.Parts, func(p calendar.Part) bool { return p.Node == g.Node }) {
				f.bound = max(f.bound, l.fates[i].end)
			}
		})
	}
}

// try starts a job where there is room beside what is held.
func (l *loop) try(d *plan.Draft, i int) bool {
	f, w := &l.fates[i], &l.works[i]
	until := d.Now().Add(calendar.Length(d.View, f.id, w.shape.Gang))
	d.Hold(l.cal.Holds(f.id, until, nil))
	found := l.placer.Place(d.View, allocate.Need{Job: f.id, Workers: w.shape.Gang, Shape: d.Shape(f.id)}, 1, nil)
	d.Unhold()
	if len(found) == 0 {
		return false
	}
	run, why := d.Start(f.id, found[0].Slots, plan.DefaultTerms(), plan.Reason{})
	if run == plan.None {
		panic(fmt.Sprintf("a placement is refused: %v", why))
	}
	f.started, f.end = d.Now(), d.Now().Add(w.truth)
	l.running[run] = i
	l.cal.Drop(f.id)
	l.cal.Started(run, until)
	return true
}

// wanted is how estimates stand to the truth.
type wanted int

const (
	exact wanted = iota
	upper        // never less than the truth
	wrong        // anything, some missing
	missing
)

// draw makes a random case.
func draw(r *rand.Rand, belief wanted) (*cluster.Cluster, []work, allocate.Placer) {
	c := &cluster.Cluster{Name: "random"}
	for m := range 1 + r.IntN(2) {
		c.AddModel(cluster.Model{Name: fmt.Sprint(m), Memory: 16 << 10})
	}
	c.AddRack(cluster.Rack{Name: "rack"})
	for range 1 + r.IntN(4) {
		c.AddNode(cluster.Node{Name: "node", Model: int32(r.IntN(len(c.Models))), CPU: unit.Milli(1+r.IntN(8)) * 1000, Memory: unit.MiB(1+r.IntN(4)) * 100}, r.IntN(5))
	}
	var works []work
	now := unit.Time(0)
	for range 4 + r.IntN(12) {
		now += unit.Time(r.IntN(6))
		w := work{arrive: now, truth: unit.Duration(1 + r.IntN(20)), shape: drawShape(r)}
		if r.IntN(4) == 0 {
			w.truth *= 4
		}
		estimate := w.truth
		switch belief {
		case upper:
			estimate += unit.Duration(r.IntN(2) * r.IntN(30))
		case wrong:
			estimate = unit.Duration(r.IntN(30))
			if r.IntN(3) == 0 {
				w.job.TimeLimit = w.truth + unit.Duration(r.IntN(10))
			}
		case missing:
			estimate = 0
		}
		w.job.Estimate = estimate
		works = append(works, w)
	}
	if r.IntN(2) == 0 {
		return c, works, firstfit.Placer{}
	}
	return c, works, bestfit.New(bestfit.Config{CoresPerDevice: 16})
}

func drawShape(r *rand.Rand) plan.Shape {
	s := plan.Shape{Gang: int32(1 + r.IntN(3)), Devices: int32(1 + r.IntN(2)), Share: 1000, Models: 1 + uint64(r.IntN(3))}
	switch r.IntN(5) {
	case 0:
		s.Devices, s.Share = 1, int32(1+r.IntN(8))*100
		s.Memory = int32(r.IntN(3)) * 4 << 10
	case 1:
		s.Devices, s.CPU = 0, 1000*int32(1+r.IntN(3))
	case 2:
		s.Gang += int32(r.IntN(4))
	}
	if r.IntN(3) == 0 {
		s.CPU = int32(r.IntN(4)) * 500
	}
	if r.IntN(4) == 0 {
		s.Host = int32(r.IntN(3)) * 50
	}
	if s.Devices == 0 && s.CPU == 0 {
		s.CPU = 500 // no room can be kept from one that wants nothing
	}
	return s
}
