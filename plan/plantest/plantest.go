// Package plantest makes random histories of a State, for tests of whatever reads or keeps one.
package plantest

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Machine drives a State through random edits and facts, as an engine would.
type Machine struct {
	S    *plan.State
	held []plan.Change // to be handed over
	most int           // live runs at once
	sent []plan.Change // handed over and not confirmed
	// Around lets things happen around the engine's own work as well.
	Around bool
}

// NewMachine draws a cluster, and what its jobs may ask.
func NewMachine(t *rapid.T) *Machine {
	c := &cluster.Cluster{Name: "random"}
	for m := range rapid.IntRange(1, 2).Draw(t, "models") {
		model := cluster.Model{Name: string(rune('a' + m)), Memory: unit.MiB(rapid.IntRange(0, 16).Draw(t, "GiB")) << 10, Speed: 1}
		if rapid.Bool().Draw(t, "cuts") {
			model.Geometries = []cluster.Geometry{{Name: "whole"},
				{Name: "halves", Parts: []cluster.Part{{Milli: 500, Memory: model.Memory / 2}, {Milli: 500, Memory: model.Memory / 2}}},
				{Name: "parts", Parts: []cluster.Part{{Milli: 250, Memory: model.Memory / 4}, {Milli: 600, Memory: model.Memory / 2}}}}
		}
		c.AddModel(model)
	}
	c.AddRack(cluster.Rack{Name: "rack"})
	for range rapid.IntRange(1, 70).Draw(t, "nodes") {
		c.AddNode(cluster.Node{Name: "node", Model: int32(rapid.IntRange(0, len(c.Models)-1).Draw(t, "model")), CPU: 8000, Memory: 1000}, rapid.IntRange(0, 4).Draw(t, "devices"))
	}
	m := &Machine{S: plan.NewState(c)}
	m.S.Tenants, m.S.Users, m.S.Classes = []string{"tenant", "other"}, []string{"user"}, []string{"class"}
	m.S.Commands = []string{"python train.py", "python eval.py"}
	m.S.NodeSets = [][]uint64{nil}
	for range 4 {
		shape := plan.Shape{Gang: int32(rapid.IntRange(1, 4).Draw(t, "gang")), Devices: 1, Share: 1000, Models: 3,
			CPU: int32(rapid.IntRange(0, 3).Draw(t, "cores")) * 1000, Host: int32(rapid.IntRange(0, 1).Draw(t, "host")) * 300}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			shape.Devices = int32(rapid.IntRange(0, 2).Draw(t, "per worker"))
		case 1:
			shape.Share = int32(rapid.IntRange(1, 10).Draw(t, "share")) * 100
		case 2:
			shape.Sizes = [8]int32{1, 2}
		case 3:
			shape.NodeSet, shape.PerNode = int32(rapid.IntRange(0, 2).Draw(t, "set")), int32(rapid.IntRange(0, 2).Draw(t, "per node"))
		}
		shape.Memory = int32(rapid.IntRange(0, 3).Draw(t, "memory")) << 10
		m.S.Shapes = append(m.S.Shapes, shape)
	}
	return m
}

