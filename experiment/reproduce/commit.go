package reproduce

import (
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// CommitWork is a steady stream of jobs on a cluster of nodes of eight devices, on
// which single commits are timed. The jobs have the sizes and durations of RW-A, but
// none runs longer than commitLongest, so that the cluster is in its steady state soon
// after that has passed. Load is the work that arrives per time over what the devices do.
type CommitWork struct {
	Devices  int
	Load     float64
	Measured int // jobs submitted while commits are timed
	Seed     uint64
}

// commitLongest bounds the durations of CommitWork.
const commitLongest = 6 * unit.Hour

// CommitCost is what commits cost: the time of the engine's step, and what it and
// its commit took from the heap.
type CommitCost struct {
	Commits, Jobs    int64
	P50, P99         time.Duration
	Allocs, Bytes    float64 // per commit
	Preemptions      int64
	LongestQueueJobs int64
}

// MeasureCommits times the commits of a strategy. The driver around the engine is
// as plain as can be: what is decided happens at once, costs nothing and lasts as
// long as it was drawn, so that the engine is what is measured.
func MeasureCommits(strategy string, w CommitWork) (CommitCost, error) {
	built, err := build(Setup{Strategy: strategy, Seed: w.Seed})
	if err != nil {
		return CommitCost{}, err
	}
	jobs, warm, err := w.draw()
	if err != nil {
		return CommitCost{}, err
	}
	c := cluster.Uniform("gpus", w.Devices/8, 8, cluster.Model{Name: "gpu", Speed: 1}, 32)
	b := &bench{engine: engine.New(c, built.Scheduler, engine.DefaultPolicy()), truth: built.TellTruth, jobs: jobs,
		times: make([]time.Duration, 0, 4*len(jobs))}
	b.runTo(warm)
	var before, after runtime.MemStats
	b.times, b.preemptions = b.times[:0], 0
	runtime.ReadMemStats(&before)
	b.runTo(len(jobs))
	runtime.ReadMemStats(&after)
	cost := CommitCost{Commits: int64(len(b.times)), Jobs: int64(len(jobs) - warm), Preemptions: b.preemptions, LongestQueueJobs: b.longest}
	if cost.Commits == 0 {
		return cost, errors.New("no commit was made while they were measured")
	}
	slices.Sort(b.times)
	cost.P50, cost.P99 = b.times[len(b.times)/2], b.times[len(b.times)*99/100]
	cost.Allocs = float64(after.Mallocs-before.Mallocs) / float64(cost.Commits)
	cost.Bytes = float64(after.TotalAlloc-before.TotalAlloc) / float64(cost.Commits)
	return cost, nil
}

// drawn is one job of CommitWork.
type drawn struct {
	spec workload.Job
	left unit.Duration
	run  unit.Time // when it was last started
}

// draw makes the jobs, those that fill the cluster first.
func (w CommitWork) draw() (jobs []drawn, warm int, err error) {
	sizes, err := trace.Open("gen:rw-a?jobs=10000", trace.Options{Devices: w.Devices, Seed: w.Seed})
	if err != nil {
		return nil, 0, err
	}
	saved := trace.WithSaving(sizes, trace.Saving{}, w.Seed)
	var area float64
	var kinds []drawn
	for {
		job, truth, err := saved.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		d := min(truth.Duration, commitLongest)
		area += float64(job.Workers()) / float64(unit.Whole) * d.Seconds()
		kinds = append(kinds, drawn{spec: job, left: d})
	}
	rate := w.Load * float64(w.Devices) * float64(len(kinds)) / area
	rng := rand.New(rand.NewPCG(w.Seed, 0))
	now := 0.0
	for len(jobs)-warm < w.Measured {
		j := kinds[rng.IntN(len(kinds))]
		now += rng.ExpFloat64() / rate
		j.spec.Submit = unit.Time(unit.Seconds(now))
		if now <= 2*commitLongest.Seconds() {
			warm++
		}
		jobs = append(jobs, j)
	}
	return jobs, warm, nil
}

// bench drives an engine.
type bench struct {
	engine *engine.Engine
	truth  bool
	jobs   []drawn
	next   int
	ends   []ending
	now    []engine.Event
	more   []engine.Event
	times  []time.Duration
	all    []time.Duration // of every step, where timed is set
	timed  bool

	preemptions      int64
	waiting, longest int64
}

// ending is when an attempt will have done its work, unless it is stopped before.
type ending struct {
	at      unit.Time
	job     plan.JobID
	attempt int32
}

// runTo goes on until so many jobs were submitted.
func (b *bench) runTo(jobs int) {
	wake := unit.Never
	for b.next < jobs {
		at := min(wake, b.jobs[b.next].spec.Submit)
		if len(b.ends) > 0 {
			at = min(at, b.ends[0].at)
		}
		b.due(at)
		for {
			b.now, b.more = b.more, b.now[:0]
			events := b.now
			began := time.Now()
			out := b.engine.Step(at, events)
			took := time.Since(began)
			if b.timed {
				b.all = append(b.all, took)
			}
			if out.Commit != nil {
				b.times = append(b.times, took)
			}
			for i := range out.Ready {
				b.carryOut(at, &out.Ready[i])
			}
			wake = out.Wake
			if len(b.more) == 0 {
				break
			}
		}
		b.longest = max(b.longest, b.waiting)
	}
}

// due collects what happens at an instant by itself.
func (b *bench) due(at unit.Time) {
	for b.next < len(b.jobs) && b.jobs[b.next].spec.Submit <= at {
		b.more = append(b.more, engine.Event{Kind: engine.Submit, Spec: &b.jobs[b.next].spec})
		if b.truth {
			b.more = append(b.more, engine.Event{Kind: engine.Truth, Job: plan.JobID(b.next), Span: b.jobs[b.next].left})
		}
		b.next++
		b.waiting++
	}
	for len(b.ends) > 0 && b.ends[0].at <= at {
		e := b.pop()
		if v := b.engine.View(); v.Job(e.job).Run == plan.None || v.Job(e.job).Attempt != e.attempt {
			continue
		}
		b.more = append(b.more, engine.Event{Kind: engine.Exited, Job: e.job, Attempt: e.attempt, Ending: engine.Ending{Kept: at.Sub(b.jobs[e.job].run)}})
	}
}

func (b *bench) carryOut(at unit.Time, c *plan.Change) {
	j := &b.jobs[c.Job]
	switch c.Verb {
	case plan.Start:
		j.run = at
		b.waiting--
		b.push(ending{at.Add(j.left), c.Job, c.Attempt})
		b.more = append(b.more, engine.Event{Kind: engine.Started, Job: c.Job, Attempt: c.Attempt})
	case plan.Stop:
		ran := at.Sub(j.run)
		j.left -= ran
		b.waiting++
		b.preemptions++
		b.more = append(b.more, engine.Event{Kind: engine.Stopped, Job: c.Job, Attempt: c.Attempt, Ending: engine.Ending{Kept: ran}})
	}
}

func (b *bench) push(e ending) {
	b.ends = append(b.ends, e)
	for i := len(b.ends) - 1; i > 0; {
		parent := (i - 1) / 2
		if b.ends[parent].at <= b.ends[i].at {
			break
		}
		b.ends[i], b.ends[parent] = b.ends[parent], b.ends[i]
		i = parent
	}
}

func (b *bench) pop() ending {
	top, last := b.ends[0], len(b.ends)-1
	b.ends[0] = b.ends[last]
	b.ends = b.ends[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if b.ends[c].at < b.ends[least].at {
				least = c
			}
		}
		if least == i {
			return top
		}
		b.ends[i], b.ends[least] = b.ends[least], b.ends[i]
		i = least
	}
}
