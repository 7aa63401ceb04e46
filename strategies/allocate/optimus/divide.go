package optimus

import (
	"cmp"
	"container/heap"
	"slices"
)

// Demand is what one task takes of each kind of resource: devices, cores, memory.
type Demand [3]float64

// Job is a job that tasks are divided among.
type Job struct {
	// Sizes are the numbers of workers it may have, ascending.
	Sizes []int
	// Servers is the largest number of parameter servers; 0 is a job whose workers
	// reduce gradients among themselves.
	Servers int
	// Left is the time it still needs with so many.
	Left           func(workers, servers int) float64
	Worker, Server Demand
}

// Tasks are what a job was given.
type Tasks struct {
	Workers, Servers int
}

// Divide gives every job in turn the fewest tasks it can run with, as far as there is
// room, and then adds one task at a time, worker or server, where the time that is left
// falls most per share of the resource that the task takes most of.
func Divide(jobs []Job, room Demand) []Tasks {
	var d division
	return d.divide(jobs, room)
}

// divide is Divide in memory that is used again.
func (d *division) divide(jobs []Job, room Demand) []Tasks {
	d.jobs, d.free, d.all, d.steps = jobs, room, room, d.steps[:0]
	d.has, d.gain = append(d.has[:0], make([]Tasks, len(jobs))...), append(d.gain[:0], make([][2]float64, len(jobs))...)
	for i := range jobs {
		c := &jobs[i]
		least := Tasks{Workers: c.Sizes[0], Servers: min(c.Servers, 1)}
		if d.take(c, least) {
			d.has[i] = least
			d.weigh(i)
		}
	}
	for len(d.steps) > 0 {
		next := d.steps.pop()
		best, kind := next.job, next.kind
		if next.gain != d.gain[best][kind] {
			continue // it was weighed again since
		}
		if more := d.step(best, kind); d.take(&jobs[best], more) {
			d.has[best].Workers += more.Workers
			d.has[best].Servers += more.Servers
			d.weigh(best)
		} else {
			d.gain[best][kind] = 0 // there will not be more room later
		}
	}
	return d.has
}

type division struct {
	jobs      []Job
	free, all Demand
	has       []Tasks
	gain      [][2]float64 // by job: of more workers, of one more server
	steps     steps        // some were weighed again since
}

// step is what could be given next, with what was gained by it when it was weighed.
type step struct {
	gain      float64
	job, kind int
}

// steps is a heap: the step of most gain is in front, of equals that of the first job, and of one
// job more workers before a server.
type steps []step

// Len is how many steps there are.
func (s steps) Len() int { return len(s) }

// Swap exchanges two.
func (s steps) Swap(i, j int) { s[i], s[j] = s[j], s[i] }

// Less reports whether one is to come before another.
func (s steps) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(s[j].gain, s[i].gain), cmp.Compare(s[i].job, s[j].job), cmp.Compare(s[i].kind, s[j].kind)) < 0
}

// Push is for package heap.
func (s *steps) Push(x any) { *s = append(*s, x.(step)) }

// Pop is for package heap.
func (s *steps) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// push adds a step, pop takes the first: package heap's own would put each of them on the heap of the process.
func (s *steps) push(x step) {
	*s = append(*s, x)
	heap.Fix(s, len(*s)-1)
}

func (s *steps) pop() step {
	first, last := (*s)[0], len(*s)-1
	(*s)[0] = (*s)[last]
	if *s = (*s)[:last]; last > 0 {
		heap.Fix(s, 0)
	}
	return first
}

const workers, servers = 0, 1

// step is what a job may be given next; nothing where it has the most.
func (d *division) step(i, kind int) Tasks {
	c, has := &d.jobs[i], d.has[i]
	if kind == servers {
		return Tasks{Servers: min(1, c.Servers-has.Servers)}
	}
	if at, _ := slices.BinarySearch(c.Sizes, has.Workers+1); at < len(c.Sizes) {
		return Tasks{Workers: c.Sizes[at] - has.Workers}
	}
	return Tasks{}
}

func (d *division) weigh(i int) {
	c, has := &d.jobs[i], d.has[i]
	now := c.Left(has.Workers, has.Servers)
	for kind := range d.gain[i] {
		d.gain[i][kind] = 0
		if more := d.step(i, kind); more != (Tasks{}) {
			dominant := 0.0
			for r, x := range c.demand(more) {
				if d.all[r] > 0 {
					dominant = max(dominant, x/d.all[r])
				}
			}
			d.gain[i][kind] = (now - c.Left(has.Workers+more.Workers, has.Servers+more.Servers)) / max(dominant, 1e-9)
			if g := d.gain[i][kind]; g > 0 {
				d.steps.push(step{g, i, kind})
			}
		}
	}
}

func (c *Job) demand(t Tasks) (sum Demand) {
	for r := range sum {
		sum[r] = float64(t.Workers)*c.Worker[r] + float64(t.Servers)*c.Server[r]
	}
	return sum
}

// take takes room for tasks if there is enough.
func (d *division) take(c *Job, t Tasks) bool {
	need := c.demand(t)
	for r, x := range need {
		if x > d.free[r]+1e-9 {
			return false
		}
	}
	for r, x := range need {
		d.free[r] -= x
	}
	return true
}
