// Package bound says how well any schedule could do: lower bounds on the mean job
// completion time and on the makespan of jobs that take what they ask for, no
// more and no less, for a known time. A run is judged by achieved / bound.
//
// The bounds hold for every schedule, preemptive and clairvoyant ones included:
//
//   - isolated: no job finishes before its submission plus its duration;
//   - squashed area: the devices are thought of as one machine of their joint
//     speed, a job as its device-seconds. Whatever the devices do, that machine
//     can do, and preemptive shortest-remaining-processing-time is optimal on it;
//   - makespan: the last job ends no sooner than any job alone would, nor than the
//     device-seconds submitted from any instant on can be done after it.
package bound

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Job is a rigid job.
type Job struct {
	Submit   unit.Time
	Duration unit.Duration
	// Devices is what it holds while it runs, in thousandths.
	Devices unit.Milli
	// Elastic says that it is none: it may take more or less, and go faster or slower.
	Elastic bool
}

// Of makes a Job of what was declared and what is true.
func Of(job workload.Job, truth workload.Truth) Job {
	return Job{Submit: job.Submit, Duration: truth.Duration, Devices: job.Workers(),
		Elastic: slices.ContainsFunc(job.Sizes, func(n int32) bool { return n != job.Gang })}
}

// Bounds are lower bounds, rounded down to the microsecond.
type Bounds struct {
	// MeanJCT is the best bound here on the mean of finish - submission: the larger
	// of Isolated and SquashedSRPT.
	MeanJCT unit.Duration
	// Isolated is the mean duration.
	Isolated unit.Duration
	// SquashedSRPT is the mean completion time on the one fast machine.
	SquashedSRPT unit.Duration
	// Makespan is the time from the first submission to the last finish.
	Makespan unit.Duration
	// Jobs counts the jobs that the bounds are about; Skipped those left out, since
	// they ask for more than all devices or have no end.
	Jobs, Skipped int
}

// Compute bounds what so many devices can do for the jobs, in any order. It takes
// n log n steps and computes in whole numbers throughout: no rounding can lift a
// bound above what a schedule achieves. Where a job is elastic there are no bounds: it
// may end sooner than it would on what it asked for.
func Compute(jobs []Job, devices int) Bounds {
	var b Bounds
	if slices.ContainsFunc(jobs, func(j Job) bool { return j.Elastic }) {
		return b
	}
	var kept []Job
	for _, j := range jobs {
		if j.Duration == unit.Forever || j.Duration < 0 || j.Devices < 0 || j.Devices > unit.Milli(devices)*unit.Whole {
			b.Skipped++
			continue
		}
		kept = append(kept, j)
	}
	b.Jobs = len(kept)
	if b.Jobs == 0 {
		return b
	}
	slices.SortStableFunc(kept, func(x, y Job) int { return cmp.Compare(x.Submit, y.Submit) })
	first := kept[0].Submit
	for i := range kept {
		kept[i].Submit -= first
	}
	speed := max(1, uint64(devices)*uint64(unit.Whole))
	b.Isolated = isolated(kept)
	b.SquashedSRPT = squashed(kept, speed)
	b.MeanJCT = max(b.Isolated, b.SquashedSRPT)
	b.Makespan = makespan(kept, speed)
	return b
}

func isolated(jobs []Job) unit.Duration {
	var sum unit.DeviceTime
	for _, j := range jobs {
		sum = sum.Plus(unit.Use(1, j.Duration))
	}
	return sum.Over(uint64(len(jobs)))
}

// makespan takes the jobs in order of submission, counted from the first.
func makespan(jobs []Job, speed uint64) unit.Duration {
	var last unit.Duration
	var area unit.DeviceTime // of what is submitted from here on
	for _, j := range slices.Backward(jobs) {
		since := unit.Duration(j.Submit)
		area = area.Plus(j.area())
		last = max(last, since+j.Duration, since+area.Over(speed))
	}
	return last
}

func (j Job) area() unit.DeviceTime { return unit.Use(int64(j.Devices), j.Duration) }

// squashed runs shortest remaining processing time, from event to event: on a
// submission or a finish. The jobs come in order of submission, counted from the
// first. Its unit of time is a microsecond over the speed, in which the machine
// does one unit of area.
func squashed(jobs []Job, speed uint64) unit.Duration {
	var left remaining           // of the jobs submitted and not finished
	var sum, now unit.DeviceTime // of completion times
	for next := 0; next < len(jobs) || len(left) > 0; {
		if len(left) == 0 {
			if at := unit.Use(int64(speed), unit.Duration(jobs[next].Submit)); now.Less(at) {
				now = at
			}
		}
		var until unit.DeviceTime // the next submission
		for ; next < len(jobs); next++ {
			until = unit.Use(int64(speed), unit.Duration(jobs[next].Submit))
			if now.Less(until) {
				break
			}
			heap.Push(&left, task{left: jobs[next].area(), submitted: until})
		}
		end := now.Plus(left[0].left)
		if next < len(jobs) && until.Less(end) {
			left[0].left = end.Minus(until) // it stays the shortest
			now = until
			continue
		}
		sum = sum.Plus(end.Minus(left[0].submitted))
		now = end
		heap.Pop(&left)
	}
	return sum.Over(uint64(len(jobs)) * speed)
}

// task is a job on the fast machine.
type task struct {
	left      unit.DeviceTime
	submitted unit.DeviceTime
}

// remaining is a heap, shortest first.
type remaining []task

// Len is how many there are.
func (r remaining) Len() int { return len(r) }

// Less orders tasks by what is left of them.
func (r remaining) Less(i, j int) bool { return r[i].left.Less(r[j].left) }

// Swap is for package heap.
func (r remaining) Swap(i, j int) { r[i], r[j] = r[j], r[i] }

// Push appends a task; it is called by package heap.
func (r *remaining) Push(x any) { *r = append(*r, x.(task)) }

// Pop removes the last task; it is called by package heap.
func (r *remaining) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	*r = (*r)[:last]
	return x
}
