package reproduce

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
)

// QueueWork is a busy shared cluster: so many queues in groups, devices on nodes of
// eight, and so many jobs that wait while others come and go.
type QueueWork struct {
	Queues, Groups, Devices int
	Waiting, Measured       int
	Seed                    uint64
}

// QueueCost is what decisions cost there: single steps of the engine that admit jobs,
// and those and all others together.
type QueueCost struct {
	AdmissionsPerSec float64 // submissions taken in by second of the engine's time while the queue fills
	StartsPerSec     float64 // jobs started by second of the engine's time once it is full
	P50, P99         time.Duration
	Steps            int64
	Preemptions      int64
	WaitingJobs      int64
	AllocsPerStep    float64
}

// MeasureQueues fills a shared cluster, lets its queue grow to so many waiting jobs,
// and times the engine while as many more come as are to be measured.
func MeasureQueues(strategy string, w QueueWork) (QueueCost, error) {
	built, err := build(Setup{Strategy: strategy, Seed: w.Seed})
	if err != nil {
		return QueueCost{}, err
	}
	jobs, err := w.draw()
	if err != nil {
		return QueueCost{}, err
	}
	tree := spec.ManyQueues(w.Queues, w.Groups, w.Devices)
	b := &bench{engine: engine.New(w.cluster(), built.Scheduler, engine.DefaultPolicy()), truth: built.TellTruth, jobs: jobs}
	b.engine.Step(0, []engine.Event{{Kind: engine.Shares, Queues: &tree}})
	b.timed = true
	b.runTo(w.Waiting)
	admissions := float64(w.Waiting) / total(b.all).Seconds()
	b.timed = false
	b.runTo(len(jobs) - w.Measured + 1)
	b.times, b.all, b.preemptions = b.times[:0], b.all[:0], 0
	b.timed = true
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.runTo(len(jobs))
	runtime.ReadMemStats(&after)
	if len(b.all) == 0 {
		return QueueCost{}, errors.New("no step was made while they were measured")
	}
	starts := float64(len(b.times)) / total(b.all).Seconds()
	slices.Sort(b.all)
	return QueueCost{AdmissionsPerSec: admissions, StartsPerSec: starts, P50: b.all[len(b.all)/2], P99: b.all[len(b.all)*99/100],
		Steps: int64(len(b.all)), Preemptions: b.preemptions, WaitingJobs: b.waiting,
		AllocsPerStep: float64(after.Mallocs-before.Mallocs) / float64(len(b.all))}, nil
}

func total(times []time.Duration) (sum time.Duration) {
	for _, took := range times {
		sum += took
	}
	return sum
}

func (w QueueWork) cluster() *cluster.Cluster {
	return cluster.Uniform("gpus", w.Devices/8, 8, cluster.Model{Name: "gpu", Speed: 1}, 32)
}

// draw makes the jobs, spread over the queues: the cluster's fill and the waiting ones
// at once, those that are measured as fast as the cluster works.
func (w QueueWork) draw() (jobs []drawn, err error) {
	sizes, err := trace.Open("gen:rw-a?jobs=10000", trace.Options{Devices: w.Devices, Seed: w.Seed})
	if err != nil {
		return nil, err
	}
	saved := trace.WithSaving(sizes, trace.Saving{}, w.Seed)
	var kinds []drawn
	area := 0.0
	for {
		job, truth, err := saved.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		job.Estimate = truth.Duration
		kinds = append(kinds, drawn{spec: job, left: truth.Duration})
		area += float64(job.Workers()) / 1000 * truth.Duration.Seconds()
	}
	tree := spec.ManyQueues(w.Queues, w.Groups, w.Devices)
	leaves := tree.Queues[len(tree.Queues)-w.Queues:]
	rate := float64(w.Devices) * float64(len(kinds)) / area // jobs per second that the cluster can do
	fill := w.Waiting + int(float64(w.Devices)*float64(len(kinds))/area*3600)
	for i := range fill + w.Measured {
		j := kinds[(i*7919)%len(kinds)]
		j.spec.Name = fmt.Sprint("job", i)
		j.spec.Tenant = leaves[(i*31)%len(leaves)].Name
		j.spec.User = fmt.Sprint("user", i%5)
		j.spec.Priority = int32(i % 10 / 9 * 10)
		if i < fill {
			j.spec.Submit = unit.Time(i / 1000) // a thousand at an instant
		} else {
			j.spec.Submit = unit.Time(unit.Hour) + unit.Time(unit.Seconds(float64(i-fill)/rate))
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}
