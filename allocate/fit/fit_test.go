package fit_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// machine is a state of equal nodes of 4 devices of 16 GiB with 12 cores each, all in
// racks of so many nodes.
func machine(nodes, rack int, m cluster.Model) *plan.State {
	m.Name, m.Memory = "gpu", 16<<10
	c := cluster.Uniform("gpus", nodes, 4, m, rack)
	for i := range c.Nodes {
		c.Nodes[i].CPU = 12000
	}
	return plan.NewState(c)
}

func shape(f func(s *plan.Shape)) *plan.Shape {
	s := plan.Shape{Gang: 1, Devices: 1, Share: 1000, Models: 1}
	f(&s)
	return &s
}

// run starts a job of the shape on slots and leaves it running.
func run(t testing.TB, s *plan.State, of *plan.Shape, slots ...plan.Slot) plan.RunID {
	t.Helper()
	of.Gang = 0
	for _, slot := range slots {
		of.Gang += slot.Workers
	}
	s.Shapes = append(s.Shapes, *of)
	d := s.Edit()
	id, why := d.Start(s.Admit("job", plan.Asked{Shape: int32(len(s.Shapes) - 1)}), slots, plan.DefaultTerms(), plan.Reason{})
	if id == plan.None {
		t.Fatalf("cannot start on %v: %v", slots, why)
	}
	d.Commit()
	s.Dispatch(id)
	s.Began(id)
	return id
}

func whole(node plan.NodeID, workers int32) plan.Slot {
	return plan.Slot{Node: node, Device: plan.None, Workers: workers}
}

func share(device plan.DeviceID) plan.Slot {
	return plan.Slot{Node: plan.NodeID(device / 4), Device: device, Workers: 1}
}

func TestHolds(t *testing.T) {
	s := machine(1, 1, cluster.Model{})
	run(t, s, shape(func(s *plan.Shape) { s.Share, s.CPU, s.Memory = 400, 2000, 6<<10 }), share(1))
	for _, test := range []struct {
		name string
		of   *plan.Shape
		want int32
	}{
		{"whole devices", shape(func(*plan.Shape) {}), 3},
		{"two per worker", shape(func(s *plan.Shape) { s.Devices = 2 }), 1},
		{"more memory than a device has", shape(func(s *plan.Shape) { s.Memory = 17 << 10 }), 0},
		{"cores", shape(func(s *plan.Shape) { s.CPU = 5000 }), 2},
		{"cores alone", shape(func(s *plan.Shape) { s.Devices, s.CPU = 0, 1000 }), 10},
		{"shares", shape(func(s *plan.Shape) { s.Share = 300 }), 3*3 + 2},
		{"shares and memory", shape(func(s *plan.Shape) { s.Share, s.Memory = 300, 6<<10 }), 3*2 + 1},
		{"shares and cores", shape(func(s *plan.Shape) { s.Share, s.CPU = 300, 1100 }), 9},
		{"another model", shape(func(s *plan.Shape) { s.Models = 2 }), 0},
	} {
		if got := s.View().Holds(0, test.of); got != test.want {
			t.Errorf("%s: the node holds %d, want %d", test.name, got, test.want)
		}
	}
}

// A cut device has pieces for shares and none for a whole device; what is stopping
// has given its piece up.
func TestCutDevice(t *testing.T) {
	s := machine(1, 1, cluster.Model{Geometries: []cluster.Geometry{{Name: "whole"},
		{Name: "cut", Parts: []cluster.Part{{Milli: 250, Memory: 4 << 10}, {Milli: 500, Memory: 8 << 10}, {Milli: 250, Memory: 4 << 10}}}}})
	d := s.Edit()
	d.Reshape(0, 1, plan.Reason{})
	d.Commit()
	s.SetDevice(0, plan.Steady)
	small := shape(func(s *plan.Shape) { s.Share = 200 })
	for _, test := range []struct {
		of   *plan.Shape
		want int32
	}{
		{small, 3},
		{shape(func(s *plan.Shape) { s.Share = 300 }), 1},
		{shape(func(s *plan.Shape) { s.Share = 600 }), 0},
		{shape(func(s *plan.Shape) { s.Share, s.Memory = 100, 5<<10 }), 1},
	} {
		if got := s.View().Shares(0, test.of); got != test.want {
			t.Errorf("%d thousandths: the cut device has room for %d, want %d", test.of.Share, got, test.want)
		}
	}
	if got := s.View().Holds(0, shape(func(*plan.Shape) {})); got != 3 {
		t.Errorf("the node holds %d whole devices, want 3", got)
	}
	id := run(t, s, shape(func(s *plan.Shape) { s.Share = 400 }), share(0))
	if got := s.View().Shares(0, small); got != 2 {
		t.Errorf("beside one that runs there is room for %d, want 2", got)
	}
	d = s.Edit()
	d.Stop(id, plan.Reason{}, 0)
	d.Commit()
	if got := s.View().Shares(0, small); got != 3 {
		t.Errorf("beside one that stops there is room for %d, want 3", got)
	}
}

