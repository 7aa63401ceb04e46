package forecast

import (
	"math"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// twins says how likely it is that a job runs as long as the one of its size before
// it. Much work comes in sweeps of nearly equal jobs: in Venus, of two jobs of a size
// submitted within five seconds, the rank correlation of the running times is above
// 0.7, after an hour below 0.2. That is what makes futures differ: a sweep of
// thirty is one draw and not thirty that average out.
type twins struct {
	pairs, alike [relations][gaps + 1]int
}

// How two jobs of a size are related, and the classes of the time between their
// submissions; what is longer than the last is the rate of chance.
const (
	strangers = iota // whoever submitted them
	sameUser         // of the same class of work
	relations

	gaps = 5
)

var gapLimits = [gaps]unit.Duration{5 * unit.Second, 30 * unit.Second, 2 * unit.Minute, 10 * unit.Minute, unit.Hour}

// alikeWithin is how far two running times may be apart on the scale to count as
// equal: a quarter, and for short ones that many seconds.
const alikeWithin = 0.2

func gapOf(d unit.Duration) int {
	for i, limit := range gapLimits {
		if d <= limit {
			return i
		}
	}
	return gaps
}

// learn takes in a pair of finished jobs.
func (w *twins) learn(relation int, gap, a, b unit.Duration) {
	g := gapOf(gap)
	w.pairs[relation][g]++
	if math.Abs(scale(a)-scale(b)) < alikeWithin {
		w.alike[relation][g]++
	}
}

// chance is the part of pairs so far apart that are alike for a reason.
func (w *twins) chance(relation int, gap unit.Duration) float64 {
	const doubt = 20 // pairs of strangers that are counted besides
	g := gapOf(gap)
	base := float64(w.alike[strangers][gaps]+1) / float64(w.pairs[strangers][gaps]+4)
	rate := (float64(w.alike[relation][g]) + doubt*base) / float64(w.pairs[relation][g]+doubt)
	return max(0, (rate-base)/(1-base))
}

// kin finds jobs of the same size: anybody's, and the same user's of the same class.
type kin struct {
	last [relations]map[Kind]int
}

func newKin() kin { return kin{[relations]map[Kind]int{{}, {}}} }

// before returns the job before this one in each relation, -1 for none, and puts
// this one in its place.
func (k *kin) before(j *workload.Job, id int) (before [relations]int) {
	for r := range relations {
		kind := Kind{Milli: int64(j.Workers())}
		if r == sameUser {
			kind.User, kind.Class = j.User, j.Class
		}
		before[r] = -1
		if last, ok := k.last[r][kind]; ok && (r == strangers || j.User != "") {
			before[r] = last
		}
		k.last[r][kind] = id
	}
	return before
}
