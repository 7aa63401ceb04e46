package lifetime

import (
	"math"

	"github.com/musterdl/muster/plan"
)

// book is where jobs ended, in steps of one scale: by group, and in the order in which they came.
type book struct {
	alone  bool // beside it there is nothing to go by
	groups map[group]*counts
	rows   map[group]*row
	kinds  map[group]int // how many of the finest groups of which somebody has ended are part of a group
	step   []int16       // by job: where it ended, counted from 1; 0 is not yet
	beside []neighbours  // by job
	all    spans         // of all rows
	// standing is how far a job had come when the present period began, whether it went on then, and
	// whether it was over.
	standing func(v plan.View, id plan.JobID) (step int, goes, over bool)
}

func newBook(alone bool, standing func(v plan.View, id plan.JobID) (step int, goes, over bool)) *book {
	return &book{alone: alone, groups: map[group]*counts{}, rows: map[group]*row{}, kinds: map[group]int{}, standing: standing}
}

// recents are how many of a group's latest jobs are counted once more, and how many of them what is
// known without them weighs as much as, where jobs in a row are half as much alike as they could be:
// steps of eight, and the fewer the jobs the sooner believed. How well the next job's running time
// was foretold on months of Venus, Philly and PAI decided.
var recents = [...]struct {
	jobs  int
	prior float64
}{{256, 30}, {32, 10}, {4, 3}}

// row is the jobs of a user as they were submitted, of like size and kind.
type row struct {
	latest []plan.JobID // the latest last
	spans
}

// spans are how far apart jobs end: how many have, the sum of the steps where they did, and of their
// squares; and of how many neighbours in a row both did, and the sum of the squares of the steps between.
type spans struct{ ended, sum, squares, pairs, apart int64 }

// end takes in the step where a job ended.
func (s *spans) end(step int64) {
	s.ended, s.sum, s.squares = s.ended+1, s.sum+step, s.squares+step*step
}

// pair takes in how many steps apart two neighbours ended.
func (s *spans) pair(between int64) { s.pairs, s.apart = s.pairs+1, s.apart+between*between }

// What is believed before much is known: that jobs are as far apart as doublings of a running time are
// likely, which counts for so many jobs, and neighbours in a row much nearer than any two of it, since
// people submit the same work again, which counts for one pair of them.
const (
	anyDoubling = 92. * 92 / 12
	anyJobs     = 2
	nearer      = .1
	anyPairs    = 1
)

// spread2 is the mean square distance of the steps of jobs from their mean.
func (s *spans) spread2() float64 {
	n := float64(s.ended)
	if n == 0 {
		return anyDoubling
	}
	mean := float64(s.sum) / n
	return (max(0, float64(s.squares)-n*mean*mean) + anyJobs*anyDoubling) / (n - 1 + anyJobs)
}

// within2 is the same of neighbours in a row, where before any is known it is taken to be as told.
func (s *spans) within2(before float64) float64 {
	return (float64(s.apart)/2 + anyPairs*before) / (float64(s.pairs) + anyPairs)
}

// alike is how much jobs in a row are alike, by the steps where they ended: 0 where neighbours are as
// far apart as any two of it, 1 where they end in the same step. Before its own are known, it is as in other rows.
func (b *book) alike(r *row, prior float64) float64 {
	any2 := b.all.spread2()
	part := b.all.within2(any2*nearer) / any2
	own2 := any2 // of its own jobs, with one as far away as any
	if n := float64(r.ended); n > 0 {
		mean := float64(r.sum) / n
		own2 = (max(0, float64(r.squares)-n*mean*mean) + any2) / n
	}
	alike := max(0, 1-r.within2(own2*part)/own2)
	if !b.alone { // a report tells more than likeness, until there are many
		alike *= float64(r.ended) / (float64(r.ended) + prior)
	}
	return alike
}

// neighbours are the jobs of its group that were submitted before and after a job; None where there
// is none.
type neighbours struct {
	before, after plan.JobID
	came          bool // the job is in a row
}

// counts are how many jobs of a group ended in each step, and how many have come so far and go on.
type counts struct{ ended, open [Steps]float64 }

// spread is how an end counts in the steps around its own: whoever is like a job takes about as
// long. Sixteenths add up to the same in whatever order.
var spread = [...]float64{2. / 16, 3. / 16, 6. / 16, 3. / 16, 2. / 16}

// end counts an end.
func (c *counts) end(step int) {
	for i, part := range spread {
		c.ended[min(Steps-1, max(0, step+i-len(spread)/2))] += part
	}
}

