// Package bound says how well any schedule could do: lower bounds on the mean job
// completion time and on the makespan of jobs that take what they ask for, no
// more and no less, for a known time. A run is judged by achieved / bound.
// A job may be stopped, moved and resumed at no cost.
//
// The bounds hold for every schedule, preemptive and clairvoyant ones included:
//
//   - isolated: no job finishes before its submission plus its duration;
//   - squashed area: the devices are thought of as one machine of their joint
//     speed, a job as its device-seconds. Whatever the devices do, that machine
//     can do, and preemptive shortest-remaining-processing-time is optimal on it;
//   - queueing: jobs buy device time at prices, and no job takes more devices at
//     once than its gang. It knows both how long jobs are and that they stand in
//     each other's way; the proof is in queueing.go;
//   - makespan: the last job ends no sooner than any job alone would, nor than the
//     device-seconds submitted from any instant on can be done after it.
package bound

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/mechanism/heap"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Job is a rigid job.
type Job struct {
	Submit   unit.Time
	Duration unit.Duration
	// Devices is what it holds while it runs, in thousandths.
	Devices unit.Milli
	// Loose says why it is none, where it may end sooner than on what it asks for.
	Loose string
}

// Room is what the jobs run on.
type Room struct {
	Devices int
	// Shared says that a device works for more jobs at once than have asked for it
	// together: then there are no bounds by device time.
	Shared bool
}

// Of makes a Job of what was declared and what is true.
func Of(job workload.Job, truth workload.Truth) Job {
	j := Job{Submit: job.Submit, Duration: truth.Duration, Devices: job.Workers()}
	switch {
	case slices.ContainsFunc(job.Sizes, func(n int32) bool { return n != job.Gang }):
		j.Loose = "jobs may run on more or fewer workers than they ask for"
	case job.Pipeline.Stages > 0 || len(truth.Drifts) > 0:
		j.Loose = "how fast jobs go depends on the plans of their pipelines"
	case job.Service.RatePerSec > 0:
		j.Loose = "services are no work that ends"
	}
	return j
}

// At is the job where it goes at that rate, in place of its own reference.
func (j Job) At(rate float64) Job {
	if rate > 0 && rate != 1 && j.Duration != unit.Forever {
		j.Duration = unit.Duration(float64(j.Duration) / rate * (1 - 1e-12)) // not lifted by rounding
	}
	return j
}

// Bounds are lower bounds, rounded down to the microsecond.
type Bounds struct {
	// MeanJCT is the best bound here on the mean of finish - submission: the largest
	// of Isolated, SquashedSRPT and Queueing.
	MeanJCT unit.Duration
	// Isolated is the mean duration.
	Isolated unit.Duration
	// SquashedSRPT is the mean completion time on the one fast machine.
	SquashedSRPT unit.Duration
	// Queueing is the mean of what jobs pay that buy device time, less the worth of
	// all device time.
	Queueing unit.Duration
	// Makespan is the time from the first submission to the last finish.
	Makespan unit.Duration
	// Jobs counts the jobs that the bounds are about; Skipped those left out, since
	// they ask for more than all devices or have no end.
	Jobs, Skipped int
	// Why says why there are no bounds, or none by device time.
	Why string
}

// shared is why a device that works for several jobs has no bound by its time.
const shared = "devices worked for more jobs at once than asked for them, so of the bounds of the average JCT only the isolated one holds"

// Compute bounds what can be done in that room for the jobs, in any order. Where a job is
// loose there are no bounds. But for Queueing it takes n log n steps and computes in whole
// numbers: no rounding can lift a bound above what a schedule achieves. Queueing is less
// than it was computed as by more than rounding could have lifted it.
func Compute(jobs []Job, in Room) Bounds {
	var b Bounds
	if i := slices.IndexFunc(jobs, func(j Job) bool { return j.Loose != "" }); i >= 0 {
		b.Why = "there is no lower bound of the average JCT: " + jobs[i].Loose
		return b
	}
	var kept []Job
	for _, j := range jobs {
		if j.Duration == unit.Forever || j.Duration < 0 || j.Devices < 0 || j.Devices > unit.Milli(in.Devices)*unit.Whole {
			b.Skipped++
			continue
		}
		kept = append(kept, j)
	}
	b.Jobs = len(kept)
	if b.Jobs == 0 {
		return b
	}
	slices.SortFunc(kept, func(x, y Job) int {
		return cmp.Or(cmp.Compare(x.Submit, y.Submit), cmp.Compare(x.Duration, y.Duration), cmp.Compare(x.Devices, y.Devices))
	})
	first := kept[0].Submit
	for i := range kept {
		kept[i].Submit -= first
	}
	b.Isolated = isolated(kept)
	b.MeanJCT = b.Isolated
	if in.Shared {
		b.Why = shared
		b.Makespan = makespan(kept, 0)
		return b
	}
	speed := max(1, uint64(in.Devices)*uint64(unit.Whole))
	b.SquashedSRPT = squashed(kept, speed)
	b.Queueing = queueing(kept, speed, float64(b.Jobs)*(float64(b.Isolated)+float64(b.SquashedSRPT)))
	b.MeanJCT = max(b.Isolated, b.SquashedSRPT, b.Queueing)
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

// makespan takes the jobs in order of submission, counted from the first. Without a speed
// only their own durations count.
func makespan(jobs []Job, speed uint64) unit.Duration {
	var last unit.Duration
	var area unit.DeviceTime // of what is submitted from here on
	for _, j := range slices.Backward(jobs) {
		since := unit.Duration(j.Submit)
		area = area.Plus(j.area())
		last = max(last, since+j.Duration)
		if speed > 0 {
			last = max(last, since+area.Over(speed))
		}
	}
	return last
}

func (j Job) area() unit.DeviceTime { return unit.Use(int64(j.Devices), j.Duration) }

// squashed runs shortest remaining processing time, from event to event: on a
// submission or a finish. The jobs come in order of submission, counted from the
// first. Its unit of time is a microsecond over the speed, in which the machine
// does one unit of area.
func squashed(jobs []Job, speed uint64) unit.Duration {
	// Of the jobs submitted and not finished, the shortest first.
	left := heap.Heap[task]{Before: func(a, b *task) bool { return a.left.Less(b.left) }}
	var sum, now unit.DeviceTime // of completion times
	for next := 0; next < len(jobs) || len(left.Items) > 0; {
		if len(left.Items) == 0 {
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
			left.Push(task{left: jobs[next].area(), submitted: until})
		}
		end := now.Plus(left.Items[0].left)
		if next < len(jobs) && until.Less(end) {
			left.Items[0].left = end.Minus(until) // it stays the shortest
			now = until
			continue
		}
		sum = sum.Plus(end.Minus(left.Items[0].submitted))
		now = end
		left.Pop()
	}
	return sum.Over(uint64(len(jobs)) * speed)
}

// task is a job on the fast machine.
type task struct {
	left      unit.DeviceTime
	submitted unit.DeviceTime
}
