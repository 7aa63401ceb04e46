package snapshot

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/musterdl/muster/mechanism/bound"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
)

// Arrivals are the jobs of a history with what was learned of their run times, to be
// replayed. A run time is that on the gang a job asked for, on devices of declared speed
// 1, undisturbed:
//
//   - finished: what was observed, the work that had to be done again left out;
//   - failed of its own making: it fails again after the same running time;
//   - ended at its time limit: it runs into it again;
//   - cancelled, or running or waiting at the end (censored): what its owner declared if
//     it has not run as long, else twice what it has run, else the median of the finished.
//
// Twice, because run times spread over orders of magnitude: of jobs that have run for an
// hour about half run for another.
type Arrivals struct {
	jobs   []workload.Job
	truths []workload.Truth

	// Of the censored and cancelled:
	Declared int // as declared
	Twice    int // twice what they have run
	Median   int // the median of the finished
}

// nothingFinished is the run time of jobs of which nothing at all is known.
const nothingFinished = unit.Hour

// arrivals make a replay of what was recorded; restart is what a job loses by being
// resumed that does not say.
func (r *recorder) arrivals(v plan.View, restart unit.Duration) *Arrivals {
	a := &Arrivals{}
	median := r.median(v)
	for id := range r.jobs {
		truth := r.truth(a, v, &r.jobs[id], median)
		job := *r.jobs[id].spec
		job.Submit = r.jobs[id].submit
		if truth.FailAfter > 0 {
			job.Retries = 0 // its failures are in that time
		}
		job.Checkpoint.Load = cmp.Or(job.Checkpoint.Load, restart)
		a.jobs, a.truths = append(a.jobs, job), append(a.truths, truth)
	}
	return a
}

// median is the median run time of the finished jobs.
func (r *recorder) median(v plan.View) unit.Duration {
	var all []unit.Duration
	for id := range r.jobs {
		if v.Job(r.jobs[id].id).Phase == plan.Finished {
			all = append(all, r.jobs[id].observed())
		}
	}
	slices.Sort(all)
	return cmp.Or(report.Quantile(all, 500), nothingFinished)
}

// observed is the work that was done and kept, that of the present run among it; where
// nothing was kept, or its driver does not say, the time that it ran.
func (t *tracked) observed() unit.Duration {
	work := t.work
	for i := range t.runs {
		work += float64(t.runs[i].ran) * t.runs[i].rate
	}
	if work < 1 {
		return max(1, t.ran)
	}
	return unit.Duration(work + 0.5)
}

// truth is how long a job is taken to run.
func (r *recorder) truth(a *Arrivals, v plan.View, t *tracked, median unit.Duration) workload.Truth {
	j := v.Job(t.id)
	switch {
	case j.Phase == plan.Finished:
		return workload.Truth{Duration: t.observed()}
	case j.Phase == plan.Failed && j.Reason.Code == plan.OverLimit:
		return workload.Truth{Duration: 4 * max(j.TimeLimit, t.ran)}
	case j.Phase == plan.Failed && t.ran > 0:
		return workload.Truth{Duration: 4 * max(t.ran, t.observed()), FailAfter: t.ran}
	}
	switch {
	case j.Declared > t.observed():
		a.Declared++
		return workload.Truth{Duration: j.Declared}
	case t.ran > 0:
		a.Twice++
		return workload.Truth{Duration: 2 * t.observed()}
	}
	a.Median++
	return workload.Truth{Duration: median}
}

// source hands the jobs out, as often as is asked for one.
func (a *Arrivals) source() *source { return &source{arrivals: a} }

type source struct {
	arrivals *Arrivals
	next     int
}

// Next returns the next job.
func (s *source) Next() (workload.Job, workload.Truth, error) {
	if s.next == len(s.arrivals.jobs) {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	s.next++
	return s.arrivals.jobs[s.next-1], s.arrivals.truths[s.next-1], nil
}

// bounds are the lower bounds of the average JCT on a cluster, of whose devices jobs may have
// been given less than they ask for.
func (a *Arrivals) bounds(c *cluster.Cluster, shared bool) bound.Bounds {
	rigid := make([]bound.Job, len(a.jobs))
	for i := range a.jobs {
		rigid[i] = bound.Of(a.jobs[i], a.truths[i]).At(fastest(c, &a.jobs[i]))
	}
	return bound.Compute(rigid, bound.Room{Devices: len(c.Devices), Shared: shared})
}

// fastest is the rate of a job on the devices where it goes fastest, as declared.
func fastest(c *cluster.Cluster, job *workload.Job) (rate float64) {
	menu := plan.MenuOf(c, job.Menu)
	for model := range c.Models {
		if len(menu) == 0 {
			rate = max(rate, c.Models[model].Speed)
			continue
		}
		rate = max(rate, float64(menu.Rate(c, int32(model), job.Gang, false))/plan.FullRate, float64(menu.Rate(c, int32(model), job.Gang, true))/plan.FullRate)
	}
	return rate
}

// notes are what a reader of a replay must know of its jobs.
func (a *Arrivals) notes() []string {
	n := a.Declared + a.Twice + a.Median
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d jobs did not get to their end: they are replayed with their declared run time (%d), twice what they had run (%d) or the median of the finished (%d)",
		n, a.Declared, a.Twice, a.Median)}
}
