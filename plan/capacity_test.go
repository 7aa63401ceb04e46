package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// TestHoldsIsWhatStarts: through random starts, stops and ends on nodes with a cut
// device, a node takes exactly as many workers as it is said to hold, and a device as
// many shares: those can start, and one more cannot.
func TestHoldsIsWhatStarts(t *testing.T) {
	held := int32(0)
	draws.Check(t, func(t *rapid.T) {
		s := plan.NewState(twoCut())
		d := s.Edit()
		cut := plan.DeviceID(rapid.IntRange(0, 3).Draw(t, "cut"))
		for id := range cut {
			d.Reshape(id, 1, plan.Reason{})
		}
		d.Commit()
		for id := range cut {
			s.SetDevice(id, plan.Steady)
		}
		var runs []plan.RunID
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			shape := drawShape(t)
			held += exactly(t, s, shape)
			if i := rapid.IntRange(-2, 9).Draw(t, "ends"); i >= 0 && i < len(runs) {
				job := s.Runs[runs[i]].Job
				s.EndRun(runs[i], 0)
				s.Jobs[job].Phase = plan.Finished
				runs = slices.Delete(runs, i, i+1)
			}
			if n := s.View().Holds(0, &shape); n > 0 {
				d := s.Edit()
				run := start(s, d, shape, onto(s.View(), 0, &shape, int32(rapid.IntRange(1, int(min(n, 4))).Draw(t, "workers"))))
				if run == plan.None {
					t.Fatalf("a node that holds %d of %+v does not take fewer", n, shape)
				}
				d.Commit()
				s.Dispatch(run)
				s.Began(run)
				runs = append(runs, run)
			}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
		}
		d = s.Edit()
		for _, run := range runs { // what is on its way out may be promised
			if rapid.Bool().Draw(t, "stops") {
				d.Stop(run, plan.Reason{}, 0)
			}
		}
		d.Commit()
		held += exactly(t, s, drawShape(t))
	})
	if held == 0 {
		t.Error("nothing was ever held: nothing was tested")
	}
}

// start starts a new job of a shape on slots, if it may.
func start(s *plan.State, d *plan.Draft, shape plan.Shape, slots []plan.Slot) plan.RunID {
	shape.Gang = 0
	for _, slot := range slots {
		shape.Gang += slot.Workers
	}
	s.Shapes = append(s.Shapes, shape)
	run, _ := d.Start(s.Admit(fmt.Sprint("job", len(s.Jobs)), plan.Asked{Shape: int32(len(s.Shapes) - 1)}), slots, plan.DefaultTerms(), plan.Reason{})
	return run
}

// exactly checks what nodes and devices are said to hold of a shape.
func exactly(t *rapid.T, s *plan.State, shape plan.Shape) (held int32) {
	takes := func(slots ...plan.Slot) bool {
		d := s.Edit()
		defer d.Discard()
		return start(s, d, shape, slots) != plan.None
	}
	for node := range plan.NodeID(2) {
		n := s.View().Holds(node, &shape)
		held += n
		if n > 0 && n < 1<<20 && !takes(onto(s.View(), node, &shape, n)...) {
			t.Fatalf("node %d does not take the %d of %+v that it is said to hold", node, n, shape)
		}
		if shape.Devices == 0 || shape.Share == 1000 {
			if takes(plan.Slot{Node: node, Device: plan.None, Workers: n + 1}) {
				t.Fatalf("node %d takes more than the %d of %+v that it is said to hold", node, n, shape)
			}
			continue
		}
		for device := 3 * plan.DeviceID(node); device < 3*plan.DeviceID(node)+3; device++ {
			k := s.View().Shares(device, &shape)
			if alone := (plan.Shape{PerNode: shape.PerNode, CPU: shape.CPU, Host: shape.Host}); k > n && alone.Workers(0, 0, 12000, 64<<10) < k {
				continue // what is beside the devices bounds it
			}
			if k > 0 && k <= n && !takes(plan.Slot{Node: node, Device: device, Workers: k}) || takes(plan.Slot{Node: node, Device: device, Workers: k + 1}) {
				t.Fatalf("device %d takes another number than the %d shares of %+v that it is said to have room for", device, k, shape)
			}
		}
	}
	return held
}

// onto fills a node with workers.
func onto(v plan.View, node plan.NodeID, shape *plan.Shape, workers int32) (slots []plan.Slot) {
	if shape.Devices == 0 || shape.Share == 1000 {
		return []plan.Slot{{Node: node, Device: plan.None, Workers: workers}}
	}
	n := v.Node(node)
	for d := n.First; d < n.First+plan.DeviceID(n.Count) && workers > 0; d++ {
		if k := min(workers, v.Shares(d, shape)); k > 0 {
			slots = append(slots, plan.Slot{Node: node, Device: d, Workers: k})
			workers -= k
		}
	}
	return slots
}

// twoCut are two nodes of three devices of which any may be cut in three.
func twoCut() *cluster.Cluster {
	m := cluster.Model{Name: "gpu", Memory: 16 << 10, Geometries: []cluster.Geometry{{Name: "whole"},
		{Name: "cut", Parts: []cluster.Part{{Milli: 250, Memory: 4 << 10}, {Milli: 500, Memory: 8 << 10}, {Milli: 250, Memory: 4 << 10}}}}}
	c := cluster.Uniform("gpus", 2, 3, m, 2)
	for i := range c.Nodes {
		c.Nodes[i].CPU, c.Nodes[i].Memory = 12000, 64<<10
	}
	return c
}

func drawShape(t *rapid.T) plan.Shape {
	pick := func(what string, of ...int32) int32 { return rapid.SampledFrom(of).Draw(t, what) }
	s := plan.Shape{Gang: 1, Devices: pick("devices", 0, 1, 1, 1, 1, 1, 2), Share: 1000, Models: 1, CPU: pick("cores", 0, 1000, 5000), Host: pick("host", 0, 30<<10),
		Memory: pick("memory", 0, 0, 3<<10, 6<<10, 17<<10), PerNode: pick("per node", 0, 0, 0, 1, 2)}
	if s.Devices == 1 {
		s.Share = pick("share", 1000, 200, 200, 400, 700)
	}
	if s.Devices == 0 {
		s.CPU = max(s.CPU, 1000)
	}
	return s
}
