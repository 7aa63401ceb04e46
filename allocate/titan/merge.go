package titan

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// tune is one fine-tuning job: so many steps on a batch over all devices.
type tune struct {
	id     int32
	model  *Model // nil is unknown: it merges with nobody, and a step is a microsecond
	gang   int32
	batch  float64 // samples per step, over all devices
	steps  float64 // left
	memory float64 // MiB that it declares per device; 0 is unknown
}

// group is the jobs of one run; the first brought the devices.
type group struct {
	jobs []*tune
	gang int32
}

// constant is a model's constant on so many devices; between two measured counts the
// larger one's.
func (m *Model) constant(gang int32) float64 {
	return m.StepUS[min(bits.Len32(uint32(max(gang, 1)-1)), 3)]
}

// step is how long one step of all jobs together takes, µs: the backbone once over
// the sum of their batches, and each job's head.
func (c *Config) step(jobs []*tune, gang int32) float64 {
	m := jobs[0].model
	if m == nil {
		return 1
	}
	batch := 0.0
	for _, j := range jobs {
		batch += j.batch
	}
	perDevice := batch / float64(gang) * m.SampleUS
	return m.constant(gang) + perDevice*(1+c.HeadPercent/100)
}

// memory is what merged jobs take on each device, MiB: the backbone once.
func memory(jobs []*tune, gang int32) float64 {
	batch := 0.0
	for _, j := range jobs {
		batch += j.batch
	}
	return jobs[0].model.MemoryMiB + batch/float64(gang)*jobs[0].model.SampleMiB
}

// fits reports whether jobs may share a run: one known model, one size, and room for
// the backbone once and everybody's samples, and for what they declare.
func fits(jobs []*tune, gang int32, deviceMiB float64) bool {
	declared := 0.0
	for _, j := range jobs {
		if j.model == nil || j.model != jobs[0].model || j.gang != gang {
			return false
		}
		declared += j.memory
	}
	return max(declared, memory(jobs, gang)) <= deviceMiB
}

// course is how a run would go on by itself: the running time at which each of its
// jobs ends, and how far it is.
type course struct {
	id, gang int32
	ends     []float64 // µs
	ran      float64
}

// course lets jobs make every step together; who has fewest steps left leaves first.
func (c *Config) course(jobs []*tune, gang int32) course {
	left := slices.Clone(jobs)
	slices.SortFunc(left, func(a, b *tune) int { return cmp.Or(cmp.Compare(a.steps, b.steps), cmp.Compare(a.id, b.id)) })
	w := course{id: jobs[0].id, gang: gang}
	now, done := 0.0, 0.0
	for ; len(left) > 0; left = left[1:] {
		now += (left[0].steps - done) * c.step(left, gang)
		done = left[0].steps
		w.ends = append(w.ends, now)
	}
	return w
}

// key orders runs: the time a run still takes per job that it ends; a lone job's is its
// remaining time.
func (w *course) key() float64 { return (w.ends[len(w.ends)-1] - w.ran) / float64(len(w.ends)) }

func order(runs []course) {
	slices.SortFunc(runs, func(a, b course) int {
		return cmp.Or(cmp.Compare(a.key(), b.key()), cmp.Compare(a.id, b.id))
	})
}

// total is the sum of all jobs' ends, µs from now, if nobody else comes: in order of
// what runs still take, as far as there is room, anew at every end.
func total(runs []course, devices int32) (sum float64) {
	now := 0.0
	for len(runs) > 0 {
		order(runs)
		next, free := math.Inf(1), devices
		for i := range runs {
			if w := &runs[i]; w.gang <= free {
				free -= w.gang
				next = min(next, w.ends[0]-w.ran)
			}
		}
		if math.IsInf(next, 1) { // what is left needs more devices than are there now
			return next
		}
		now, free = now+next, devices
		kept := runs[:0]
		for _, w := range runs {
			if w.gang <= free {
				free -= w.gang
				w.ran += next
				for len(w.ends) > 0 && w.ends[0] <= w.ran+1e-3 {
					sum, w.ends = sum+now, w.ends[1:]
				}
			}
			if len(w.ends) > 0 {
				kept = append(kept, w)
			}
		}
		runs = kept
	}
	return sum
}

// near is how many earlier runs of its model a job is tried with.
const near = 3

// merge lets each job that has no devices, in order of remaining time, join one of the
// earlier runs of its model nearest to it: the one with which all jobs together end
// earliest, if that is earlier than without. It returns the runs in order.
func (c *Config) merge(runs []*group, devices int32, deviceMiB float64) []*group {
	courses := c.sort(runs)
	least := total(slices.Clone(courses), devices)
	free := devices
	for i := 0; i < len(runs); i++ {
		if g := runs[i]; g.gang <= free {
			free -= g.gang
			continue
		} else if len(g.jobs) > 1 {
			continue
		}
		j, best, tried := runs[i].jobs[0], -1, 0
		for k := i - 1; k >= 0 && tried < near; k-- {
			both := append(slices.Clone(runs[k].jobs), j)
			if !fits(both, runs[k].gang, deviceMiB) {
				continue
			}
			tried++
			trial := slices.Delete(slices.Clone(courses), i, i+1)
			trial[k] = c.course(both, runs[k].gang)
			if t := total(trial, devices); t < least {
				best, least = k, t
			}
		}
		if best >= 0 {
			runs[best].jobs = append(runs[best].jobs, j)
			runs, courses = slices.Delete(runs, i, i+1), slices.Delete(courses, i, i+1)
			courses[best] = c.course(runs[best].jobs, runs[best].gang)
			i--
		}
	}
	return runs
}

// sort orders runs and returns their courses.
func (c *Config) sort(runs []*group) []course {
	courses := make(map[*group]*course, len(runs))
	for _, g := range runs {
		w := c.course(g.jobs, g.gang)
		courses[g] = &w
	}
	slices.SortFunc(runs, func(a, b *group) int {
		return cmp.Or(cmp.Compare(courses[a].key(), courses[b].key()), cmp.Compare(courses[a].id, courses[b].id))
	})
	ordered := make([]course, len(runs))
	for i, g := range runs {
		ordered[i] = *courses[g]
	}
	return ordered
}

// plan says who runs, of the runs so far and the jobs that wait: shortest remaining
// time first as far as there is room, after merging.
func (c *Config) plan(runs []*group, waiting []*tune, devices int32, deviceMiB float64) []*group {
	all := slices.Clone(runs)
	for _, j := range waiting {
		all = append(all, &group{jobs: []*tune{j}, gang: j.gang})
	}
	c.sort(all)
	if c.Merge {
		all = c.merge(all, devices, deviceMiB)
		c.sort(all)
	}
	var on []*group
	for _, g := range all {
		if g.gang <= devices {
			devices -= g.gang
			on = append(on, g)
		}
	}
	return on
}
