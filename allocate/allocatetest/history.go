package allocatetest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// history drives one placer through a random history of a random cluster. At every
// step it must offer a placement exactly where trying out all nodes finds room, and
// the same as a placer that has seen nothing before: what it remembers follows from
// the State.
func history(t *rapid.T, newPlacer func() allocate.Placer) {
	s := plan.NewState(drawCluster(t))
	for range rapid.IntRange(1, 4).Draw(t, "shapes") {
		s.Shapes = append(s.Shapes, drawShape(t, s.Cluster))
	}
	kinds := len(s.Shapes)
	p := newPlacer()
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		disturb(t, s)
		kind := int32(rapid.IntRange(0, kinds-1).Draw(t, "shape"))
		shape := s.Shapes[kind]
		job := s.Admit("job", plan.Asked{Shape: kind})
		got, err := offers(s, p, job, shape.Gang)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := offers(s, newPlacer(), job, shape.Gang)
		if err != nil {
			t.Fatal(err)
		}
		if inWords(got...) != inWords(fresh...) {
			t.Fatalf("offers %s, a new placer %s", inWords(got...), inWords(fresh...))
		}
		if room := roomFor(s, &shape); (room >= shape.Gang) != (len(got) > 0) {
			t.Fatalf("there is room for %d workers of %+v, offered is %v", room, shape, got)
		}
		if len(got) > 0 {
			start(s, job, got[0].Slots)
		}
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
}

func drawCluster(t *rapid.T) *cluster.Cluster {
	c := &cluster.Cluster{Name: "random"}
	for m := range rapid.IntRange(1, 3).Draw(t, "models") {
		model := cluster.Model{Name: fmt.Sprint("model", m), Memory: unit.MiB(rapid.IntRange(0, 3).Draw(t, "GiB")) << 10, Speed: 1}
		if rapid.Bool().Draw(t, "divisible") {
			model.Geometries = []cluster.Geometry{{Name: "whole"}, {Name: "cut", Parts: []cluster.Part{{Milli: 500, Memory: 1 << 10}, {Milli: 250, Memory: 700}, {Milli: 250}}}}
		}
		c.AddModel(model)
	}
	for r := range rapid.IntRange(1, 3).Draw(t, "racks") {
		c.AddRack(cluster.Rack{Name: fmt.Sprint("rack", r)})
	}
	for n := range rapid.IntRange(1, 10).Draw(t, "nodes") {
		c.AddNode(cluster.Node{Name: fmt.Sprint("node", n), Rack: int32(rapid.IntRange(0, len(c.Racks)-1).Draw(t, "rack")),
			Model: int32(rapid.IntRange(0, len(c.Models)-1).Draw(t, "model")), CPU: unit.Milli(rapid.IntRange(0, 12).Draw(t, "cores")) * 1000,
			Memory: unit.MiB(rapid.IntRange(0, 12).Draw(t, "host GiB")) << 10}, rapid.IntRange(0, 5).Draw(t, "devices"))
	}
	return c
}

func drawShape(t *rapid.T, c *cluster.Cluster) plan.Shape {
	s := plan.Shape{Gang: int32(rapid.IntRange(1, 6).Draw(t, "gang")), Devices: int32(rapid.IntRange(0, 3).Draw(t, "per worker")), Share: 1000,
		CPU: int32(rapid.IntRange(0, 3).Draw(t, "cpu")) * 700, Host: int32(rapid.IntRange(0, 2).Draw(t, "host")) << 10,
		Models: uint64(rapid.IntRange(1, 1<<len(c.Models)-1).Draw(t, "allowed"))}
	if s.Devices > 0 {
		s.Memory = int32(rapid.SampledFrom([]int{0, 0, 600, 1500}).Draw(t, "memory"))
	}
	if s.Devices == 1 {
		s.Share = int32(rapid.SampledFrom([]int{100, 250, 400, 500, 900, 1000}).Draw(t, "share"))
	}
	return s
}

