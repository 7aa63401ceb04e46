package allocatetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Part is what is free of a node in an example: wholly free devices, thousandths of
// partly free ones, and cores.
type Part struct {
	Devices int32
	Shares  []int32
	Cores   int32
}

// Cluster builds nodes of so many devices and 64 cores, in racks of so many nodes, of
// which no more than the given parts are free.
func Cluster(t testing.TB, devices, rack int, free ...Part) *plan.State {
	t.Helper()
	c := cluster.Uniform("example", len(free), devices, cluster.Model{Name: "gpu", Speed: 1}, rack)
	for i := range c.Nodes {
		c.Nodes[i].CPU = 64 * unit.Whole
	}
	s := plan.NewState(c)
	for i, f := range free {
		n := plan.NodeID(i)
		first, cores := s.Nodes[i].First, 64000-f.Cores*1000
		whole := int32(devices) - f.Devices - int32(len(f.Shares))
		begin(t, s, with(func(s *plan.Shape) { s.Devices, s.CPU = 0, cores }), plan.Slot{Node: n, Device: plan.None, Workers: 1})
		if whole > 0 {
			begin(t, s, with(func(s *plan.Shape) { s.Gang = whole }), plan.Slot{Node: n, Device: plan.None, Workers: whole})
		}
		for k, milli := range f.Shares {
			begin(t, s, with(func(s *plan.Shape) { s.Share = 1000 - milli }), plan.Slot{Node: n, Device: first + plan.DeviceID(whole) + plan.DeviceID(k), Workers: 1})
		}
	}
	return s
}

func begin(t testing.TB, s *plan.State, shape plan.Shape, slot plan.Slot) {
	t.Helper()
	s.Shapes = append(s.Shapes, shape)
	d := s.Edit()
	if run, _ := d.Start(s.Admit("before", plan.Asked{Shape: int32(len(s.Shapes) - 1)}), []plan.Slot{slot}, plan.DefaultTerms(), plan.Reason{}); run == plan.None {
		t.Fatalf("cannot start %+v on %v", shape, slot)
	}
	d.Commit()
}

// Offer asks a placer for up to k placements of a new job and writes them down as
// node:workers, or node/device:workers for shares, with a bar between placements.
func Offer(t testing.TB, s *plan.State, p allocate.Placer, shape plan.Shape, k int) string {
	t.Helper()
	s.Shapes = append(s.Shapes, shape)
	job := s.Admit("job", plan.Asked{Shape: int32(len(s.Shapes) - 1)})
	var text []string
	for i, c := range p.Place(s.View(), allocate.Need{Job: job, Workers: shape.Gang, Shape: &shape}, k, nil) {
		if err := startable(s, job, shape.Gang, c); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			text = append(text, "|")
		}
		for _, slot := range c.Slots {
			if slot.Device == plan.None {
				text = append(text, fmt.Sprintf("%d:%d", slot.Node, slot.Workers))
			} else {
				text = append(text, fmt.Sprintf("%d/%d:%d", slot.Node, slot.Device-s.Nodes[slot.Node].First, slot.Workers))
			}
		}
	}
	return strings.Join(text, " ")
}

// Gang is the shape of so many workers with one device each.
func Gang(workers int32) plan.Shape { return with(func(s *plan.Shape) { s.Gang = workers }) }

// Share is the shape of one worker with a part of a device and some cores.
func Share(milli, cores int32) plan.Shape {
	return with(func(s *plan.Shape) { s.Share, s.CPU = milli, cores*1000 })
}

// Cores is the shape of one worker without a device.
func Cores(cores int32) plan.Shape {
	return with(func(s *plan.Shape) { s.Devices, s.CPU = 0, cores*1000 })
}