// weigh takes what the jobs counted say into what is known without them: of those who came to a
// step, what part ended there. That is done step by step, so that where few have come so far the
// many still speak. Of more than so many jobs each counts for less. It returns how many there are; none, or as
// many as before, say nothing new.
func (c *counts) weigh(prior, before, most float64, hazard *[Steps]float64) (jobs float64) {
	for s := range Steps {
		jobs += c.ended[s] + c.open[s]
	}
	if jobs == before {
		return jobs
	}
	come := jobs
	prior *= max(1, jobs/most)
	for s := range Steps {
		hazard[s] = (c.ended[s] + prior*hazard[s]) / (come + prior)
		come = max(0, come-c.ended[s]-c.open[s])
	}
	return jobs
}

// come takes in a job that was submitted, or that is known from now on.
func (b *book) come(of group, id plan.JobID) {
	if more := int(id) + 1 - len(b.step); more > 0 {
		b.step, b.beside = append(b.step, make([]int16, more)...), append(b.beside, make([]neighbours, more)...)
	}
	r := b.rows[of.ofUser()]
	if r == nil {
		r = &row{}
		b.rows[of.ofUser()] = r
	}
	last := plan.JobID(plan.None)
	if n := len(r.latest); n > 0 {
		last = r.latest[n-1]
		b.beside[last].after = id
	}
	b.beside[id] = neighbours{last, plan.None, true}
	if most := recents[0].jobs; len(r.latest) == 2*most {
		r.latest = append(r.latest[:0], r.latest[most:]...)
	}
	r.latest = append(r.latest, id)
}

// end takes in where a job that came ended, in whatever order, once.
func (b *book) end(of group, id plan.JobID, at int) {
	if int(id) >= len(b.step) || b.step[id] > 0 || !b.beside[id].came {
		return
	}
	b.step[id] = int16(at + 1)
	if b.kinds[of] == 0 {
		b.countKind(of)
	}
	b.count(of, func(c *counts) { c.end(at) })
	r, step := b.rows[of.ofUser()], int64(at)
	r.end(step)
	b.all.end(step)
	for _, other := range [2]plan.JobID{b.beside[id].before, b.beside[id].after} {
		if other != plan.None && b.step[other] > 0 {
			between := step + 1 - int64(b.step[other])
			r.pair(between)
			b.all.pair(between)
		}
	}
}

// count adds to each group that a job is part of.
func (b *book) count(of group, add func(*counts)) {
	parts := of.parts()
	for i, g := range parts {
		if i > 0 && g == parts[i-1] {
			continue
		}
		c := b.groups[g]
		if c == nil {
			c = &counts{}
			b.groups[g] = c
		}
		add(c)
	}
}

// countKind counts a finest group of which nobody had ended in those that it is part of.
func (b *book) countKind(of group) {
	parts := of.parts()
	for i, g := range parts {
		if i == 0 || g != parts[i-1] {
			b.kinds[g]++
		}
	}
}

// anybody is how many jobs weigh as much as that all doublings are as likely; ofOneKind is for how many jobs of
// others those of one kind speak at most, however many they are: a kind that is new is another.
const (
	anybody   = 1
	ofOneKind = 2
)

// weigh goes from what is known beside the book to what it says of a group, the coarsest first, and
// from there to what the group's latest jobs tell.
func (b *book) weigh(v plan.View, of group, prior float64, hazard *[Steps]float64) {
	parts, before := of.parts(), 0.
	for i, g := range parts {
		c := b.groups[g]
		if c == nil || i > 0 && g == parts[i-1] {
			continue
		}
		weight, most := prior, math.Inf(1)
		if i == 0 && b.alone {
			weight = anybody
		}
		if alone := b.kinds[g] == 1 && b.kinds[of] > 0; g != of && !alone && b.alone {
			most = ofOneKind * float64(b.kinds[g]+1)
		}
		before = c.weigh(weight, before, most, hazard)
	}
	if r := b.rows[of.ofUser()]; r != nil {
		b.recall(v, r, prior, hazard)
	}
}

// recall weighs in what a group's latest jobs tell, the more the more jobs in a row are alike.
func (b *book) recall(v plan.View, row *row, prior float64, hazard *[Steps]float64) {
	alike := b.alike(row, prior)
	if alike == 0 {
		return
	}
	for _, r := range recents {
		var c counts
		for _, id := range row.latest[max(0, len(row.latest)-r.jobs):] {
			if ended := b.step[id]; ended > 0 {
				c.end(int(ended) - 1)
			} else if step, goes, _ := b.standing(v, id); goes {
				c.open[step]++
			}
		}
		c.weigh(r.prior*(1-alike)/alike, 0, math.Inf(1), hazard)
	}
}

// finished is how many jobs have ended in each group that one is part of.
func (b *book) finished(of group) (jobs [levels]int) {
	for i, g := range of.parts() {
		if c := b.groups[g]; c != nil {
			ended := 0.
			for _, x := range c.ended {
				ended += x
			}
			jobs[i] = int(ended)
		}
	}
	return jobs
}