func TestOrders(t *testing.T) {
	s := machine(1, 1, cluster.Model{})
	for device, milli := range []int32{300, 600, 0, 600} {
		if milli > 0 {
			run(t, s, shape(func(s *plan.Shape) { s.Share = milli }), share(plan.DeviceID(device)))
		}
	}
	want := map[fit.Order]string{
		fit.ByID:     "[{0 0 3 0 []} {0 1 2 0 []} {0 2 2 0 []}]",
		fit.Tightest: "[{0 1 2 0 []} {0 3 2 0 []} {0 0 3 0 []}]",
	}
	for order, text := range want {
		taker := fit.Take(s.View(), allocate.Need{Workers: 7, Shape: shape(func(s *plan.Shape) { s.Share = 200 })}, nil)
		taker.Fill(0, order)
		if slots, ok := taker.Done(); !ok || fmt.Sprint(slots) != text {
			t.Errorf("order %d takes %v, want %s", order, slots, text)
		}
	}
}

// Where devices alone decide, no placement has fewer nodes than the fullest first.
func TestFewestNodes(t *testing.T) {
	var f fit.Fewest
	draws.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 12).Draw(t, "nodes")
		c := cluster.Uniform("gpus", nodes, 4, cluster.Model{Name: "gpu"}, rapid.IntRange(1, 4).Draw(t, "rack"))
		s := plan.NewState(c)
		s.Shapes = []plan.Shape{*shape(func(s *plan.Shape) { s.Sizes = [8]int32{2, 3, 4} })}
		var free []int
		for n := range nodes {
			taken := rapid.Int32Range(0, 4).Draw(t, "taken")
			free = append(free, 4-int(taken))
			if taken > 0 {
				d := s.Edit()
				d.Start(s.Admit("job", plan.Asked{}), []plan.Slot{whole(plan.NodeID(n), taken)}, plan.DefaultTerms(), plan.Reason{})
				d.Commit()
			}
		}
		gang := rapid.IntRange(1, 4*nodes).Draw(t, "gang")
		got, ok := f.Place(s.View(), allocate.Need{Workers: int32(gang), Shape: &s.Shapes[0]}, nil, nil)
		slices.Sort(free)
		want, left := 0, gang
		for _, n := range slices.Backward(free) {
			if left > 0 && n > 0 {
				want, left = want+1, left-n
			}
		}
		if ok != (left <= 0) || ok && got.Nodes != want {
			t.Fatalf("a gang of %d on nodes with %v free takes %d nodes (%v), want %d", gang, free, got.Nodes, ok, want)
		}
	})
}

// A gang of two nodes goes to the rack that has two, not to the two lowest nodes.
func TestFewestRacks(t *testing.T) {
	s := machine(8, 2, cluster.Model{})
	for _, n := range []plan.NodeID{1, 2, 5} {
		run(t, s, shape(func(*plan.Shape) {}), whole(n, 2))
	}
	var f fit.Fewest
	got, ok := f.Place(s.View(), allocate.Need{Workers: 8, Shape: shape(func(*plan.Shape) {})}, nil, nil)
	if want := "{[{6 -1 4 0 []} {7 -1 4 0 []}] 2 1}"; !ok || fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestParts: a device cut in halves, one of which is taken, is cut anew for a quarter and
// keeps the half; a device that is idle is made whole, and the one in use is not.
func TestParts(t *testing.T) {
	half, quarter := cluster.Part{Milli: 500, Memory: 8 << 10}, cluster.Part{Milli: 250, Memory: 4 << 10}
	s := machine(1, 1, cluster.Model{Geometries: []cluster.Geometry{{Name: "whole"}, {Name: "halves", Parts: []cluster.Part{half, half}},
		{Name: "mixed", Parts: []cluster.Part{quarter, quarter, half}}}})
	s.Devices[0].Geometry, s.Devices[1].Geometry = 1, 1
	s.Derive()
	run(t, s, shape(func(s *plan.Shape) { s.Share, s.Memory = 500, 8<<10 }), share(0))
	v, g, c := s.View(), fit.Parts{}, allocate.Candidate{}

	g.Begin(shape(func(s *plan.Shape) { s.Share, s.CPU = 250, 5000 }), nil)
	if now, ok := g.Of(v, 0); !ok || now.Geometry != 1 || now.Taken != 1 {
		t.Fatalf("the device in use is cut and taken so: %+v, %t", now, ok)
	}
	g.Take(v, &c, 0, 2, 0)
	g.Take(v, &c, 0, 2, 1)
	if now, _ := g.Of(v, 0); now.Geometry != 2 || now.Taken != 0b111 {
		t.Errorf("two quarters beside the half that is in use leave %+v", now)
	}
	if len(c.Slots) != 1 || c.Slots[0].Workers != 2 || len(c.Cut) != 1 || c.Cut[0] != (allocate.Cut{Device: 0, Geometry: 2}) {
		t.Errorf("the candidate is %+v", c)
	}
	if g.Holds(v, 0) {
		t.Error("a third worker has 2 of 12 cores and asks for 5")
	}

	c = allocate.Candidate{}
	g.Begin(shape(func(s *plan.Shape) { s.Devices = 3 }), nil)
	if !g.TakeWhole(v, &c, 0) || !slices.Equal(c.Slots[0].On, []plan.DeviceID{1, 2, 3}) || len(c.Cut) != 1 || c.Cut[0] != (allocate.Cut{Device: 1}) {
		t.Errorf("three whole devices are %+v", c)
	}
	if g.TakeWhole(v, &c, 0) {
		t.Error("a fourth to sixth device were found of four")
	}
}
