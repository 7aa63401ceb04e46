package divide

import "math"

// Arrival is a job of a run: when it comes, and its work at rate 1, in seconds.
type Arrival struct{ At, Work float64 }

// Pace is what a job does from now on: nothing for so many seconds (a restart), then
// work at a rate.
type Pace struct{ Rate, Pause float64 }

// Decide sets the pace of every active job; they are given by number, in order of
// arrival, and so is the work that is left of every job. Rates are as they were left,
// pauses are zero.
type Decide func(now float64, active []int, left []float64, pace []Pace)

// Run plays jobs to their ends and returns when each ended. It asks at every arrival
// and end and, where every is positive, so many seconds after it asked last. Jobs
// come in order of arrival. A job that nobody ever gives a rate ends at +Inf.
func Run(jobs []Arrival, every float64, decide Decide) []float64 {
	r := running{jobs: jobs, left: make([]float64, len(jobs)), pace: make([]Pace, len(jobs)), until: make([]float64, len(jobs)), end: make([]float64, len(jobs))}
	for j := range jobs {
		r.left[j], r.end[j] = jobs[j].Work, math.Inf(1)
	}
	next := 0
	for next < len(jobs) || len(r.active) > 0 {
		at := math.Inf(1)
		if next < len(jobs) {
			at = jobs[next].At
		}
		first := r.firstEnd()
		if every > 0 && len(r.active) > 0 && !math.IsInf(min(at, first), 1) {
			at = min(at, r.now+every)
		}
		if at = min(at, first); math.IsInf(at, 1) {
			break
		}
		r.advance(max(at, r.now))
		for ; next < len(jobs) && jobs[next].At <= r.now; next++ {
			r.active = append(r.active, next)
		}
		if len(r.active) == 0 {
			continue
		}
		for _, j := range r.active {
			r.pace[j].Pause = 0
		}
		decide(r.now, r.active, r.left, r.pace)
		for _, j := range r.active {
			if r.pace[j].Pause > 0 {
				r.until[j] = r.now + r.pace[j].Pause
			}
		}
	}
	return r.end
}

type running struct {
	jobs      []Arrival
	now       float64
	active    []int
	left, end []float64
	pace      []Pace
	until     []float64 // end of the pause
}

// endOf is when an active job ends at its pace.
func (r *running) endOf(j int) float64 {
	if r.pace[j].Rate <= 0 {
		return math.Inf(1)
	}
	return max(r.now, r.until[j]) + r.left[j]/r.pace[j].Rate
}

func (r *running) firstEnd() float64 {
	first := math.Inf(1)
	for _, j := range r.active {
		first = min(first, r.endOf(j))
	}
	return first
}

// advance moves to an instant no later than the first end, and lets go of the jobs
// that end there.
func (r *running) advance(at float64) {
	keep := r.active[:0]
	for _, j := range r.active {
		if r.endOf(j) <= at {
			r.left[j], r.end[j] = 0, at
			continue
		}
		r.left[j] -= r.pace[j].Rate * max(0, at-max(r.now, r.until[j]))
		keep = append(keep, j)
	}
	r.active, r.now = keep, at
}

// Elastic is the way of jobs that go at rate(job, n) on n units of one pool: shares
// says, for the active jobs in turn, how many units each has from now on. A job that
// has run before and whose share changes pauses for cost seconds.
func Elastic(rate Rate, cost float64, shares func(active []int, left []float64) []int32) Decide {
	has, ran := map[int]int32{}, map[int]bool{}
	return func(_ float64, active []int, left []float64, pace []Pace) {
		for i, n := range shares(active, left) {
			j := active[i]
			if n == has[j] {
				continue
			}
			pace[j].Rate, has[j] = rate(j, n), n
			if n > 0 && ran[j] {
				pace[j].Pause = cost
			}
			ran[j] = ran[j] || n > 0
		}
	}
}

// MeanJCT is the mean time from arrival to end.
func MeanJCT(jobs []Arrival, ends []float64) float64 {
	total := 0.0
	for j := range jobs {
		total += ends[j] - jobs[j].At
	}
	return total / float64(max(1, len(jobs)))
}
