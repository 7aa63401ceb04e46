package plan_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// machine drives a State through random edits and facts, as an engine would.
type machine struct {
	s    *plan.State
	held []plan.Change // to be handed over
	most int           // live runs at once
	sent []plan.Change // handed over and not confirmed
	// around lets things happen around the engine's own work as well.
	around bool
}

func newMachine(t *rapid.T) *machine {
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
	m := &machine{s: plan.NewState(c)}
	m.s.Tenants, m.s.Users, m.s.Classes = []string{"tenant", "other"}, []string{"user"}, []string{"class"}
	m.s.NodeSets = [][]uint64{nil}
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
		m.s.Shapes = append(m.s.Shapes, shape)
	}
	return m
}

// edit makes one random edit, legal or not.
func (m *machine) edit(t *rapid.T, d *plan.Draft) {
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
		d.AddPlan(plan.Pipeline{Schedule: "x"})
		d.Remember([]byte{byte(why.A)})
		if job >= 0 && int(job) < d.Jobs() {
			d.Memo(job, [2]int64{why.A, 0})
			d.Estimate(job, unit.Duration(why.A))
		}
	}
}

// slots asks for a job on one node as it may be, or for anything at all.
func (m *machine) slots(t *rapid.T, d *plan.Draft, job plan.JobID, device plan.DeviceID) (slots []plan.Slot) {
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

// commit closes a draft; what need not wait is handed over, or will be.
func (m *machine) commit(t *rapid.T, d *plan.Draft) {
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

func (m *machine) handOver() {
	for _, c := range m.held {
		m.dispatch(c)
	}
	m.held = nil
}

func (m *machine) dispatch(c plan.Change) {
	switch c.Verb {
	case plan.Refuse, plan.Withdraw, plan.Regrant:
		return
	case plan.Start:
		if m.s.RunOf(c.Job, c.Attempt) != c.Run {
			return
		}
		m.s.Dispatch(c.Run)
	}
	m.sent = append(m.sent, c)
}

// confirm carries one of the handed-over changes out, or lets the run end instead.
func (m *machine) confirm(t *rapid.T) {
	if len(m.sent) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.sent)-1).Draw(t, "confirmed")
	c := m.sent[i]
	m.sent = slices.Delete(m.sent, i, i+1)
	if c.Verb == plan.Reshape {
		if m.s.Devices[c.Device].Change == c.ID {
			m.s.SetDevice(c.Device, plan.Steady)
			m.release(c.ID)
		}
		return
	}
	run := m.s.RunOf(c.Job, c.Attempt)
	if run == plan.None || m.s.Runs[run].Change != c.ID {
		return // overtaken
	}
	switch {
	case c.Verb == plan.Stop:
		m.s.EndRun(run, 0)
	case rapid.IntRange(0, 3).Draw(t, "ends instead") == 0:
		m.s.EndRun(run, unit.Second)
		m.s.SetPhase(c.Job, plan.Waiting, plan.Reason{})
	case c.Verb == plan.Suspend:
		m.s.Runs[run].Change = 0
	default:
		m.s.Began(run)
	}
	m.release(c.ID)
}

func (m *machine) release(change int64) {
	m.held = append(m.held, m.s.Confirm(change)...)
}

// happen lets something come from outside.
func (m *machine) happen(t *rapid.T) {
	m.s.Now++
	if m.around && rapid.IntRange(0, 3).Draw(t, "around") == 0 {
		m.elsewhere(t)
	}
	switch rapid.IntRange(0, 6).Draw(t, "fact") {
	case 0, 1:
		m.s.Admit("job", plan.Job{Shape: int32(rapid.IntRange(0, len(m.s.Shapes)-1).Draw(t, "shape")), Tenant: int32(rapid.IntRange(0, 1).Draw(t, "tenant")), Profile: plan.None})
	case 2:
		node := plan.NodeID(rapid.IntRange(0, len(m.s.Nodes)-1).Draw(t, "node"))
		if m.s.Nodes[node].Status == plan.Up {
			m.s.SetNode(node, plan.Cordoned)
		} else {
			m.s.SetNode(node, plan.Up)
		}
	default:
		m.handOver()
		m.confirm(t)
	}
}

// elsewhere lets something happen that is not the engine's own doing.
func (m *machine) elsewhere(t *rapid.T) {
	node := plan.NodeID(rapid.IntRange(0, len(m.s.Nodes)-1).Draw(t, "where"))
	switch rapid.IntRange(0, 2).Draw(t, "what") {
	case 0:
		m.s.Occupy(node, int32(rapid.IntRange(0, 9).Draw(t, "cores"))*1000, int32(rapid.IntRange(0, 1200).Draw(t, "memory")), int32(rapid.IntRange(0, 5).Draw(t, "devices")))
	case 1:
		m.s.Confine(int32(rapid.IntRange(1, 2).Draw(t, "set")), []uint64{rapid.Uint64().Draw(t, "nodes")})
	default:
		if err := m.s.Grow(more(m.s.Cluster, rapid.IntRange(1, 70).Draw(t, "joined"))); err != nil {
			t.Fatal(err)
		}
	}
}

