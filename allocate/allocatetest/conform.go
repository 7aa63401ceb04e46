// Package allocatetest is the suite that every placer passes: what it offers can be
// started, it offers something wherever there is room, and it always offers the
// same. The strategies' own tests call it.
package allocatetest

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// Conform proves that placers made by the function keep the contract.
func Conform(t *testing.T, newPlacer func() allocate.Placer) {
	t.Run("scenarios", func(t *testing.T) { scenarios(t, newPlacer) })
	t.Run("history", func(t *testing.T) {
		draws.Check(t, func(t *rapid.T) { history(t, newPlacer) })
	})
}

// one is the shape of a worker with one device of any model.
func one() plan.Shape { return plan.Shape{Gang: 1, Devices: 1, Share: 1000, Models: ^uint64(0)} }

func with(f func(s *plan.Shape)) plan.Shape {
	s := one()
	f(&s)
	return s
}

// two is two nodes of 4 big devices and one of 2 small ones, in two racks; a big
// node has 16 cores and 64 GiB.
func two() *cluster.Cluster {
	c := &cluster.Cluster{Name: "two"}
	big := c.AddModel(cluster.Model{Name: "big", Memory: 80 << 10, Speed: 1})
	small := c.AddModel(cluster.Model{Name: "small", Memory: 16 << 10, Speed: 1})
	a, b := c.AddRack(cluster.Rack{Name: "a"}), c.AddRack(cluster.Rack{Name: "b"})
	c.AddNode(cluster.Node{Name: "n0", Rack: a, Model: big, CPU: 16000, Memory: 64 << 10}, 4)
	c.AddNode(cluster.Node{Name: "n1", Rack: b, Model: big, CPU: 16000, Memory: 64 << 10}, 4)
	c.AddNode(cluster.Node{Name: "n2", Rack: b, Model: small, CPU: 8000, Memory: 32 << 10}, 2)
	return c
}

var cases = []struct {
	name   string
	shape  plan.Shape
	fill   []plan.Slot // of whole devices, taken beforehand
	state  func(s *plan.State)
	placed bool
}{
	{name: "one device", shape: one(), placed: true},
	{name: "a gang over nodes", shape: with(func(s *plan.Shape) { s.Gang = 10 }), placed: true},
	{name: "a gang larger than the cluster", shape: with(func(s *plan.Shape) { s.Gang = 11 })},
	{name: "all devices of a node per worker", shape: with(func(s *plan.Shape) { s.Gang, s.Devices = 2, 4 }), placed: true},
	{name: "more devices than a node has", shape: with(func(s *plan.Shape) { s.Devices = 5 })},
	{name: "whole devices do not add up over nodes", shape: with(func(s *plan.Shape) { s.Devices = 3 }),
		fill: []plan.Slot{{Node: 0, Device: plan.None, Workers: 2}, {Node: 1, Device: plan.None, Workers: 2}}},
	{name: "full cluster", shape: one(), fill: []plan.Slot{{Node: 0, Device: plan.None, Workers: 4},
		{Node: 1, Device: plan.None, Workers: 4}, {Node: 2, Device: plan.None, Workers: 2}}},
	{name: "full but for one device", shape: one(), placed: true, fill: []plan.Slot{{Node: 0, Device: plan.None, Workers: 4},
		{Node: 1, Device: plan.None, Workers: 3}, {Node: 2, Device: plan.None, Workers: 2}}},
	{name: "shares", shape: with(func(s *plan.Shape) { s.Gang, s.Share = 20, 500 }), placed: true},
	{name: "more shares than there are", shape: with(func(s *plan.Shape) { s.Gang, s.Share = 21, 500 })},
	{name: "thirds leave a rest", shape: with(func(s *plan.Shape) { s.Gang, s.Share = 21, 400 })},
	{name: "shares with memory", shape: with(func(s *plan.Shape) { s.Gang, s.Share, s.Memory = 18, 100, 40<<10 })},
	{name: "shares that share memory", shape: with(func(s *plan.Shape) { s.Gang, s.Share, s.Memory = 16, 100, 40<<10 }), placed: true},
	{name: "shares bound by cores", shape: with(func(s *plan.Shape) { s.Gang, s.Share, s.CPU = 6, 100, 8000 })},
	{name: "shares within their cores", shape: with(func(s *plan.Shape) { s.Gang, s.Share, s.CPU = 5, 100, 8000 }), placed: true},
	{name: "cores alone", shape: with(func(s *plan.Shape) { s.Gang, s.Devices, s.CPU = 5, 0, 8000 }), placed: true},
	{name: "more cores than there are", shape: with(func(s *plan.Shape) { s.Gang, s.Devices, s.CPU = 6, 0, 8000 })},
	{name: "cores on a cluster without free devices", shape: with(func(s *plan.Shape) { s.Devices, s.CPU = 0, 8000 }), placed: true,
		fill: []plan.Slot{{Node: 0, Device: plan.None, Workers: 4}, {Node: 1, Device: plan.None, Workers: 4}, {Node: 2, Device: plan.None, Workers: 2}}},
	{name: "a model", shape: with(func(s *plan.Shape) { s.Gang, s.Models = 2, 1<<1 }), placed: true},
	{name: "too few of a model", shape: with(func(s *plan.Shape) { s.Gang, s.Models = 3, 1<<1 })},
	{name: "no model", shape: with(func(s *plan.Shape) { s.Models = 0 })},
	{name: "device memory", shape: with(func(s *plan.Shape) { s.Gang, s.Memory = 8, 20<<10 }), placed: true},
	{name: "device memory that the small lack", shape: with(func(s *plan.Shape) { s.Gang, s.Memory = 9, 20<<10 })},
	{name: "host memory", shape: with(func(s *plan.Shape) { s.Gang, s.Host = 5, 32<<10 }), placed: true},
	{name: "more host memory than there is", shape: with(func(s *plan.Shape) { s.Gang, s.Host = 6, 32<<10 })},
	{name: "cordoned node", shape: with(func(s *plan.Shape) { s.Gang = 7 }), state: func(s *plan.State) { s.SetNode(0, plan.Cordoned) }},
	{name: "beside a node that is down", shape: with(func(s *plan.Shape) { s.Gang = 6 }), placed: true,
		state: func(s *plan.State) { s.SetNode(1, plan.Down) }},
	{name: "all nodes down", shape: one(), state: func(s *plan.State) {
		for n := range s.Nodes {
			s.SetNode(plan.NodeID(n), plan.Down)
		}
	}},
	{name: "beside a lost device", shape: with(func(s *plan.Shape) { s.Gang = 9 }), placed: true,
		state: func(s *plan.State) { s.SetDevice(2, plan.Lost) }},
	{name: "a lost device", shape: with(func(s *plan.Shape) { s.Gang = 10 }), state: func(s *plan.State) { s.SetDevice(2, plan.Lost) }},
}

