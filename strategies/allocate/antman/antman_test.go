package antman

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

func newPlacer() allocate.Placer { return New(Default()) }

func TestConforms(t *testing.T) { allocatetest.Conform(t, newPlacer) }

func BenchmarkPlace(b *testing.B) { allocatetest.Bench(b, newPlacer) }

// admit adds a job of one worker per device with 10 GiB, which computes so much of its
// time; opportunistic where that is 0.
func admit(s *plan.State, gang, busy int32) (plan.JobID, *plan.Shape) {
	s.Shapes = append(s.Shapes, plan.Shape{Gang: gang, Devices: 1, Share: 1000, Memory: 10 << 10, Models: ^uint64(0)})
	s.Profiles = append(s.Profiles, plan.Profile{Compute: unit.Duration(busy), Communicate: unit.Duration(1000 - busy), Opportunistic: busy == 0})
	id := s.Admit("job", plan.Asked{Shape: int32(len(s.Shapes) - 1), Profile: int32(len(s.Profiles) - 1)})
	return id, s.View().Shape(id)
}

// place starts a job where the placer says and returns the candidate.
func place(t *testing.T, s *plan.State, p *Placer, id plan.JobID, shape *plan.Shape) (allocate.Candidate, bool) {
	t.Helper()
	found := p.Place(s.View(), allocate.Need{Job: id, Workers: shape.Gang, Shape: shape}, 1, nil)
	if len(found) == 0 {
		return allocate.Candidate{}, false
	}
	d := s.Edit()
	terms := plan.DefaultTerms().WithShare(found[0].Share)
	if run, why := d.Start(id, found[0].Slots, terms, plan.Reason{}); run == plan.None {
		t.Fatalf("%+v cannot start: %v", found[0], why)
	}
	d.Commit()
	return found[0], true
}

// TestGuests: opportunistic jobs go to idle devices first, then to the least used one
// that is less than 80 % busy, one on each; guaranteed jobs do not see them.
func TestGuests(t *testing.T) {
	c := &cluster.Cluster{Name: "four"}
	gpu := c.AddModel(cluster.Model{Name: "gpu", Memory: 24 << 10, Speed: 1})
	c.AddNode(cluster.Node{Name: "n", Rack: c.AddRack(cluster.Rack{Name: "r"}), Model: gpu, CPU: 16000, Memory: 64 << 10}, 4)
	s := plan.NewState(c)
	p := New(Default())
	for _, busy := range []int32{900, 500, 300} { // devices 0, 1 and 2
		id, shape := admit(s, 1, busy)
		place(t, s, p, id, shape)
	}
	for i, want := range []struct {
		device plan.DeviceID
		score  int64
	}{{3, 1000}, {2, 700}, {1, 500}} {
		id, shape := admit(s, 1, 0)
		got, ok := place(t, s, p, id, shape)
		if !ok || got.Slots[0].Device != want.device || got.Score != want.score || *got.Share != (plan.ShareTerms{Guest: got.Share.Guest}) {
			t.Errorf("guest %d: %v on %+v, want device %d and score %d", i, ok, got, want.device, want.score)
		}
	}
	id, shape := admit(s, 1, 0)
	if got, ok := place(t, s, p, id, shape); ok {
		t.Errorf("a fourth guest went to %+v", got)
	}
	id, shape = admit(s, 1, 400) // its memory fits beside the guest's
	if got, ok := place(t, s, p, id, shape); !ok || got.Share != nil {
		t.Errorf("a guaranteed job found no place beside a guest")
	}
}

// TestEligible: too busy, too little memory, and the headroom only beside a host.
func TestEligible(t *testing.T) {
	p := New(Default())
	for i, x := range []struct {
		load   load
		memory unit.MiB
		want   bool
	}{
		{load{free: 8192}, 8192, true}, {load{free: 8192}, 8193, false}, {load{used: 799, free: 9216}, 8192, true},
		{load{used: 799, free: 9215}, 8192, false}, {load{used: 800, free: 20000}, 1, false},
	} {
		if got := p.eligible(x.load, x.memory); got != x.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
}

// TestUndisturbed: guaranteed work goes to devices without a guest first; beside one only
// where there are no others.
func TestUndisturbed(t *testing.T) {
	c := &cluster.Cluster{Name: "two"}
	gpu := c.AddModel(cluster.Model{Name: "gpu", Memory: 24 << 10, Speed: 1})
	c.AddNode(cluster.Node{Name: "n", Rack: c.AddRack(cluster.Rack{Name: "r"}), Model: gpu, CPU: 16000, Memory: 64 << 10}, 2)
	s := plan.NewState(c)
	p := New(Default())
	guest, shape := admit(s, 1, 0)
	if got, ok := place(t, s, p, guest, shape); !ok || got.Slots[0].Device != 0 {
		t.Fatalf("the guest is on %+v", got)
	}
	for _, want := range []plan.DeviceID{1, 0} {
		id, shape := admit(s, 1, 500)
		place(t, s, p, id, shape)
		s.View().GrantsOf(s.View().Job(id).Run, func(g plan.Grant) {
			if g.Device != want {
				t.Errorf("guaranteed work is on device %d, want %d", g.Device, want)
			}
		})
	}
}
