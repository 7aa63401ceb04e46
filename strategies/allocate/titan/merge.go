package titan

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/musterdl/muster/mechanism/rank"
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

// fits reports whether a job may join a run: one known model, one size, and room for
// the backbone once and everybody's samples, and for what they declare.
func (g *group) fits(j *tune, deviceMiB float64) bool {
	if j.model == nil || j.model != g.jobs[0].model || j.gang != g.gang {
		return false
	}
	declared := j.memory
	for _, h := range g.jobs {
		declared += h.memory
	}
	return max(declared, memory(append(slices.Clone(g.jobs), j), g.gang)) <= deviceMiB
}

// course is how a run would go on by itself: the running time at which each of its
// jobs ends, and how far it is.
type course struct {
	id, gang int32
	ends     []float64 // µs
	ran      float64
	key      float64 // see rank
}

// course lets jobs make every step together; who has fewest steps left leaves first. It
// writes the ends to the given memory, if that is large enough.
func (c *Config) course(jobs []*tune, gang int32, ends []float64) course {
	if len(jobs) == 1 { // nearly all are alone
		w := course{id: jobs[0].id, gang: gang, ends: append(ends[:0], jobs[0].steps*c.step(jobs, gang))}
		w.rank()
		return w
	}
	left := slices.Clone(jobs)
	slices.SortFunc(left, func(a, b *tune) int { return cmp.Or(cmp.Compare(a.steps, b.steps), cmp.Compare(a.id, b.id)) })
	w := course{id: jobs[0].id, gang: gang, ends: slices.Grow(ends[:0], len(left))}
	now, done := 0.0, 0.0
	for ; len(left) > 0; left = left[1:] {
		now += (left[0].steps - done) * c.step(left, gang)
		done = left[0].steps
		w.ends = append(w.ends, now)
	}
	w.rank()
	return w
}

// rank sets what runs are ordered by: the time a run still takes per job that it ends; a
// lone job's is its remaining time.
func (w *course) rank() { w.key = (w.ends[len(w.ends)-1] - w.ran) / float64(len(w.ends)) }

// before reports whether a run goes before another.
func (w *course) before(o *course) bool { return w.key < o.key || w.key == o.key && w.id < o.id }

// order moves what is out of place: between two ends that is little.
func order(runs []course) {
	for i := 1; i < len(runs); i++ {
		if !runs[i].before(&runs[i-1]) {
			continue
		}
		w, at := runs[i], i
		for ; at > 0 && w.before(&runs[at-1]); at-- {
			runs[at] = runs[at-1]
		}
		runs[at] = w
	}
}

// total is the sum of all jobs' ends, µs from now, if nobody else comes: in order of
// what runs still take, as far as there is room, anew at every end.
func total(runs []course, devices int32) (sum float64) {
	for i := range runs {
		runs[i].rank()
	}
	now := 0.0
	for len(runs) > 0 {
		order(runs)
		next, free := math.Inf(1), devices
		for i := 0; i < len(runs) && free > 0; i++ {
			if w := &runs[i]; w.gang <= free {
				free -= w.gang
				next = min(next, w.ends[0]-w.ran)
			}
		}
		if math.IsInf(next, 1) { // what is left needs more devices than are there now
			return next
		}
		now, free = now+next, devices
		gone := false
		for i := 0; i < len(runs) && free > 0; i++ {
			w := &runs[i]
			if w.gang > free {
				continue
			}
			free -= w.gang
			w.ran += next
			for len(w.ends) > 0 && w.ends[0] <= w.ran+1e-3 {
				sum, w.ends = sum+now, w.ends[1:]
			}
			if len(w.ends) > 0 {
				w.rank()
			} else {
				gone = true
			}
		}
		if gone {
			runs = slices.DeleteFunc(runs, func(w course) bool { return len(w.ends) == 0 })
		}
	}
	return sum
}

// near is how many earlier runs of its model a job is tried with.
const near = 3

