// Package reside is the mechanism behind keeping several jobs in one device's memory
// at once: what of a job's memory stays (parameters, optimizer state) and what comes
// and goes within an iteration (activations), who may join whom, and by how much
// iterations must be offset so that their peaks do not meet.
//
// Lanes, after Salus (Yu and Chowdhury, MLSys 2020): the jobs of one lane compute in
// turns, whole iterations at a time, so a lane needs the largest ephemeral memory of
// its jobs and not their sum; lanes compute side by side. The safety invariant is
//
//	sum of persistent + sum over lanes of the largest ephemeral <= memory
//
// Staggering, after Zico (Lim et al., ATC 2021): two jobs iterate side by side, one
// so much later that the sum of their memory curves stays within the budget.
package reside

import (
	"slices"

	"github.com/musterdl/muster/unit"
)

// Footprint is a job's memory on a device: what stays as long as it is resident, and
// how much more it needs at the peak of an iteration.
type Footprint struct{ Persistent, Ephemeral unit.MiB }

// Lane is some jobs that compute in turns: all of their persistent memory, and the
// largest of their ephemeral ones.
type Lane struct{ Persistent, Ephemeral unit.MiB }

// Join returns the lane with one more job.
func (l Lane) Join(f Footprint) Lane {
	return Lane{l.Persistent + f.Persistent, max(l.Ephemeral, f.Ephemeral)}
}

// Need is the memory that lanes need together.
func Need(lanes []Lane) (sum unit.MiB) {
	for _, l := range lanes {
		sum += l.Persistent + l.Ephemeral
	}
	return sum
}

// Admit returns the lane a job goes to: a new one, at the end, while there is room
// for all of the job, else the one with the least ephemeral memory, the first of
// equals, that it can join within the memory. Where may is not nil, it says which
// lanes, the new one included, are open to the job. ok is false where it must wait.
func Admit(memory unit.MiB, lanes []Lane, f Footprint, may func(lane int) bool) (lane int, ok bool) {
	open := func(lane int) bool { return may == nil || may(lane) }
	free := memory - Need(lanes)
	if free >= f.Persistent+f.Ephemeral && open(len(lanes)) {
		return len(lanes), true
	}
	for i, l := range lanes {
		if f.Persistent+max(0, f.Ephemeral-l.Ephemeral) <= free && (!ok || l.Ephemeral < lanes[lane].Ephemeral) && open(i) {
			lane, ok = i, true
		}
	}
	return lane, ok
}

// Step is memory held from an instant within an iteration on.
type Step struct {
	At     unit.Duration
	Memory unit.MiB
}

// Curve is the memory of one iteration: steps in order of time, the first at 0, and
// how long the iteration takes.
type Curve struct {
	Steps  []Step
	Period unit.Duration
}

// At is the memory held at an instant of an iteration.
func (c Curve) At(t unit.Duration) unit.MiB {
	i, exact := slices.BinarySearchFunc(c.Steps, t, func(s Step, t unit.Duration) int { return int(max(-1, min(1, s.At-t))) })
	if !exact {
		i--
	}
	return c.Steps[i].Memory
}

// Stagger returns the smallest delay of the next iteration of b, beside a, which has
// been in its own for so long and repeats it, such that the two never hold more than
// the memory. There is none longer than a's period: where ok is false the two have
// to take turns.
func Stagger(a Curve, into unit.Duration, b Curve, memory unit.MiB) (delay unit.Duration, ok bool) {
	// What is allowed of the delays is closed below at 0 or where a step of b meets one
	// of a: nothing changes between.
	delays := []unit.Duration{0}
	for start := -into; start < a.Period+b.Period; start += a.Period {
		for _, s := range a.Steps {
			for _, o := range b.Steps {
				if d := start + s.At - o.At; d > 0 && d < a.Period {
					delays = append(delays, d)
				}
			}
			if d := start + s.At - b.Period; d > 0 && d < a.Period {
				delays = append(delays, d)
			}
		}
	}
	slices.Sort(delays)
	for _, d := range slices.Compact(delays) {
		if fits(a, into+d, b, memory) {
			return d, true
		}
	}
	return 0, false
}

// fits reports whether one iteration of b that begins when a is so far fits.
func fits(a Curve, at unit.Duration, b Curve, memory unit.MiB) bool {
	for _, s := range b.Steps {
		if s.Memory+a.At((at+s.At)%a.Period) > memory {
			return false
		}
	}
	for start := -(at % a.Period); start < b.Period; start += a.Period {
		for _, s := range a.Steps {
			if t := start + s.At; t > 0 && t < b.Period && s.Memory+b.At(t) > memory {
				return false
			}
		}
	}
	return true
}
