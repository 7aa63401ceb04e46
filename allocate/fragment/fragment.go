// Package fragment counts what of the free devices of a node the tasks that are to be
// expected could not use (after Weng et al., FGD, USENIX ATC 2023). What is to be expected
// is a histogram of task shapes, most popular first, up to a part of all tasks: given, or
// counted over the jobs submitted so far. Counts stand for frequencies, so that fragments
// are exact.
package fragment

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Expected is a task shape that somebody expects and how often it comes.
type Expected struct {
	CPU     unit.Milli `yaml:"cpu" least:"0"`
	Devices int32      `yaml:"devices" least:"0"`
	Share   unit.Milli `yaml:"share" least:"1" most:"1000"`
	Models  []string   `yaml:"models"` // none allows any
	Count   int64      `yaml:"count" least:"1"`
}

// Task is a task shape: one worker of a job.
type Task struct {
	CPU, Devices, Share int32
	Models              uint64
}

// Popular is a task shape and how often it came.
type Popular struct {
	Task
	Count int64
}

// TaskOf is the task of one worker.
func TaskOf(s *plan.Shape) Task {
	t := Task{s.CPU, s.Devices, s.Share, s.Models}
	if t.Devices == 0 {
		t.Share = 0
	}
	return t
}

// Mix is the tasks to expect.
type Mix struct {
	counts  map[Task]int64
	counted int         // jobs in counts
	total   int64       // tasks considered
	byModel [][]Popular // those with devices that the model allows, by ascending share
}

// Learn brings the mix up to date with the jobs submitted and reports whether it changed;
// same says that the cluster is the one of the last call. What is learned is that of the
// first so many jobs, a number that only the number of jobs submitted decides, so that an
// engine that was restarted learns the same.
func (m *Mix) Learn(v plan.View, popularity float64, same bool) bool {
	until := milestone(v.Jobs())
	if same && m.counted == until {
		return false
	}
	if !same || until < m.counted {
		m.counts, m.counted = map[Task]int64{}, 0
	}
	for ; m.counted < until; m.counted++ {
		s := v.Shape(plan.JobID(m.counted))
		m.counts[TaskOf(s)] += int64(s.Gang)
	}
	m.build(v, popularity)
	return true
}

// milestone keeps the three leading binary digits of a number of jobs: the mix is
// built anew each time there are an eighth to a quarter more.
func milestone(jobs int) int {
	rest := max(0, bits.Len(uint(jobs))-3)
	return jobs >> rest << rest
}

// Give takes the expected tasks for the mix. A model that the cluster does not have is no
// model.
func (m *Mix) Give(v plan.View, expected []Expected, popularity float64) {
	m.counts = map[Task]int64{}
	for i := range expected {
		e := &expected[i]
		k := Task{CPU: int32(e.CPU), Devices: e.Devices, Share: int32(e.Share), Models: ^uint64(0) >> (64 - v.Room().Models())}
		if k.Devices == 0 {
			k.Share = 0
		}
		if len(e.Models) > 0 {
			k.Models = 0
			for _, name := range e.Models {
				if id, ok := v.Cluster().ModelID(name); ok {
					k.Models |= 1 << id
				}
			}
		}
		m.counts[k] += e.Count
	}
	m.build(v, popularity)
}

// build keeps the most popular shapes, up to the given part of all tasks.
func (m *Mix) build(v plan.View, popularity float64) {
	all := make([]Popular, 0, len(m.counts))
	tasks := int64(0)
	for k, n := range m.counts {
		all = append(all, Popular{k, n})
		tasks += n
	}
	slices.SortFunc(all, func(a, b Popular) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.Share, b.Share),
			cmp.Compare(a.Devices, b.Devices), cmp.Compare(a.Models, b.Models))
	})
	m.total = 0
	n := 0
	for ; n < len(all) && float64(m.total) < popularity*float64(tasks); n++ {
		m.total += all[n].Count
	}
	all = all[:n]
	slices.SortStableFunc(all, func(a, b Popular) int { return cmp.Compare(a.Share, b.Share) })
	m.byModel = make([][]Popular, v.Room().Models())
	for model := range m.byModel {
		for _, p := range all {
			if p.Devices > 0 && p.Models&(1<<model) != 0 {
				m.byModel[model] = append(m.byModel[model], p)
			}
		}
	}
}

// Tasks are those to expect that take devices of a model, by ascending share.
func (m *Mix) Tasks(model int) []Popular { return m.byModel[model] }

// Fragment is the free thousandths of devices on a node that a task cannot use,
// summed over the tasks to expect: all of them where the task does not fit or needs
// no device, else those of devices too full for it.
func (m *Mix) Fragment(n *Node) int64 {
	sum := n.Total * m.total
	share, usable, devices := int32(-1), int64(0), int32(0)
	for i := range m.byModel[n.Model] {
		p := &m.byModel[n.Model][i]
		if p.Share != share {
			share, usable, devices = p.Share, 0, 0
			for _, free := range n.Free {
				if free >= share {
					usable, devices = usable+int64(free), devices+1
				}
			}
			if devices == 0 {
				break // nor is there a device for the larger shares behind it
			}
		}
		if devices >= p.Devices && n.CPU >= int64(p.CPU) {
			sum -= p.Count * usable
		}
	}
	return sum
}

// Points turns a decrease of the fragment into whole percents, as the artefact does.
func (m *Mix) Points(decrease int64) int32 {
	return int32(100 / (1 + math.Exp(-float64(decrease)/float64(max(1, m.total))/1000)))
}

// Node is what a node has free, as an arithmetic to try things on.
type Node struct {
	Model int32
	CPU   int64   // thousandths of a core
	Total int64   // the sum of Free
	Free  []int32 // thousandths by device
}

// Read takes down a node as it is behind what the candidate has taken of it.
func (n *Node) Read(v plan.View, id plan.NodeID, shape *plan.Shape, g *fit.Gang) {
	is := v.Node(id)
	n.Model, n.Total, n.Free = is.Model, 0, n.Free[:0]
	n.CPU = int64(is.FreeCPU) - int64(g.Taken(id))*int64(shape.CPU)
	for d := is.First; d < is.First+plan.DeviceID(is.Count); d++ {
		dev := v.Device(d)
		free := dev.Free
		switch {
		case dev.Status.Out():
			free = 0
		case shape.Share < 1000:
			free -= g.On(d) * shape.Share
		}
		if dev.Geometry != 0 {
			free = min(free, 999) // cut, and so no whole device, whoever asks
		}
		n.Free = append(n.Free, free)
		n.Total += int64(free)
	}
	if shape.Share == 1000 {
		n.TakeWhole(g.Taken(id) * shape.Devices)
	}
}

// TakeWhole takes wholly free devices, the first first.
func (n *Node) TakeWhole(devices int32) {
	for i := 0; i < len(n.Free) && devices > 0; i++ {
		if n.Free[i] == 1000 {
			n.Free[i] = 0
			n.Total -= 1000
			devices--
		}
	}
}
