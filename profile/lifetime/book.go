package lifetime

import (
	"github.com/musterdl/muster/plan"
)

// book is where jobs ended, in steps of one scale: by group, and in the order in which they came.
type book struct {
	groups map[group]*counts
	rows   map[group]*row
	step   []int16      // by job: where it ended, counted from 1; 0 is not yet
	beside []neighbours // by job
	// standing is how far a job had come when the present period began, whether it went on then, and
	// whether it was over.
	standing func(v plan.View, id plan.JobID) (step int, goes, over bool)
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
	// How many have ended, the sum of the steps where they did, and of their squares; and of how
	// many neighbours in the row both did, and the sum of the squares of the steps between.
	ended, sum, squares, pairs, apart int64
}

// alike is how much jobs in a row are alike, by the steps where they ended: 0 where neighbours are as
// far apart as any two, 1 where they end in the same step. It is believed as jobs of the group are.
func (r *row) alike(prior float64) float64 {
	if r.pairs == 0 {
		return 0
	}
	n := float64(r.ended)
	mean := float64(r.sum) / n
	anyTwo, beside := 2*(float64(r.squares)/n-mean*mean), float64(r.apart)/float64(r.pairs)
	if beside == 0 {
		return n / (n + prior)
	}
	return max(0, 1-beside/anyTwo) * n / (n + prior)
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
// many still speak. It returns how many jobs there are; none, or as many as before, say nothing new.
func (c *counts) weigh(prior, before float64, hazard *[Steps]float64) (jobs float64) {
	for s := range Steps {
		jobs += c.ended[s] + c.open[s]
	}
	if jobs == before {
		return jobs
	}
	come := jobs
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
	b.count(of, func(c *counts) { c.end(at) })
	r, step := b.rows[of.ofUser()], int64(at)
	r.ended, r.sum, r.squares = r.ended+1, r.sum+step, r.squares+step*step
	for _, other := range [2]plan.JobID{b.beside[id].before, b.beside[id].after} {
		if other != plan.None && b.step[other] > 0 {
			between := step + 1 - int64(b.step[other])
			r.pairs, r.apart = r.pairs+1, r.apart+between*between
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

// weigh goes from what is known beside the book to what it says of a group, the coarsest first, and
// from there to what the group's latest jobs tell.
func (b *book) weigh(v plan.View, of group, prior float64, hazard *[Steps]float64) {
	parts, before := of.parts(), 0.
	for i, g := range parts {
		if c := b.groups[g]; c != nil && (i == 0 || g != parts[i-1]) {
			before = c.weigh(prior, before, hazard)
		}
	}
	if r := b.rows[of.ofUser()]; r != nil {
		b.recall(v, r, prior, hazard)
	}
}

// recall weighs in what a group's latest jobs tell, the more the more jobs in a row are alike.
func (b *book) recall(v plan.View, row *row, prior float64, hazard *[Steps]float64) {
	alike := row.alike(prior)
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
		c.weigh(r.prior*(1-alike)/alike, 0, hazard)
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
