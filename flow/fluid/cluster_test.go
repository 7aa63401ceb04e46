package fluid_test

import (
	"math"
	"slices"
	"testing"

	"github.com/musterdl/muster/flow/fluid"
	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// TestOnCluster: what runs take of the uplinks follows from where they are, and is
// the same before and after they are started.
func TestOnCluster(t *testing.T) {
	c := cluster.Uniform("test", 4, 4, cluster.Model{Name: "gpu", Speed: 1}, 2)
	for i := range c.Nodes {
		c.Nodes[i].Uplink = 100
	}
	c.Nodes[3].Uplink = 0 // no limit
	c.Racks[0].Uplink = 150
	c.Racks[1].Uplink = 160
	if got := fluid.Capacities(c); !slices.Equal(got, []float64{100, 100, 100, math.Inf(1), 150, 160}) {
		t.Errorf("capacities %v", got)
	}
	s := plan.NewState(c)
	s.Shapes = []plan.Shape{{Gang: 4, Devices: 2, Share: 1000, Models: 1}}
	for _, test := range []struct {
		name  string
		nodes []plan.NodeID // of the workers
		want  []maxmin.Use
	}{
		{"on one node", []plan.NodeID{0, 0}, nil},
		{"in a rack", []plan.NodeID{0, 0, 1}, []maxmin.Use{{Link: 0, Per: 60}, {Link: 1, Per: 30}}},
		{"over racks", []plan.NodeID{0, 1, 2, 3}, []maxmin.Use{{Link: 0, Per: 30}, {Link: 1, Per: 30}, {Link: 2, Per: 30}, {Link: 4, Per: 60}, {Link: 5, Per: 60}}},
	} {
		d := s.Edit()
		job := s.Admit(test.name, plan.Asked{Traffic: 30})
		s.Shapes[0].Gang = int32(len(test.nodes))
		var slots []plan.Slot
		for _, n := range test.nodes {
			if last := len(slots) - 1; last >= 0 && slots[last].Node == n {
				slots[last].Workers++
				continue
			}
			slots = append(slots, plan.Slot{Node: n, Device: plan.None, Workers: 1})
		}
		if got := fluid.OfSlots(s.View(), job, slots); !slices.Equal(got, test.want) {
			t.Errorf("%s: to come %v, want %v", test.name, got, test.want)
		}
		run, why := d.Start(job, slots, plan.DefaultTerms(), plan.Reason{})
		if run == plan.None {
			t.Fatalf("%s: %v", test.name, why)
		}
		if got := fluid.OfRun(d.View, run); !slices.Equal(got, test.want) {
			t.Errorf("%s: running %v, want %v", test.name, got, test.want)
		}
		d.Discard()
	}
}
