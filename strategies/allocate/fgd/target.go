package fgd

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/plan"
)

// task is a task shape: one worker of a job.
type task struct {
	cpu, devices, share int32
	models              uint64
}

// popular is a task shape and how often it came.
type popular struct {
	task
	count int64
}

func taskOf(s *plan.Shape) task {
	t := task{s.CPU, s.Devices, s.Share, s.Models}
	if t.devices == 0 {
		t.share = 0
	}
	return t
}

// target is the tasks to expect.
type target struct {
	counts  map[task]int64
	counted int         // jobs in counts
	total   int64       // tasks considered
	byModel [][]popular // those with devices that the model allows, by ascending share
}

// update brings the target up to date and reports whether it changed. What is
// learned is that of the first so many jobs, a number that only the number of jobs
// submitted decides, so that an engine that was restarted learns the same.
func (t *target) update(v plan.View, c *Config, same bool) bool {
	if len(c.Expected) > 0 {
		if !same {
			t.give(v, c)
		}
		return !same
	}
	until := milestone(v.Jobs())
	if same && t.counted == until {
		return false
	}
	if !same || until < t.counted {
		t.counts, t.counted = map[task]int64{}, 0
	}
	for ; t.counted < until; t.counted++ {
		s := v.Shape(plan.JobID(t.counted))
		t.counts[taskOf(s)] += int64(s.Gang)
	}
	t.build(v, c.Popularity)
	return true
}

// milestone keeps the three leading binary digits of a number of jobs: the target is
// built anew each time there are an eighth to a quarter more.
func milestone(jobs int) int {
	rest := max(0, bits.Len(uint(jobs))-3)
	return jobs >> rest << rest
}

// give counts the tasks of the configuration. A model that the cluster does not have
// is no model.
func (t *target) give(v plan.View, c *Config) {
	t.counts = map[task]int64{}
	for i := range c.Expected {
		e := &c.Expected[i]
		k := task{cpu: int32(e.CPU), devices: e.Devices, share: int32(e.Share), models: ^uint64(0) >> (64 - v.Room().Models())}
		if k.devices == 0 {
			k.share = 0
		}
		if len(e.Models) > 0 {
			k.models = 0
			for _, name := range e.Models {
				if id, ok := v.Cluster().ModelID(name); ok {
					k.models |= 1 << id
				}
			}
		}
		t.counts[k] += e.Count
	}
	t.build(v, c.Popularity)
}

// build keeps the most popular shapes, up to the given part of all tasks.
func (t *target) build(v plan.View, popularity float64) {
	all := make([]popular, 0, len(t.counts))
	tasks := int64(0)
	for k, n := range t.counts {
		all = append(all, popular{k, n})
		tasks += n
	}
	slices.SortFunc(all, func(a, b popular) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.share, b.share),
			cmp.Compare(a.devices, b.devices), cmp.Compare(a.models, b.models))
	})
	t.total = 0
	n := 0
	for ; n < len(all) && float64(t.total) < popularity*float64(tasks); n++ {
		t.total += all[n].count
	}
	all = all[:n]
	slices.SortStableFunc(all, func(a, b popular) int { return cmp.Compare(a.share, b.share) })
	t.byModel = make([][]popular, v.Room().Models())
	for m := range t.byModel {
		for _, p := range all {
			if p.devices > 0 && p.models&(1<<m) != 0 {
				t.byModel[m] = append(t.byModel[m], p)
			}
		}
	}
}

// fragment is the free thousandths of devices on a node that a task cannot use,
// summed over the tasks to expect: all of them where the task does not fit or needs
// no device, else those of devices too full for it.
func (t *target) fragment(n *node) int64 {
	sum := n.total * t.total
	share, usable, devices := int32(-1), int64(0), int32(0)
	for i := range t.byModel[n.model] {
		p := &t.byModel[n.model][i]
		if p.share != share {
			share, usable, devices = p.share, 0, 0
			for _, free := range n.free {
				if free >= share {
					usable, devices = usable+int64(free), devices+1
				}
			}
			if devices == 0 {
				break // nor is there a device for the larger shares behind it
			}
		}
		if devices >= p.devices && n.cpu >= int64(p.cpu) {
			sum -= p.count * usable
		}
	}
	return sum
}

// points turns a decrease of the fragment into whole percents, as the artefact does.
func (t *target) points(decrease int64) int32 {
	return int32(100 / (1 + math.Exp(-float64(decrease)/float64(max(1, t.total))/1000)))
}

// node is what a node has free, as an arithmetic to try things on.
type node struct {
	model int32
	cpu   int64
	total int64
	free  []int32 // by device
}

// read takes down a node as it is behind what the candidate has taken of it.
func (n *node) read(v plan.View, id plan.NodeID, shape *plan.Shape, g *fit.Gang) {
	is := v.Node(id)
	n.model, n.total, n.free = is.Model, 0, n.free[:0]
	n.cpu = int64(is.FreeCPU) - int64(g.Taken(id))*int64(shape.CPU)
	for d := is.First; d < is.First+plan.DeviceID(is.Count); d++ {
		dev := v.Device(d)
		free := dev.Free
		switch {
		case dev.Status.Out():
			free = 0
		case shape.Share < 1000:
			free -= g.On(d) * shape.Share
		case dev.Geometry != 0:
			free = min(free, 999) // cut, and so no whole device
		}
		n.free = append(n.free, free)
		n.total += int64(free)
	}
	if shape.Share == 1000 {
		n.takeWhole(g.Taken(id) * shape.Devices)
	}
}

// takeWhole takes wholly free devices, the first first.
func (n *node) takeWhole(devices int32) {
	for i := 0; i < len(n.free) && devices > 0; i++ {
		if n.free[i] == 1000 {
			n.free[i] = 0
			n.total -= 1000
			devices--
		}
	}
}
