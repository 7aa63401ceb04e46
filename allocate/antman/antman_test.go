package antman

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/unit"
)

func newPlacer() allocate.Placer { return New(Default()) }

func TestConforms(t *testing.T) { allocatetest.Conform(t, newPlacer) }

func BenchmarkPlace(b *testing.B) { allocatetest.Bench(b, newPlacer) }

// admit adds a job of one worker per device with 10 GiB, which computes so much of its
// time; opportunistic where that is 0.
func admit(s *plan.State, gang, busy int32) (plan.JobID, *plan.Shape) {
	s.Shapes = append(s.Shapes, plan.Shape{Gang: gang, Devices: 1, Share: 1000, Memory: 10 << 10, Models: ^uint64(0)})
	s.Profiles = append(s.Profiles, plan.Profile{Compute: unit.Duration(busy), Communicate: unit.Duration(1000 - busy), Opportunistic: busy == 0})
	id := s.Admit("job", plan.Job{Shape: int32(len(s.Shapes) - 1), Profile: int32(len(s.Profiles) - 1)})
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
	terms := found[0].Terms
	if terms == (plan.Terms{}) {
		terms = plan.DefaultTerms()
	}
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
		device  plan.DeviceID
		ceiling int32
	}{{3, 1000}, {2, 700}, {1, 500}} {
		id, shape := admit(s, 1, 0)
		got, ok := place(t, s, p, id, shape)
		if !ok || got.Slots[0].Device != want.device || got.Terms.Ceiling != want.ceiling {
			t.Errorf("guest %d: %v on %+v, want device %d at most %d", i, ok, got, want.device, want.ceiling)
		}
	}
	id, shape := admit(s, 1, 0)
	if got, ok := place(t, s, p, id, shape); ok {
		t.Errorf("a fourth guest went to %+v", got)
	}
	id, shape = admit(s, 1, 400) // its memory fits beside the guest's
	if got, ok := place(t, s, p, id, shape); !ok || got.Terms.Guest > 0 {
		t.Errorf("a guaranteed job found no place beside a guest")
	}
}

// TestEligible: too busy, too little memory, and the headroom only beside a host.
func TestEligible(t *testing.T) {
	c := Default()
	for i, x := range []struct {
		load   load
		memory unit.MiB
		want   bool
	}{
		{load{0, 8192}, 8192, true}, {load{0, 8192}, 8193, false}, {load{799, 9216}, 8192, true},
		{load{799, 9215}, 8192, false}, {load{800, 20000}, 1, false},
	} {
		if got := c.eligible(x.load, x.memory); got != x.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
}

// TestModelAlone: without sharing nobody is slowed, and every job is done in the end.
func TestModelAlone(t *testing.T) {
	s := &shop{config: Default(), law: "fixed", memory: 32 << 10, holder: make([]*work, 8), guest: make([]*work, 8)}
	all := draw(7, setting{8, 40, 2, "fixed"}, 32<<10)
	s.run(all)
	for i, w := range all {
		if w.start < w.submit || w.end-w.start < w.needs-1e-3 || w.end-w.start > w.needs+1e-3 {
			t.Errorf("job %d of %.0f s ran from %.0f to %.0f, submitted at %.0f", i, w.needs, w.start, w.end, w.submit)
		}
	}
}

// TestMeasure holds the model against the acceptance, for the mean of a few seeds.
func TestMeasure(t *testing.T) {
	mean := map[string]float64{}
	const seeds = 3
	for seed := range uint64(seeds) {
		for name, x := range Measure(seed) {
			mean[name] += x / seeds
		}
	}
	for name, band := range map[string][2]float64{
		"guaranteed_slowdown_antman-fill_16x2": {0, .02}, "guest_rate_antman-fill_16x2": {.3, 1},
		"opportunistic_jct_ratio_antman-fill_64x2": {0, .7}, "guaranteed_slowdown_fixed_16x2": {.05, 1},
		"oom": {0, 0}, "oom_without_spill": {1, 1e9}, "guaranteed_memory_slowdown": {0, .02},
	} {
		if x, ok := mean[name]; !ok || x < band[0] || x > band[1] {
			t.Errorf("%s is %.4f: expected %g to %g", name, x, band[0], band[1])
		}
	}
}
