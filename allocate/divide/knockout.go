package divide

import (
	"math"
	"slices"

	"github.com/musterdl/muster/mechanism/rank"
)

// Step is what a job could be given next: so many units at once, with the gain spread over
// them. A job that can be given nothing gains nothing.
type Step struct {
	Contender
	Units int32
}

func (s *Step) gains() bool { return s.More > s.Now }

// keen reports whether a job would go before one that has nothing.
func (s *Step) keen() bool { return s.Now > 0 && s.gains() && s.gain > 1 }

// Knockout is a knock-out for units among jobs. What it keeps is memory that is used again.
type Knockout struct {
	steps  []Step
	units  int32
	won    func(job int) Step
	leaves int
	runs   []best // a heap-shaped tree of what is best among runs of jobs: 1 is all of them, 2i and 2i+1 are the halves of i
	order  rank.Order
	idle   []int
	first  []Step // of Pairs
	shares []int32
}

// Play hands out units a step at a time, each to the winner of a knock-out in the order
// of the jobs among those that gain by their step and whose step is within what is left.
// won is told of the winner and says what its next step is.
//
// Who beats whom is not transitive, so the knock-out is played in its order; but a tree over
// the jobs tells the runs of jobs of which none can beat whoever is in front, and these are
// passed by at once. A step costs the logarithm of the number of jobs for every lead that
// changes. Those who have nothing are in the order of their leads, and go first while nobody
// is keen: they need no tree.
func (k *Knockout) Play(steps []Step, units int32, won func(job int) Step) {
	k.steps, k.units, k.won = steps, units, won
	k.firsts()
	if !slices.ContainsFunc(steps, func(s Step) bool { return k.plays(&s) }) {
		return
	}
	k.build()
	for {
		winner := k.play(1, -1)
		if winner < 0 {
			return
		}
		k.give(winner)
		k.renew(winner)
	}
}

// leafJobs is how many jobs stand at a leaf of the tree.
const leafJobs = 8

// plays reports whether a job takes part.
func (k *Knockout) plays(s *Step) bool { return s.gains() && s.Units <= k.units }

func (k *Knockout) give(job int) {
	k.units -= k.steps[job].Units
	k.steps[job] = k.won(job)
}

// firsts serves those who have nothing while nobody is keen. Whose step is more than what is
// left will never have it.
func (k *Knockout) firsts() {
	idle := k.idle[:0]
	for j := range k.steps {
		if s := &k.steps[j]; !k.plays(s) {
			continue
		} else if s.keen() {
			return
		} else if s.Now == 0 {
			idle = append(idle, j)
		}
	}
	k.idle = idle
	k.order.Begin(len(idle))
	for i, j := range idle {
		k.order.Keys[i] = rank.Float(k.steps[j].lead)
	}
	for _, i := range k.order.Sort() {
		if s := &k.steps[idle[i]]; k.plays(s) {
			if k.give(idle[i]); s.keen() && k.plays(s) {
				return
			}
		}
	}
}

func (k *Knockout) build() {
	k.leaves = 1
	for k.leaves*leafJobs < len(k.steps) {
		k.leaves *= 2
	}
	k.runs = slices.Grow(k.runs[:0], 2*k.leaves)[:2*k.leaves]
	for leaf := range k.leaves {
		k.fillLeaf(leaf)
	}
	for i := k.leaves - 1; i > 0; i-- {
		k.runs[i].join(&k.runs[2*i], &k.runs[2*i+1])
	}
}

// renew follows the change of one job up the tree.
func (k *Knockout) renew(job int) {
	k.fillLeaf(job / leafJobs)
	for i := (k.leaves + job/leafJobs) / 2; i > 0; i /= 2 {
		k.runs[i].join(&k.runs[2*i], &k.runs[2*i+1])
	}
}

func (k *Knockout) fillLeaf(leaf int) {
	b := &k.runs[k.leaves+leaf]
	b.lead, b.next, b.used, b.idle = math.Inf(1), 0, 0, false
	for job := leaf * leafJobs; job < min((leaf+1)*leafJobs, len(k.steps)); job++ {
		switch s := &k.steps[job]; {
		case !k.plays(s):
		case s.Now == 0:
			b.idle, b.lead = true, min(b.lead, s.lead)
		default:
			b.next = max(b.next, s.next)
			b.add(s.band, front{s.remaining, s.gain})
		}
	}
}

// play lets a run of jobs play on against whoever is in front, -1 for nobody, and returns who
// is in front then.
func (k *Knockout) play(run, front int) int {
	b := &k.runs[run]
	if !b.idle && b.used == 0 || front >= 0 && b.none(&k.steps[front].Contender) {
		return front
	}
	if run < k.leaves {
		return k.play(2*run+1, k.play(2*run, front))
	}
	first := (run - k.leaves) * leafJobs
	for job := first; job < min(first+leafJobs, len(k.steps)); job++ {
		if s := &k.steps[job]; k.plays(s) && (front < 0 || !k.steps[front].Before(&s.Contender)) {
			front = job
		}
	}
	return front
}