// disturb lets something happen: runs stop or end, nodes and devices come and go,
// idle devices are cut.
func disturb(t *rapid.T, s *plan.State) {
	switch node := plan.NodeID(rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "node")); rapid.IntRange(0, 7).Draw(t, "event") {
	case 0, 1, 2:
		stop(t, s)
	case 3:
		if is := s.Nodes[node].Status; is == plan.Up {
			s.SetNode(node, plan.Cordoned)
		} else {
			s.SetNode(node, plan.Up)
		}
	case 4, 5:
		if len(s.Devices) == 0 {
			return
		}
		id := plan.DeviceID(rapid.IntRange(0, len(s.Devices)-1).Draw(t, "device"))
		switch dev := s.Devices[id]; {
		case dev.Status.Out() || dev.Status == plan.Reshaping:
			s.SetDevice(id, plan.Steady)
		case dev.First != plan.None:
		case rapid.Bool().Draw(t, "lost"):
			s.SetDevice(id, plan.Lost)
		default:
			d := s.Edit()
			d.Reshape(id, 1-dev.Geometry, plan.Reason{})
			d.Commit()
		}
	}
}

// stop ends a run, or lets it begin to stop.
func stop(t *rapid.T, s *plan.State) {
	if len(s.Runs) == 0 {
		return
	}
	id := plan.RunID(rapid.IntRange(0, len(s.Runs)-1).Draw(t, "run"))
	switch s.Runs[id].Status {
	case plan.Gone:
	case plan.Stopping:
		change := s.Runs[id].Change
		s.EndRun(id, 0)
		s.Confirm(change)
	case plan.Promised:
		d := s.Edit()
		d.Stop(id, plan.Reason{}, 0)
		if rapid.Bool().Draw(t, "regret") {
			d.Discard()
		} else {
			d.Commit()
		}
	default:
		d := s.Edit()
		d.Stop(id, plan.Reason{}, 0)
		d.Commit()
	}
}

// start carries a placement out as far as those allow that are still in its way.
func start(s *plan.State, job plan.JobID, slots []plan.Slot) {
	d := s.Edit()
	run, _ := d.Start(job, slots, plan.DefaultTerms(), plan.Reason{})
	changes, _ := d.Commit()
	if len(changes[len(changes)-1].After) == 0 {
		s.Dispatch(run)
		s.Began(run)
	}
}

// roomFor is how many workers of a shape the cluster holds, found by trying: on each
// node as many as can be started there.
func roomFor(s *plan.State, shape *plan.Shape) (workers int32) {
	one := *shape
	one.Gang, one.Sizes = 1, [8]int32{2, 3, 4, 5, 6, 7}
	s.Shapes = append(s.Shapes, one)
	job := s.Admit("try", plan.Asked{Shape: int32(len(s.Shapes) - 1)})
	d := s.Edit()
	defer d.Discard()
	fits := func(slots ...plan.Slot) bool {
		m := d.Mark()
		run, _ := d.Start(job, slots, plan.DefaultTerms(), plan.Reason{})
		d.Rollback(m)
		return run != plan.None
	}
	for n := range s.Nodes {
		is := s.Nodes[n]
		if shape.Share == 1000 {
			on := plan.Slot{Node: plan.NodeID(n), Device: plan.None, Workers: 1}
			for on.Workers <= shape.Gang && fits(on) {
				on.Workers++
			}
			workers += on.Workers - 1
			continue
		}
		var on []plan.Slot
		for dev := is.First; dev < is.First+plan.DeviceID(is.Count); dev++ {
			for len(on) <= int(shape.Gang) {
				more := append(on, plan.Slot{Node: plan.NodeID(n), Device: dev, Workers: 1})
				if !fits(more...) {
					break
				}
				on = more
			}
		}
		workers += int32(len(on))
	}
	return workers
}