// merge lets the first of the jobs that have no devices, in order of remaining time,
// join one of the earlier runs of their model nearest to them: the one with which all
// jobs together end earliest, if that is earlier than without. It returns the runs in
// order, and who joined whom. The runs must be in order.
func (c *Config) merge(runs []*group, courses []course, devices int32, deviceMiB float64, first int) ([]*group, []join) {
	least := total(slices.Clone(courses), devices)
	free := devices
	var trial []course
	var joins []join
	for i := 0; i < len(runs) && first > 0; i++ {
		if g := runs[i]; g.gang <= free {
			free -= g.gang
			continue
		} else if len(g.jobs) > 1 || g.jobs[0].model == nil {
			continue
		}
		j, best, tried := runs[i].jobs[0], -1, 0
		first--
		for k := i - 1; k >= 0 && tried < near; k-- {
			if !runs[k].fits(j, deviceMiB) {
				continue
			}
			tried++
			trial = append(append(trial[:0], courses[:i]...), courses[i+1:]...)
			trial[k] = c.course(append(slices.Clone(runs[k].jobs), j), runs[k].gang, nil)
			if t := total(trial, devices); t < least {
				best, least = k, t
			}
		}
		if best >= 0 {
			joins = append(joins, join{Host: runs[best].jobs[0].id, Guest: j.id})
			runs[best].jobs = append(runs[best].jobs, j)
			runs, courses = slices.Delete(runs, i, i+1), slices.Delete(courses, i, i+1)
			courses[best] = c.course(runs[best].jobs, runs[best].gang, nil)
			i--
		}
	}
	return runs, joins
}

// lineup is the memory that it takes to put runs in order, used again.
type lineup struct {
	by             rank.Order
	found, courses []course
	ends           []float64
	before         []*group
	all, on        []*group
	own            []group // of jobs that wait
	alone          []*tune
}

// sort orders runs and returns their courses.
func (c *Config) sort(runs []*group, in *lineup) []course {
	n := len(runs)
	in.by.Begin(n)
	in.found, in.courses, in.ends = slices.Grow(in.found[:0], n)[:n], slices.Grow(in.courses[:0], n)[:n], slices.Grow(in.ends[:0], n)[:n]
	for i, g := range runs {
		in.found[i] = c.course(g.jobs, g.gang, in.ends[i:i:i+1])
		in.by.Keys[i] = uint64(in.found[i].id)
	}
	in.by.Sort()
	for i := range in.found {
		in.by.Keys[i] = rank.Float(in.found[i].key)
	}
	in.before = append(in.before[:0], runs...)
	for i, at := range in.by.Sort() {
		runs[i], in.courses[i] = in.before[at], in.found[at]
	}
	return in.courses
}

// line are the runs so far and the jobs that wait, in order.
func (c *Config) line(runs []*group, waiting []*tune, in *lineup) ([]*group, []course) {
	n := len(waiting)
	in.all, in.own, in.alone = append(in.all[:0], runs...), slices.Grow(in.own[:0], n)[:n], append(in.alone[:0], waiting...)
	for i, j := range waiting {
		in.own[i] = group{jobs: in.alone[i : i+1 : i+1], gang: j.gang}
		in.all = append(in.all, &in.own[i])
	}
	return in.all, c.sort(in.all, in)
}

// plan says who runs, of the runs so far and the jobs that wait: shortest remaining
// time first as far as there is room, after merging.
func (c *Config) plan(runs []*group, waiting []*tune, devices int32, deviceMiB float64, in *lineup) []*group {
	all, courses := c.line(runs, waiting, in)
	if c.Merge {
		all, _ = c.merge(all, courses, devices, deviceMiB, len(all))
		c.sort(all, in)
	}
	return in.fill(all, devices)
}

// fill are those of the runs, which are in order, for which there is room.
func (in *lineup) fill(all []*group, devices int32) []*group {
	in.on = in.on[:0]
	for _, g := range all {
		if g.gang <= devices {
			devices -= g.gang
			in.on = append(in.on, g)
		}
	}
	return in.on
}