func bytesOf(t *rapid.T, s *plan.State) []byte {
	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRandomHistory edits at random: nothing is ever over-committed, a rollback
// restores every byte, and a snapshot comes back as it was.
func TestRandomHistory(t *testing.T) {
	draws.Seed(t, 0)
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		var used plan.State
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			m.happen(t)
			d := m.s.Edit()
			for range rapid.IntRange(0, 4).Draw(t, "kept") {
				m.edit(t, d)
			}
			mark, before := d.Mark(), bytesOf(t, m.s)
			for range rapid.IntRange(0, 6).Draw(t, "undone") {
				m.edit(t, d)
			}
			if d.Rollback(mark); !bytes.Equal(before, bytesOf(t, m.s)) {
				t.Fatal("a rollback did not restore the state")
			}
			if err := m.s.Check(); err != nil {
				t.Fatal(err)
			}
			m.commit(t, d)
			if err := m.s.Check(); err != nil {
				t.Fatalf("after the commit: %v", err)
			}
			checkRoom(t, m.s)
			m.s.CopyInto(&used)
			if err := used.Check(); err != nil || !bytes.Equal(bytesOf(t, m.s), bytesOf(t, &used)) {
				t.Fatalf("a copy into used memory is another state (%v)", err)
			}
		}
		again, err := m.s.Clone()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytesOf(t, m.s), bytesOf(t, again)) || !bytes.Equal(bytesOf(t, m.s), bytesOf(t, m.s.Copy())) {
			t.Fatal("a snapshot or a copy is not equal to what it was taken of")
		}
	})
}

// TestEverythingComesBack ends all runs and expects an idle cluster.
func TestEverythingComesBack(t *testing.T) {
	draws.Seed(t, 0)
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		idle := m.s.Copy()
		for range 30 {
			m.happen(t)
			d := m.s.Edit()
			m.edit(t, d)
			m.commit(t, d)
		}
		for id := range m.s.Runs {
			if r := m.s.Runs[id]; r.Status != plan.Gone {
				m.s.EndRun(plan.RunID(id), 0)
				if j := &m.s.Jobs[r.Job]; j.Phase == plan.Active {
					m.s.SetPhase(r.Job, plan.Waiting, plan.Reason{})
				}
			}
		}
		for id, dev := range m.s.Devices {
			if was := idle.Devices[id]; dev.Free != was.Free || dev.Now != was.Now || dev.FreeMemory != was.FreeMemory || dev.NowMemory != was.NowMemory || dev.First != plan.None {
				t.Fatalf("device %d is not idle: %+v", id, dev)
			}
		}
		for id, n := range m.s.Nodes {
			if was := idle.Nodes[id]; n.FreeCPU != was.FreeCPU || n.FreeHost != was.FreeHost || n.LeavingCPU != 0 || n.LeavingHost != 0 {
				t.Fatalf("node %d is not idle: %+v", id, n)
			}
		}
	})
}

// checkRoom compares the index of free capacity with what looking at every device
// finds.
func checkRoom(t *rapid.T, s *plan.State) {
	room, v := s.View().Room(), s.View()
	for model := range room.Models() {
		free, milli := int64(0), int64(0)
		with := make([][]plan.NodeID, room.MostFree()+1)
		var partial []plan.NodeID
		for id := range plan.NodeID(v.Nodes()) {
			n := v.Node(id)
			if int(n.Model) != model || n.Status != plan.Up {
				continue
			}
			whole, part := 0, false
			for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
				dev := v.Device(d)
				switch milli += int64(dev.Free); {
				case dev.Free == 1000 && dev.Geometry == 0:
					whole++
				case dev.Free > 0:
					part = true
				}
			}
			free += int64(whole)
			with[whole] = append(with[whole], id)
			if part {
				partial = append(partial, id)
			}
		}
		if room.Free(1<<model) != free || room.FreeMilli(1<<model) != milli {
			t.Fatalf("the index counts %d and %d thousandths free of model %d, there are %d and %d", room.Free(1<<model), room.FreeMilli(1<<model), model, free, milli)
		}
		for count, want := range with {
			var got []plan.NodeID
			for id := room.Next(model, count, 0); id != plan.None; id = room.Next(model, count, id+1) {
				got = append(got, id)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("with %d free devices of model %d the index finds %v, there are %v", count, model, got, want)
			}
		}
		var got []plan.NodeID
		for id := room.NextPartial(model, 0); id != plan.None; id = room.NextPartial(model, id+1) {
			got = append(got, id)
		}
		if !slices.Equal(got, partial) {
			t.Fatalf("with parts free of model %d the index finds %v, there are %v", model, got, partial)
		}
	}
}
