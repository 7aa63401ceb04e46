package circle

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/unit"
)

// Steady is how much longer the jobs' iterations take than undisturbed, in the long
// run, when each begins its first iteration at its shift (without shifts, all at
// once) and the links are shared max-min: at least 1, infinite for a job that gets
// nothing. A communication phase has the same part of its full speed on all its
// links. The answer follows from the arguments alone, so it may be remembered.
func Steady(jobs []Periodic, capacities []float64, shifts []unit.Duration) []float64 {
	t := begin(jobs, capacities, shifts)
	reference := t.longest()
	if reference < 0 {
		return t.slowdowns(t.now)
	}
	// Brent: keep a picture of the jobs at iterations 1, 2, 4, 8 ... of one of them; when
	// a later one is the same, what happens repeats from there on.
	iterations, next := 0, 1
	for steps := 0; steps < mostEvents; steps++ {
		if !t.step() { // all that send are stuck for good
			t.now = math.Inf(1)
			break
		}
		if t.ended != reference {
			continue
		}
		if iterations++; iterations > 1 && t.same() {
			break
		}
		if iterations == next {
			if 2*next > mostIterations {
				break
			}
			next *= 2
			t.picture()
		}
	}
	return t.slowdowns(t.since)
}

// Noisy is the mean slowdown over so many iterations of each job, counted until the
// last has them, where each computation takes longer or shorter by a normally
// distributed part of it.
func Noisy(jobs []Periodic, capacities []float64, shifts []unit.Duration, part float64, iterations int, seed uint64) []float64 {
	t := begin(jobs, capacities, shifts)
	dice := rand.New(rand.NewPCG(seed, 0))
	t.stretch = func() float64 { return max(0, 1+part*dice.NormFloat64()) }
	count := make([]int, len(jobs))
	for j := range jobs {
		if !jobs[j].sends() {
			count[j] = iterations
		}
	}
	for t.step() {
		if t.ended >= 0 {
			count[t.ended]++
		}
		if slices.Min(count) >= iterations {
			break
		}
	}
	return t.slowdowns(t.since)
}

const (
	// mostIterations of the longest job are looked at; where nothing repeats by then,
	// the later half of them is averaged.
	mostIterations = 256
	// mostEvents bounds the work where there are many jobs.
	mostEvents = 20_000
	// simultaneous is how many microseconds apart two events are one.
	simultaneous = 1e-3
)

// track is jobs going round, in microseconds.
type track struct {
	jobs       []Periodic
	capacities []float64
	stretch    func() float64 // of a computation; nil: none
	now        float64
	left       []float64 // of the phase, at full speed
	sending    []bool
	speed      []float64 // of the phase
	passed     []float64 // time at full speed that the job has behind it
	ended      int       // the job whose iteration ended in the last step, or -1

	filler maxmin.Filler
	flows  []maxmin.Flow
	who    []int
	rates  []float64
	stale  bool // the rates

	since float64 // when the picture was taken
	then  []float64
	was   []bool
	had   []float64 // passed, then
}

func begin(jobs []Periodic, capacities []float64, shifts []unit.Duration) *track {
	n := len(jobs)
	t := &track{jobs: jobs, capacities: capacities, left: make([]float64, n), sending: make([]bool, n), speed: make([]float64, n),
		passed: make([]float64, n), had: make([]float64, n), then: make([]float64, n), was: make([]bool, n), stale: true}
	for j := range jobs {
		t.left[j] = float64(jobs[j].Compute)
		if shifts != nil {
			t.left[j] += float64(shifts[j])
			t.passed[j] = -float64(shifts[j])
		}
	}
	return t
}

// longest is the job with the longest iteration of those that send, or -1.
func (t *track) longest() int {
	best := -1
	for j := range t.jobs {
		if p := &t.jobs[j]; p.sends() && (best < 0 || p.Iteration() > t.jobs[best].Iteration()) {
			best = j
		}
	}
	return best
}

// step goes on until a phase ends; where several end at once, one after the other in
// steps of no time. It returns false when nothing will ever end.
func (t *track) step() bool {
	if t.stale {
		t.share()
	}
	first, after := -1, math.Inf(1)
	for j := range t.jobs {
		if t.speed[j] > 0 && t.left[j]/t.speed[j] < after-simultaneous {
			first, after = j, t.left[j]/t.speed[j]
		}
	}
	if first < 0 {
		return false
	}
	t.now += after
	for j := range t.jobs {
		t.left[j] -= after * t.speed[j]
		t.passed[j] += after * t.speed[j]
	}
	t.turn(first)
	return true
}

// turn ends a job's phase and begins the next.
func (t *track) turn(j int) {
	p := &t.jobs[j]
	t.ended, t.stale = -1, true
	t.passed[j] += t.left[j] // what rounding left
	if t.sending[j] {
		t.ended = j
	}
	t.sending[j] = !t.sending[j]
	t.left[j] = float64(p.Communicate)
	if !t.sending[j] {
		t.left[j] = float64(p.Compute)
		if t.stretch != nil {
			// What is longer than it should be is not more work done.
			t.left[j] *= t.stretch()
			t.passed[j] += float64(p.Compute) - t.left[j]
		}
	}
}

// share fills the links with those that send.
func (t *track) share() {
	t.flows, t.who, t.stale = t.flows[:0], t.who[:0], false
	for j := range t.jobs {
		p := &t.jobs[j]
		if t.speed[j] = 0; p.sends() {
			t.speed[j] = 1
		}
		if t.sending[j] {
			t.who = append(t.who, j)
			t.flows = append(t.flows, maxmin.Flow{Uses: p.Uses, Weight: p.Weight, Limit: 1, Class: p.Class})
		}
	}
	t.rates = t.filler.Fill(t.capacities, t.flows, t.rates)
	for i, j := range t.who {
		t.speed[j] = t.rates[i]
	}
}

// picture keeps how things are.
func (t *track) picture() {
	t.since = t.now
	copy(t.then, t.left)
	copy(t.was, t.sending)
	copy(t.had, t.passed)
}

// same reports whether things are as in the picture.
func (t *track) same() bool {
	return slices.Equal(t.was, t.sending) && slices.EqualFunc(t.then, t.left, func(a, b float64) bool {
		return math.Abs(a-b) <= 10*simultaneous
	})
}

// slowdowns are the means since a time.
func (t *track) slowdowns(since float64) []float64 {
	s := make([]float64, len(t.jobs))
	for j := range s {
		s[j] = 1
		if t.now > since && t.jobs[j].sends() {
			s[j] = max(1, (t.now-since)/max(0, t.passed[j]-t.had[j]))
		}
	}
	return s
}
