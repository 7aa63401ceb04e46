package forecast_test

import (
	"cmp"
	"math"
	"slices"
)

// fluid is the simulator of PCS (OSDI'24) in small: GPUs are divided among elastic
// jobs, in parts where a policy wants, at no cost and anew at every arrival and end;
// sizes are known. It exists to compare predictions on its authors' terms.
type fluid struct {
	gpus   float64
	policy policy
	now    float64 // seconds
	active []*job  // in order of submission
}

// job is one of the trace. Work is seconds on one GPU.
type job struct {
	id           int
	submit, work float64
	left, gets   float64
	demand       int
	speed        []float64 // at 0, 1, ... demand GPUs
	end          float64
}

// rate is the speed at a share, linear between whole GPUs.
func (j *job) rate(gpus float64) float64 {
	low := min(int(gpus), j.demand)
	if low == j.demand {
		return j.speed[low]
	}
	return j.speed[low] + (gpus-float64(low))*(j.speed[low+1]-j.speed[low])
}

// policy divides GPUs: it sets gets of every active job.
type policy interface {
	divide(active []*job, gpus float64)
}

func (f *fluid) submit(j *job) {
	f.active = append(f.active, j)
	f.policy.divide(f.active, f.gpus)
}

// advance runs to an instant or to the first end, whichever is first, and returns the
// job that ended.
func (f *fluid) advance(to float64) *job {
	first, at := -1, to
	for i, j := range f.active {
		if r := j.rate(j.gets); r > 0 && f.now+j.left/r <= at {
			first, at = i, f.now+j.left/r
		}
	}
	for _, j := range f.active {
		j.left -= (at - f.now) * j.rate(j.gets)
	}
	f.now = at
	if first < 0 {
		return nil
	}
	j := f.active[first]
	j.end, j.left = at, 0
	f.active = slices.Delete(f.active, first, first+1)
	f.policy.divide(f.active, f.gpus)
	return j
}

// fork is an independent copy.
func (f *fluid) fork() *fluid {
	c := &fluid{gpus: f.gpus, policy: f.policy, now: f.now, active: make([]*job, len(f.active))}
	held := make([]job, len(f.active))
	for i, j := range f.active {
		held[i] = *j
		c.active[i] = &held[i]
	}
	return c
}

// ends runs until a job has ended, with those who come, nil for nobody, and returns
// when.
func (f *fluid) ends(id int, comes func() *job) float64 {
	var next *job
	for {
		to := math.Inf(1)
		if comes != nil && next == nil {
			next = comes()
		}
		if next != nil {
			to = next.submit
		}
		if j := f.advance(to); j != nil {
			if j.id == id {
				return j.end
			}
			continue
		}
		if next == nil {
			return to
		}
		f.submit(next)
		next = nil
	}
}

// afs is AFS-L (NSDI'21): one GPU after the other to the job that gains most from it
// compared pair by pair.
type afs struct{}

func (afs) divide(active []*job, gpus float64) {
	for _, j := range active {
		j.gets = 0
	}
	for range int(gpus) {
		var best *job
		for _, j := range active {
			if int(j.gets) < j.demand && (best == nil || beats(j, best)) {
				best = j
			}
		}
		if best == nil {
			return
		}
		best.gets++
	}
}

// beats reports whether a job should get the next GPU rather than another.
func beats(c, than *job) bool {
	a, b := than, c // a ends first
	if at, bt := a.left/a.rate(a.gets), b.left/b.rate(b.gets); a.gets == 0 && b.gets == 0 {
		if a.left/a.speed[1] > b.left/b.speed[1] {
			a, b = b, a
		}
	} else if at > bt {
		a, b = b, a
	}
	pa, pa1 := a.rate(a.gets), a.rate(a.gets+1)
	pb, pb1 := b.rate(b.gets), b.rate(b.gets+1)
	winner := b
	if pa == 0 || (pa1-pa)/pa > (pb1-pb)/pb1 {
		winner = a
	}
	return winner == c
}

// ranked serves jobs in the order of a rank, each up to the GPUs that it uses well;
// what is left over they get in the same order, used less and less well.
type ranked struct {
	rank func(j *job) float64
	well float64 // least speed-up per GPU
	step float64
}

func (r ranked) divide(active []*job, gpus float64) {
	order := slices.Clone(active)
	slices.SortStableFunc(order, func(a, b *job) int { return cmp.Or(cmp.Compare(r.rank(a), r.rank(b)), cmp.Compare(a.id, b.id)) })
	serve(order, gpus, r.well, r.step)
}

func serve(order []*job, gpus, well, step float64) {
	for {
		left := gpus
		for _, j := range order {
			j.gets = min(left, float64(uses(j, well)))
			left -= j.gets
		}
		if left <= 1e-9 || well <= 0 {
			return
		}
		well -= step
	}
}

// uses is the number of GPUs at which a job is still so much faster for each.
func uses(j *job, well float64) int {
	for g := 1; g <= j.demand; g++ {
		if j.speed[g]/float64(g) < well {
			return g - 1
		}
	}
	return j.demand
}

// pcs divides the GPUs among classes of size by weight, and within a class in order of
// submission.
type pcs struct {
	limits     []float64 // of work, the last without end
	weights    []float64
	well, step float64
}

func (p pcs) divide(active []*job, gpus float64) {
	classes := make([][]*job, len(p.weights))
	demand := make([]float64, len(p.weights))
	for _, j := range active {
		c := 0
		for c < len(p.limits)-1 && j.work > p.limits[c] {
			c++
		}
		classes[c] = append(classes[c], j)
		demand[c] += float64(j.demand)
	}
	share := water(demand, p.weights, gpus)
	for c, jobs := range classes {
		serve(jobs, share[c], p.well, p.step)
	}
}

// water divides what there is by weight among those who want more.
func water(demand, weights []float64, there float64) []float64 {
	share := make([]float64, len(demand))
	for there > 1e-9 {
		sum := 0.
		for i := range demand {
			if demand[i]-share[i] > 1e-9 {
				sum += weights[i]
			}
		}
		if sum == 0 {
			return share
		}
		used := 0.
		for i := range demand {
			if want := demand[i] - share[i]; want > 1e-9 {
				get := min(want, there*weights[i]/sum)
				share[i] += get
				used += get
			}
		}
		there -= used
	}
	return share
}