// Edit makes one random edit, legal or not.
func (m *Machine) Edit(t *rapid.T, d *plan.Draft) {
	job := plan.JobID(rapid.IntRange(-1, max(0, d.Jobs())).Draw(t, "job"))
	if plain := rapid.IntRange(0, 3).Draw(t, "plain") > 0; plain {
		job = plan.JobID(d.Jobs() - 1) // the latest most likely waits
	}
	run := plan.RunID(rapid.IntRange(-1, max(0, d.RunSlots())).Draw(t, "run"))
	live := 0
	for id := range plan.RunID(d.RunSlots()) {
		if d.Run(id).Status != plan.Gone {
			live++
		}
	}
	m.most = max(m.most, live)
	device := plan.DeviceID(rapid.IntRange(-1, d.Devices()).Draw(t, "device"))
	terms := plan.DefaultTerms()
	terms.Share.Turn, terms.Share.Batch = int32(rapid.IntRange(0, 2).Draw(t, "turn")), int32(rapid.IntRange(0, 1).Draw(t, "batch"))
	if rapid.Bool().Draw(t, "no turn") {
		terms.Share.Turn = 0
	}
	terms.Share.Milli, terms.Share.Swap = rapid.SampledFrom([]int32{0, 0, 500, 1000, 2000}).Draw(t, "of it"), rapid.SampledFrom([]int32{0, 500, 1 << 20}).Draw(t, "swap")
	why := plan.Reason{Code: plan.Fits, A: int64(rapid.IntRange(0, 3).Draw(t, "why"))}
	switch rapid.IntRange(0, 12).Draw(t, "edit") {
	case 0, 1, 2, 3, 4:
		d.Start(job, m.slots(t, d, job, device), terms, why)
	case 5, 6:
		d.Stop(run, why, 0)
	case 7:
		d.Suspend(run, why)
	case 8:
		d.Resume(run, why)
	case 9:
		d.Regrant(run, terms, why)
	case 10:
		d.Reshape(device, int16(rapid.IntRange(-1, 3).Draw(t, "geometry")), why)
	case 11:
		d.Refuse(job, why)
		d.Explain(job, why)
		d.Lease(run, unit.Time(why.A))
	case 12:
		d.PlanID(plan.Pipeline{Schedule: "x", Iteration: unit.Duration(why.A % 3)})
		d.Remember([]byte{byte(why.A)})
		if job >= 0 && int(job) < d.Jobs() {
			d.Memo(job, [2]int64{why.A, 0})
			d.Estimate(job, unit.Duration(why.A))
		}
	}
}

// slots asks for a job on one node as it may be, or for anything at all.
func (m *Machine) slots(t *rapid.T, d *plan.Draft, job plan.JobID, device plan.DeviceID) (slots []plan.Slot) {
	if job >= 0 && int(job) < d.Jobs() && rapid.IntRange(0, 2).Draw(t, "sane") > 0 {
		slot := plan.Slot{Node: plan.NodeID(rapid.IntRange(0, min(3, d.Nodes()-1)).Draw(t, "on node")), Device: plan.None, Workers: d.Shape(job).Gang}
		if n := d.Node(slot.Node); d.Shape(job).Share < 1000 && n.Count > 0 {
			slot.Device = n.First
		}
		return append(slots, slot)
	}
	for range rapid.IntRange(0, 2).Draw(t, "slots") {
		s := plan.Slot{Node: plan.NodeID(rapid.IntRange(-1, d.Nodes()).Draw(t, "node")), Device: plan.None,
			Workers: int32(rapid.IntRange(-1, 3).Draw(t, "workers")), Reserve: rapid.SampledFrom([]int32{0, 0, 300, 500, -1}).Draw(t, "reserve")}
		switch rapid.IntRange(0, 2).Draw(t, "named") {
		case 0:
			s.Device = device
		case 1:
			s.On = rapid.SliceOfN(rapid.Map(rapid.IntRange(-1, d.Devices()), func(i int) plan.DeviceID { return plan.DeviceID(i) }), 1, 3).Draw(t, "on")
		}
		if device >= 0 && int(device) < d.Devices() {
			s.Node = d.Device(device).Node
		}
		slots = append(slots, s)
	}
	return slots
}

// Commit closes a draft; what need not wait is handed over, or will be.
func (m *Machine) Commit(t *rapid.T, d *plan.Draft) {
	changes, _ := d.Commit()
	for _, c := range changes {
		if len(c.After) == 0 {
			m.held = append(m.held, c)
		}
	}
	if rapid.Bool().Draw(t, "at once") {
		m.handOver()
	}
}

func (m *Machine) handOver() {
	for _, c := range m.held {
		m.dispatch(c)
	}
	m.held = nil
}

