package lifetime

import (
	"math"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Known is how much there is to go by for a job's running time, as of the last refresh.
type Known struct {
	// Finished are the jobs that have, in the groups that the job is part of, the coarsest first:
	// all, those of its size, of its kind too, of its tenant too, of its user too, that run the same
	// too, and called alike too. Jobs with a declared time are counted apart from those without.
	Finished [levels]int
	// Latest is how many times as long the user's Jobs latest took as the Before before them;
	// 0 where that is not sure.
	Latest       float64
	Jobs, Before int
	// Foretold is what the job reported of its running time, 0 where that is not heard yet, and
	// Reported are the jobs of those groups that had reported and have finished.
	Foretold unit.Duration
	Reported [levels]int
}

// latest is how many jobs a change is told by, and sure how many standard errors apart their mean
// must be from that of those before, in steps.
const (
	latest = 8
	sure   = 4
)

// Known tells what a job's table was made of.
func (p *Past) Known(v plan.View, id plan.JobID) (k Known) {
	p.refresh(v)
	of := p.groupOf(v, id)
	k.Finished = p.times.finished(of)
	if r := p.times.rows[of.ofUser()]; r != nil {
		k.Latest, k.Jobs, k.Before = p.times.drift(r)
	}
	if p.reported(v, id) {
		k.Foretold, _ = v.Foretold(id)
		k.Reported = p.told.finished(of.whoReports())
	}
	return k
}

// drift is how many times as long a group's latest jobs took as those before, where that is more
// than chance. Who still runs is left out, so that of jobs that get longer the short ones come first:
// such a change is told late, one that is told is there.
func (b *book) drift(r *row) (times float64, jobs, before int) {
	var sums, squares [2]float64
	var n [2]int
	for i := len(r.latest) - 1; i >= 0; i-- {
		if step := float64(b.step[r.latest[i]]); step > 0 {
			side := 0
			if n[0] == latest {
				side = 1
			}
			n[side]++
			sums[side] += step
			squares[side] += step * step
		}
	}
	if n[1] < latest {
		return 0, 0, 0
	}
	spread, apart := 0., sums[0]/latest-sums[1]/float64(n[1])
	for side := range n {
		spread += squares[side] - sums[side]*sums[side]/float64(n[side])
	}
	// A step is as far as two times can be apart and look the same.
	error2 := max(1, spread/float64(n[0]+n[1]-2)) * (1/float64(n[0]) + 1/float64(n[1]))
	if apart*apart < sure*sure*error2 {
		return 0, 0, 0
	}
	return math.Exp2(apart / perDoubling), n[0], n[1]
}
