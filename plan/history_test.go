package plan_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/plan/plantest"
)

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
	draws.Check(t, func(t *rapid.T) {
		m := plantest.NewMachine(t)
		var used plan.State
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			m.Happen(t)
			d := m.S.Edit()
			for range rapid.IntRange(0, 4).Draw(t, "kept") {
				m.Edit(t, d)
			}
			mark, before := d.Mark(), bytesOf(t, m.S)
			for range rapid.IntRange(0, 6).Draw(t, "undone") {
				m.Edit(t, d)
			}
			if d.Rollback(mark); !bytes.Equal(before, bytesOf(t, m.S)) {
				t.Fatal("a rollback did not restore the state")
			}
			if err := m.S.Check(); err != nil {
				t.Fatal(err)
			}
			m.Commit(t, d)
			if err := m.S.Check(); err != nil {
				t.Fatalf("after the commit: %v", err)
			}
			checkRoom(t, m.S)
			m.S.CopyInto(&used)
			if err := used.Check(); err != nil || !bytes.Equal(bytesOf(t, m.S), bytesOf(t, &used)) {
				t.Fatalf("a copy into used memory is another state (%v)", err)
			}
		}
		again, err := m.S.Clone()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytesOf(t, m.S), bytesOf(t, again)) || !bytes.Equal(bytesOf(t, m.S), bytesOf(t, m.S.Copy())) {
			t.Fatal("a snapshot or a copy is not equal to what it was taken of")
		}
	})
}

// TestEverythingComesBack ends all runs and expects an idle cluster.
func TestEverythingComesBack(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		m := plantest.NewMachine(t)
		idle := m.S.Copy()
		for range 30 {
			m.Happen(t)
			d := m.S.Edit()
			m.Edit(t, d)
			m.Commit(t, d)
		}
		for id := range m.S.Runs {
			if r := m.S.Runs[id]; r.Status != plan.Gone {
				m.S.EndRun(plan.RunID(id), 0)
				if j := &m.S.Jobs[r.Job]; j.Phase == plan.Active {
					m.S.SetPhase(r.Job, plan.Waiting, plan.Reason{})
				}
			}
		}
		for id, dev := range m.S.Devices {
			if was := idle.Devices[id]; dev.Free != was.Free || dev.Now != was.Now || dev.FreeMemory != was.FreeMemory || dev.NowMemory != was.NowMemory || dev.First != plan.None {
				t.Fatalf("device %d is not idle: %+v", id, dev)
			}
		}
		for id, n := range m.S.Nodes {
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