func (m *Machine) dispatch(c plan.Change) {
	switch c.Verb {
	case plan.Refuse, plan.Withdraw, plan.Regrant:
		return
	case plan.Start:
		if m.S.RunOf(c.Job, c.Attempt) != c.Run {
			return
		}
		m.S.Dispatch(c.Run)
	}
	m.sent = append(m.sent, c)
}

// confirm carries one of the handed-over changes out, or lets the run end instead.
func (m *Machine) confirm(t *rapid.T) {
	if len(m.sent) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.sent)-1).Draw(t, "confirmed")
	c := m.sent[i]
	m.sent = slices.Delete(m.sent, i, i+1)
	if c.Verb == plan.Reshape {
		if m.S.Devices[c.Device].Change == c.ID {
			m.S.SetDevice(c.Device, plan.Steady)
			m.release(c.ID)
		}
		return
	}
	run := m.S.RunOf(c.Job, c.Attempt)
	if run == plan.None || m.S.Runs[run].Change != c.ID {
		return // overtaken
	}
	switch {
	case c.Verb == plan.Stop:
		m.S.EndRun(run, 0)
	case rapid.IntRange(0, 3).Draw(t, "ends instead") == 0:
		m.S.EndRun(run, unit.Second)
		m.S.SetPhase(c.Job, plan.Waiting, plan.Reason{})
	case c.Verb == plan.Suspend:
		m.S.Runs[run].Change = 0
	default:
		m.S.Began(run)
	}
	m.release(c.ID)
}

func (m *Machine) release(change int64) {
	m.held = append(m.held, m.S.Confirm(change)...)
}

// Happen lets something come from outside.
func (m *Machine) Happen(t *rapid.T) {
	m.S.Now++
	if m.Around && rapid.IntRange(0, 3).Draw(t, "around") == 0 {
		m.elsewhere(t)
	}
	switch rapid.IntRange(0, 6).Draw(t, "fact") {
	case 0, 1:
		m.S.Admit("job", plan.Asked{Shape: int32(rapid.IntRange(0, len(m.S.Shapes)-1).Draw(t, "shape")), Tenant: int32(rapid.IntRange(0, 1).Draw(t, "tenant")), Command: int32(rapid.IntRange(0, 2).Draw(t, "command")), Profile: plan.None})
	case 2:
		node := plan.NodeID(rapid.IntRange(0, len(m.S.Nodes)-1).Draw(t, "node"))
		if m.S.Nodes[node].Status == plan.Up {
			m.S.SetNode(node, plan.Cordoned)
		} else {
			m.S.SetNode(node, plan.Up)
		}
	default:
		m.handOver()
		m.confirm(t)
	}
}

// elsewhere lets something happen that is not the engine's own doing.
func (m *Machine) elsewhere(t *rapid.T) {
	node := plan.NodeID(rapid.IntRange(0, len(m.S.Nodes)-1).Draw(t, "where"))
	switch rapid.IntRange(0, 2).Draw(t, "what") {
	case 0:
		m.S.Occupy(node, int32(rapid.IntRange(0, 9).Draw(t, "cores"))*1000, int32(rapid.IntRange(0, 1200).Draw(t, "memory")), int32(rapid.IntRange(0, 5).Draw(t, "devices")))
	case 1:
		m.S.Confine(int32(rapid.IntRange(1, 2).Draw(t, "set")), []uint64{rapid.Uint64().Draw(t, "nodes")})
	default:
		if err := m.S.Grow(more(m.S.Cluster, rapid.IntRange(1, 70).Draw(t, "joined"))); err != nil {
			t.Fatal(err)
		}
	}
}

// more is a cluster to grow by.
func more(c *cluster.Cluster, nodes int) *cluster.Cluster {
	m := &cluster.Cluster{Models: c.Models[:1]}
	for _, rack := range []string{"rack", "another"} {
		m.AddRack(cluster.Rack{Name: rack})
	}
	for i := range nodes {
		m.AddNode(cluster.Node{Name: "joined", Rack: int32(i % 2), CPU: 4000, Memory: 500}, i%3)
	}
	return m
}
