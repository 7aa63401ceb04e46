package pipeline

import (
	"cmp"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// Choice is a pass that a rank could begin now.
type Choice struct {
	Op
	Chunk Chunk
	Takes unit.Duration
}

// Chooser is a rank that is free, with the line that it has written so far.
type Chooser struct {
	*Line
	Rank int
	Now  unit.Time
	// Soon is when the next pass forward or backward will be ready here that is not yet, as far
	// as what it waits for has begun; Never where nothing has.
	Soon unit.Time

	chunks []Chunk
	free   unit.Time // from when on
	look   unit.Time // when it looks next what it could begin
}

// Rule chooses among what a rank could begin, by index; -1 is to wait for what comes soon.
type Rule func(r *Chooser, ready []Choice) int

// Urgent chooses a pass backward, its first half or the whole, before one forward, and
// gradients of weights last; of several the lowest microbatch. It passes over forward passes of
// which may, where there is one, says no, and waits where nothing is left.
func Urgent(ready []Choice, may func(Chunk) bool) int {
	best := -1
	for i := range ready {
		x := &ready[i]
		if x.Kind == Forward && may != nil && !may(x.Chunk) {
			continue
		}
		if best < 0 || cmp.Or(urgency(x.Kind)-urgency(ready[best].Kind), int(x.Micro-ready[best].Micro)) < 0 {
			best = i
		}
	}
	return best
}

func urgency(k Kind) int { return strings.IndexByte("BIFW", byte(k)) }

// List writes the orders of a schedule by running it: whenever a rank is free, the rule
// chooses what it begins, among the next microbatch of each kind of pass and chunk. Backward
// passes are whole or, where split, in halves. It says why where the rule lets ranks wait
// for ever.
func (s *Schedule) List(c *Costs, split bool, rule Rule) Why {
	l := newLister(s, c, split, rule)
	l.run(unit.Forever)
	return l.left()
}

// run lets ranks choose until none has anything left to begin, and says when the last one is free. It
// gives up, and says no, as soon as that would be after a limit: a rank that begins a pass has all that
// it has not done yet still before it.
func (l *lister) run(limit unit.Duration) (end unit.Time, within bool) {
	for r := l.first(); r.look != unit.Never; r = l.first() {
		r.Now = r.look
		l.choose(r)
		if end = max(end, r.free); r.free.Sub(0) > limit-l.work[r.Rank] {
			return end, false
		}
	}
	return end, true
}

// left says which rank waits for ever, if one does.
func (l *lister) left() Why {
	for i := range l.ranks {
		r := &l.ranks[i]
		for _, chunk := range r.chunks {
			for _, kind := range []Kind{Backward, Weight} {
				if micro, left := r.Next(kind, chunk); left {
					return whyf("rank %d waits for ever before %v", i, Op{Kind: kind, Stage: chunk.Stage, Micro: micro})
				}
			}
		}
	}
	return ""
}

// lister is a run of a schedule whose orders are being written.
type lister struct {
	s     *Schedule
	c     *Costs
	rule  Rule
	kinds []Kind // forward, then what the next stage waits for, then what nobody waits for
	// ready is from when a pass of the first two kinds may begin, by stage and microbatch;
	// Never until what it waits for has begun.
	ready   [2][]unit.Time
	ranks   []Chooser
	choices []Choice
	work    []unit.Duration // that each rank has still to begin
	// soonest is a tournament of ranks by when they look next, the lower rank where that is at
	// once: the winner at 1, who plays at i have won at 2i and 2i+1, and the ranks begin at half.
	soonest []int32
}

func newLister(s *Schedule, c *Costs, split bool, rule Rule) *lister {
	l := &lister{s: s, c: c, rule: rule, kinds: []Kind{Forward, Backward}, ranks: make([]Chooser, len(s.Orders))}
	if split {
		l.kinds = []Kind{Forward, Input, Weight}
	}
	for k := range l.ready {
		l.ready[k] = make([]unit.Time, s.Stages()*int(s.Microbatches))
		for i := range l.ready[k] {
			l.ready[k][i] = unit.Never
		}
	}
	clear(l.ready[0][:s.Microbatches])
	for r := range l.ranks {
		l.ranks[r] = Chooser{Line: s.Line(r), Rank: r, chunks: s.Chunks(r)}
	}
	l.work = make([]unit.Duration, len(l.ranks))
	for stage := range c.Stages {
		for i, route := range s.Routes { // which take turns
			passes := (int(s.Microbatches) - i + len(s.Routes) - 1) / len(s.Routes)
			for _, kind := range l.kinds {
				l.work[route[stage]] += unit.Duration(passes) * c.Compute(c.Stages[stage].Of(kind), int(route[stage]))
			}
		}
	}
	half := 1
	for half < len(l.ranks) {
		half *= 2
	}
	l.soonest = make([]int32, 2*half)
	for i := range half {
		l.soonest[half+i] = int32(min(i, len(l.ranks)-1)) // the last plays for those that are missing
	}
	for i := half - 1; i > 0; i-- {
		l.play(i)
	}
	return l
}

// first is the rank that looks next.
func (l *lister) first() *Chooser { return &l.ranks[l.soonest[1]] }

// play has the winners of two games play each other.
func (l *lister) play(i int) {
	l.soonest[i] = l.soonest[2*i]
	if other := l.soonest[2*i+1]; l.ranks[other].look < l.ranks[l.soonest[i]].look {
		l.soonest[i] = other
	}
}

// looks has a rank look at another time than before.
func (l *lister) looks(r *Chooser, at unit.Time) {
	if r.look == at {
		return
	}
	r.look = at
	for i := (len(l.soonest)/2 + r.Rank) / 2; i > 0; i /= 2 {
		l.play(i)
	}
}

// choose lets a rank begin something, if there is anything that the rule wants.
func (l *lister) choose(r *Chooser) {
	l.choices, r.Soon = l.choices[:0], unit.Never
	for _, chunk := range r.chunks {
		for k, kind := range l.kinds {
			micro, left := r.Next(kind, chunk)
			if !left {
				continue
			}
			if k < len(l.ready) {
				if at := l.ready[k][chunk.Stage*l.s.Microbatches+micro]; at > r.Now {
					r.Soon = min(r.Soon, at)
					continue
				}
			}
			l.choices = append(l.choices, Choice{Op{Kind: kind, Stage: chunk.Stage, Micro: micro}, chunk,
				l.c.Compute(l.c.Stages[chunk.Stage].Of(kind), r.Rank)})
		}
	}
	if len(l.choices) > 0 {
		if i := l.rule(r, l.choices); i >= 0 {
			l.begin(r, &l.choices[i])
			return
		}
	}
	l.looks(r, r.Soon)
}

// begin has a rank do a pass, and tells those that wait for it.
func (l *lister) begin(r *Chooser, x *Choice) {
	r.Do(string(x.Kind), x.Chunk)
	r.free = r.Now.Add(x.Takes)
	l.work[r.Rank] -= x.Takes
	l.looks(r, r.free)
	last := int32(l.s.Stages()) - 1
	switch {
	case x.Kind == Weight:
	case x.Kind == Forward && x.Stage < last:
		l.wake(r, 0, x.Stage+1, x.Micro, x.Stage)
	case x.Kind == Forward:
		l.wake(r, 1, x.Stage, x.Micro, x.Stage)
	case x.Stage > 0:
		l.wake(r, 1, x.Stage-1, x.Micro, x.Stage-1)
	}
}

// wake makes a pass ready when the one that its rank begins now has ended and its output has
// arrived.
func (l *lister) wake(r *Chooser, k int, stage, micro, output int32) {
	to := &l.ranks[l.s.Rank(stage, micro)]
	at := r.free
	if to != r {
		at = at.Add(l.c.Link(r.Rank, to.Rank).Takes(l.c.Stages[output].OutputKiB))
	}
	l.ready[k][stage*l.s.Microbatches+micro] = at
	l.looks(to, min(to.look, max(at, to.free)))
}
