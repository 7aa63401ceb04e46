// Package reside is the mechanism behind keeping several jobs in one device's memory
// at once: what of a job's memory stays (parameters, optimizer state) and what comes
// and goes within an iteration (activations), and who may join whom.
//
// Lanes, after Salus (Yu and Chowdhury, MLSys 2020): the jobs of one lane compute in
// turns, whole iterations at a time, so a lane needs the largest ephemeral memory of
// its jobs and not their sum; lanes compute side by side. The safety invariant is
//
//	sum of persistent + sum over lanes of the largest ephemeral <= memory
package reside

import (
	"github.com/musterdl/muster/model/unit"
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