func scenarios(t *testing.T, newPlacer func() allocate.Placer) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := plan.NewState(two())
			s.Shapes = []plan.Shape{c.shape}
			startOn(t, s, c.fill)
			if c.state != nil {
				c.state(s)
			}
			job := s.Admit("job", plan.Asked{})
			got, err := offers(s, newPlacer(), job, c.shape.Gang)
			if err != nil {
				t.Fatal(err)
			}
			if placed := len(got) > 0; placed != c.placed {
				t.Errorf("placed is %v, want %v", placed, c.placed)
			}
		})
	}
	t.Run("no nodes", func(t *testing.T) {
		s := plan.NewState(&cluster.Cluster{Models: []cluster.Model{{Name: "gpu"}}})
		s.Shapes = []plan.Shape{one()}
		if got, err := offers(s, newPlacer(), s.Admit("job", plan.Asked{}), 1); err != nil || len(got) > 0 {
			t.Errorf("got %v, %v, want nothing", got, err)
		}
	})
	t.Run("runner-up", func(t *testing.T) {
		s := plan.NewState(two())
		s.Shapes = []plan.Shape{one()}
		if got, err := offers(s, newPlacer(), s.Admit("job", plan.Asked{}), 1); err != nil || len(got) != 2 {
			t.Errorf("got %d candidates on an empty cluster (%v), want 2", len(got), err)
		}
	})
}

// startOn starts one job on whole devices.
func startOn(t *testing.T, s *plan.State, slots []plan.Slot) {
	if len(slots) == 0 {
		return
	}
	workers := int32(0)
	for _, slot := range slots {
		workers += slot.Workers
	}
	s.Shapes = append(s.Shapes, with(func(s *plan.Shape) { s.Gang = workers }))
	d := s.Edit()
	if run, _ := d.Start(s.Admit("before", plan.Asked{Shape: int32(len(s.Shapes) - 1)}), slots, plan.DefaultTerms(), plan.Reason{}); run == plan.None {
		t.Fatalf("the cluster cannot be filled with %v", slots)
	}
	d.Commit()
}

// inWords is all that candidates say, with what they point at.
func inWords(c ...allocate.Candidate) string {
	b, err := json.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// offers asks for one and for two candidates and returns the two, having proved that
// the first is the same, that they differ, and that both can be started.
func offers(s *plan.State, p allocate.Placer, job plan.JobID, workers int32) ([]allocate.Candidate, error) {
	need := allocate.Need{Job: job, Workers: workers, Shape: s.View().Shape(job)}
	mine := allocate.Candidate{Slots: []plan.Slot{{Node: 7, Workers: 7}}, Score: 7}
	one := p.Place(s.View(), need, 1, []allocate.Candidate{mine})
	text := inWords(one...)
	got := p.Place(s.View(), need, 2, nil)
	switch {
	case len(one) < 1 || len(one) > 2 || inWords(one[0]) != inWords(mine):
		return nil, fmt.Errorf("asked for one candidate more than %v, got %s", mine, text)
	case len(got) > 2:
		return nil, fmt.Errorf("asked for two candidates, got %v", got)
	case (len(one) > 1) != (len(got) > 0) || len(got) > 0 && inWords(one[1]) != inWords(got[0]):
		return nil, fmt.Errorf("the best of two is %s, the only one %s", inWords(got...), text)
	case len(got) == 2 && fmt.Sprint(got[0].Slots) == fmt.Sprint(got[1].Slots):
		return nil, fmt.Errorf("the runner-up is the best again: %v", got)
	}
	for _, c := range got {
		if err := startable(s, job, workers, c); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// startable tries a candidate and takes it back.
func startable(s *plan.State, job plan.JobID, workers int32, c allocate.Candidate) error {
	placed := int32(0)
	for _, slot := range c.Slots {
		placed += slot.Workers
	}
	if placed != workers {
		return fmt.Errorf("%v places %d workers, want %d", c.Slots, placed, workers)
	}
	d := s.Edit()
	defer d.Discard()
	if run, _ := d.Start(job, c.Slots, plan.DefaultTerms(), plan.Reason{}); run == plan.None {
		return fmt.Errorf("shape %+v cannot start on %v", *s.View().Shape(job), c.Slots)
	}
	return s.Check()
}
