package optimus

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/mechanism/heap"
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
func (d *Division) Divide(jobs []Job, room Demand) []Tasks {
	d.jobs, d.free, d.all = jobs, room, room
	d.steps = heap.Heap[step]{Items: d.steps.Items[:0], Before: before}
	d.has, d.gain = append(d.has[:0], make([]Tasks, len(jobs))...), append(d.gain[:0], make([][2]float64, len(jobs))...)
	for i := range jobs {
		c := &jobs[i]
		least := Tasks{Workers: c.Sizes[0], Servers: min(c.Servers, 1)}
		if d.take(c, least) {
			d.has[i] = least
			d.weigh(i)
		}
	}
	for len(d.steps.Items) > 0 {
		next := d.steps.Pop()
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

// Division is the memory that it takes to divide, used again: what it returned holds until then.
type Division struct {
	jobs      []Job
	free, all Demand
	has       []Tasks
	gain      [][2]float64    // by job: of more workers, of one more server
	steps     heap.Heap[step] // some were weighed again since
}

// step is what could be given next, with what was gained by it when it was weighed.
type step struct {
	gain      float64
	job, kind int
}

// before is the order of steps: the one of most gain is in front, of equals that of the first job, and of one
// job more workers before a server.
func before(a, b *step) bool {
	return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.job, b.job), cmp.Compare(a.kind, b.kind)) < 0
}

const workers, servers = 0, 1

// step is what a job may be given next; nothing where it has the most.
func (d *Division) step(i, kind int) Tasks {
	c, has := &d.jobs[i], d.has[i]
	if kind == servers {
		return Tasks{Servers: min(1, c.Servers-has.Servers)}
	}
	if at, _ := slices.BinarySearch(c.Sizes, has.Workers+1); at < len(c.Sizes) {
		return Tasks{Workers: c.Sizes[at] - has.Workers}
	}
	return Tasks{}
}

func (d *Division) weigh(i int) {
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
				d.steps.Push(step{g, i, kind})
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
func (d *Division) take(c *Job, t Tasks) bool {
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
