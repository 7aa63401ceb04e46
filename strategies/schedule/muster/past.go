package muster

import (
	"math"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// group is what jobs have in common. Those with a declared time are apart from others, since what
// is counted of them is a part of that.
type group struct {
	declared                  bool
	tenant, user, class, gang int32
}

const anyone = -1

func groupOf(v plan.View, id plan.JobID) group {
	j := v.Job(id)
	return group{j.Declared > 0, j.Tenant, j.User, j.Class, v.Shape(id).Gang}
}

// parts lists the groups that a job is part of, the coarsest first.
func (g group) parts() [5]group {
	d := g.declared
	return [5]group{{d, anyone, anyone, anyone, anyone}, {d, anyone, anyone, anyone, g.gang}, {d, anyone, anyone, g.class, g.gang},
		{d, g.tenant, anyone, g.class, g.gang}, g}
}

// Steps of running time: four per doubling, the first up to a second, the last beyond 500 years.
const (
	perDoubling = 4
	steps       = 34 * perDoubling
)

// stepOf is the step that so many seconds fall into.
func stepOf(seconds float64) int {
	if seconds < 1 {
		return 0
	}
	return min(steps-1, int(math.Log2(seconds)*perDoubling))
}

// begins is where a step begins, in seconds.
func begins(step int) float64 {
	if step == 0 {
		return 0
	}
	return math.Exp2(float64(step) / perDoubling)
}

// counts are how many jobs of a group ended in each step, and how many have come so far and go on.
type counts struct{ ended, open [steps]float64 }

type sample struct {
	group
	at  unit.Time
	ran float64
}

// past is what jobs tell. It follows from the State alone: what a refresh takes in is what was so
// at its instant, whenever it is made.
type past struct {
	config Config
	groups map[group]*counts
	ended  []sample // not yet taken in
	open   []plan.JobID
	seen   plan.JobID // jobs before it are in open, or over
	epoch  int64
	tables map[group]*table
}

func newPast(c Config) *past {
	return &past{config: c, groups: map[group]*counts{}, tables: map[group]*table{}, epoch: -1}
}

// instant is when the present period began, refreshed when the next will.
func (p *past) instant() unit.Time {
	return unit.Time(0).Add(unit.Duration(p.epoch) * p.config.Refresh)
}
func (p *past) refreshed() unit.Time { return p.instant().Add(p.config.Refresh) }

// refresh takes in what ended before the present period, and who was at work when it began.
func (p *past) refresh(v plan.View) {
	epoch := int64(v.Now()) / int64(p.config.Refresh)
	if epoch == p.epoch {
		return
	}
	p.epoch = epoch
	clear(p.tables)
	later := p.ended[:0]
	for _, s := range p.ended {
		if s.at >= p.instant() {
			later = append(later, s)
			continue
		}
		p.count(s.group, func(c *counts) { c.ended[stepOf(s.ran)]++ })
	}
	p.ended = later
	for _, c := range p.groups {
		c.open = [steps]float64{}
	}
	for ; int(p.seen) < v.Jobs(); p.seen++ {
		p.open = append(p.open, p.seen)
	}
	still := p.open[:0]
	for _, id := range p.open {
		j := v.Job(id)
		if j.Phase.Over() && j.Ended < p.instant() {
			continue
		}
		still = append(still, id)
		if j.Started < p.instant() {
			// Waits since its first start count as running: when they were, the State does not keep.
			so := p.instant().Sub(j.Started).Seconds() / scaleOf(&j)
			p.count(groupOf(v, id), func(c *counts) { c.open[stepOf(so)]++ })
		}
	}
	p.open = still
}

// count adds to each group that a job is part of.
func (p *past) count(of group, add func(*counts)) {
	last := group{}
	for i, g := range of.parts() {
		if i > 0 && g == last {
			continue
		}
		last = g
		c := p.groups[g]
		if c == nil {
			c = &counts{}
			p.groups[g] = c
		}
		add(c)
	}
}

// table is how likely a job of a group ends in each step, and what follows from that.
type table struct {
	ends   [steps]float64
	known  [steps]bool
	cost   [steps]float64
	chance [steps]float64
}

// tableOf goes from what is known of all jobs to what is known of a group: of those who came to a
// step, what part ended there. The finer group's own count and the coarser one's part are weighed
// step by step, so that where few have come so far the many still speak.
func (p *past) tableOf(of group) *table {
	if t := p.tables[of]; t != nil {
		return t
	}
	// Before anything is known all doublings are as likely, from a thirtieth of a second, which is
	// in the first step, to some months.
	const widest, below = 23 * perDoubling, 5 * perDoubling
	hazard := [steps]float64{float64(below) / (widest + below)}
	for s := 1; s < steps; s++ {
		hazard[s] = 1 / float64(max(1, widest-s))
	}
	before := 0.
	for _, g := range of.parts() {
		c := p.groups[g]
		if c == nil {
			break
		}
		come := 0.
		for s := range steps {
			come += c.ended[s] + c.open[s]
		}
		if come == before {
			continue // the same jobs again: what they say counts once
		}
		before = come
		for s := range steps {
			hazard[s] = (c.ended[s] + p.config.Prior*hazard[s]) / (come + p.config.Prior)
			come -= c.ended[s] + c.open[s]
		}
	}
	t, left := &table{}, 1.
	for s := range steps {
		t.ends[s] = left * hazard[s]
		left -= t.ends[s]
	}
	p.tables[of] = t
	return t
}

// index is how many seconds a completion is expected to cost from a step on, looking ahead by so
// many steps that it is least, and the chance that the job then ends.
func (t *table) index(from int) (cost, chance float64) {
	if t.known[from] {
		return t.cost[from], t.chance[from]
	}
	left := 0.
	for s := from; s < steps; s++ {
		left += t.ends[s]
	}
	cost, chance = math.MaxInt32, 1
	ended, spent := 0., 0.
	for s := from; s < steps && left > 0; s++ {
		ended += t.ends[s]
		spent += t.ends[s] * max(0, (begins(s)+begins(s+1))/2-begins(from))
		all := spent + (left-ended)*(begins(s+1)-begins(from))
		if ended > 0 && all < cost*ended {
			cost, chance = all/ended, ended/left
		}
	}
	t.known[from], t.cost[from], t.chance[from] = true, cost, chance
	return cost, chance
}
