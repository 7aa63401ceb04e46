package reaction

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
)

// sound is a run of four pipelines of two ranks, and a spare; a step without waits would take 16
// microbatches of 4 layers, 3 ms each.
func sound() *Run {
	c := make(paralleltest.Chain, 8)
	for i := range c {
		c[i] = parallel.Layer{Forward: 1000, Input: 1000, Weight: 1000, ParamKiB: 1024, ActivationKiB: 1, OutputKiB: 1, GFlop: 1}
	}
	m := &parallel.Model{Name: "chain", Profile: c, Batch: 64, State: parallel.State{Weights: 1, Gradients: 1}}
	x := parallel.NewSimulator(m, parallel.Even(parallel.Device{Name: "unit", TFlops: 1}, 9, 1, 8192))
	s := parallel.Shape{Sequence: parallel.Sequence{Name: "1f1b", Order: onefoneb.Ordering{}}, Samples: 1, Microbatches: 16, Tensor: 1, Ranks: 2, Copies: 4, Cuts: []int32{4}}
	p := s.Plan()
	r, why := x.Simulate(&p)
	if why != "" {
		panic(why)
	}
	return &Run{Sound: r.Step, Full: p, Now: p, X: x, Left: 100 * unit.Hour, Since: 10 * unit.Minute, Repair: unit.Hour, Start: unit.Second, Store: unit.Second,
		Plan: func(without []int32) (parallel.Candidate, parallel.Why) {
			p := p
			p.Pipelines = slices.DeleteFunc(slices.Clone(p.Pipelines), func(one parallel.Pipeline) bool {
				return slices.ContainsFunc(without, func(d int32) bool { return one.Ranks[0].Devices[0] == d || one.Ranks[1].Devices[0] == d })
			})
			for i := range p.Pipelines {
				p.Pipelines[i].Microbatches = 64 / len(p.Pipelines)
			}
			p.Pipelines[0].Microbatches += 64 % len(p.Pipelines)
			r, why := x.Simulate(&p)
			return parallel.Candidate{Plan: p, Result: r}, why
		}}
}

func find(all []Option, name string) *Option {
	return &all[slices.IndexFunc(all, func(o Option) bool { return o.Name == name })]
}

// TestSlow: a device that is hardly slow is ridden through where there is no spare; one at half its
// speed loses microbatches or layers, and no more than its pipeline would if nobody did anything.
func TestSlow(t *testing.T) {
	for _, speed := range []float64{.999, .5} {
		r := sound()
		r.X.On.Speeds = slices.Repeat([]float64{1}, 9)
		r.X.On.Speeds[0], r.X.On.Speeds[8] = speed, .1
		r.X = parallel.NewSimulator(r.X.Model, r.X.On)
		all := r.Options()
		ride := find(all, Ride)
		if ride.Why != "" || find(all, Swap).Why == "" || find(all, Wait).Why == "" {
			t.Errorf("at %g: %+v: expected to go on, with no spare and nothing to wait for", speed, all)
		}
		if best := all[0]; speed < .9 && (best.Step >= ride.Step || best.Name == Ride) || speed > .9 && best.Price > ride.Price {
			t.Errorf("at %g: %s with a step of %v, %v as it is", speed, best.Name, best.Step, ride.Step)
		}
		if recut := find(all, Recut); speed < .9 && (recut.Why != "" || recut.Step >= ride.Step) {
			t.Errorf("a new cut takes %v, %v before: %s", recut.Step, ride.Step, recut.Why)
		}
	}
}

// TestLost: where a device is gone nobody rides through; a spare takes its place at once. Without
// one, detours with split backward passes are faster than to drop the whole pipeline, three of four
// take about four thirds of the step, and to wait costs the repair.
func TestLost(t *testing.T) {
	r := sound()
	r.Away = []int32{0}
	if all := r.Options(); all[0].Name != Swap || find(all, Ride).Why == "" || slices.Contains(all[0].Plan.Devices(), 0) || all[0].Step != r.Sound {
		t.Errorf("%+v: expected the spare", all[0])
	}
	r.Away = []int32{0, 8}
	all := r.Options()
	route, reshape, drop, wait := find(all, Route), find(all, Reshape), find(all, Drop), find(all, Wait)
	if find(all, Swap).Why == "" || route.Why+reshape.Why+drop.Why != "" {
		t.Fatalf("%+v: expected no spare, and three ways to go on", all)
	}
	if !(reshape.Step < drop.Step && reshape.Step <= route.Step && 3*drop.Step > 4*r.Sound*9/10) {
		t.Errorf("detours take %v, with split passes %v, a replica less %v, before %v", route.Step, reshape.Step, drop.Step, r.Sound)
	}
	if want := (r.Repair + 2*unit.Second + r.Since).Seconds() * 8; wait.Price < want*.999 || wait.Price > want*1.001 {
		t.Errorf("to wait costs %g device-seconds, expected %g", wait.Price, want)
	}
	prices := []float64{}
	for _, o := range all {
		if o.Why == "" {
			prices = append(prices, o.Price)
		}
	}
	if !slices.IsSorted(prices) {
		t.Errorf("%v: expected the cheapest first", prices)
	}
}

// TestBack: when all are there again the full plan is sent what it lacks.
func TestBack(t *testing.T) {
	r := sound()
	r.Now.Pipelines = slices.Clone(r.Now.Pipelines[1:])
	for i, n := range []int{22, 21, 21} {
		r.Now.Pipelines[i].Microbatches = n
	}
	if all := r.Options(); all[0].Name != Swap || all[0].Step != r.Sound || all[0].Redo != 0 {
		t.Errorf("%+v: expected the full plan again", all[0])
	}
}

// TestSpread: where the optimiser's state is spread over the copies, what a lost device held of it is
// in the checkpoint alone, so that all ways lead there. Those that are left begin again from there.
func TestSpread(t *testing.T) {
	r := sound()
	r.X.Model.State.Optimizer, r.X.Model.State.Sharded = 2, true
	r.Away = []int32{0, 8}
	r.Plan = func([]int32) (parallel.Candidate, parallel.Why) {
		return parallel.Candidate{}, "nothing divides what is left"
	}
	all := r.Options()
	for _, name := range []string{Route, Reshape, Recut, Drop} {
		if o := find(all, name); o.Why == "" || o.Why != find(all, Drop).Why {
			t.Errorf("%s: %q", name, o.Why)
		}
	}
	if again := find(all, Restart); again.Why != "" || len(again.Plan.Pipelines) != 3 || again.Redo != r.Since {
		t.Errorf("%+v: expected the three pipelines that are left, from the checkpoint", again)
	}
}

// TestRecover: what a planner knows is taken where it is cheaper than a cut of what stands, and one that goes
// to the checkpoint is no cut.
func TestRecover(t *testing.T) {
	for _, restart := range []bool{false, true} {
		r := sound()
		r.Away = []int32{0, 8}
		own := *find(r.Options(Recut), Recut)
		r.Recover = func(lost []int32) (parallel.Recovery, parallel.Why) {
			p := r.Now
			p.Pipelines = slices.Clone(r.Now.Pipelines[:1])
			p.Pipelines[0].Microbatches = 64
			p = p.On([]int32{2, 1, 0, 3, 6, 5, 4, 7, 8})
			if !slices.Equal(lost, r.Away) {
				t.Errorf("asked for %v, lost %v", lost, r.Away)
			}
			return parallel.Recovery{Candidate: parallel.Candidate{Plan: p}, Restart: restart}, ""
		}
		if o := find(r.Options(Recut), Recut); o.Step != own.Step || o.Price != own.Price {
			t.Errorf("%+v: expected the cut, as one pipeline for all is slower", o)
		}
		r.Away = []int32{0, 4, 8} // all of a pipeline
		if o := find(r.Options(Recut), Recut); (o.Why == "") == restart {
			t.Errorf("%+v where a pipeline has nothing left and the planner says to restart: %v", o, restart)
		}
	}
}

// TestLinks: nodes that never had the fastest link are not broken.
func TestLinks(t *testing.T) {
	r := sound()
	r.X.On.Nodes[3].Out /= 2
	if drop := find(r.Options(Drop), Drop); drop.Why != "" {
		t.Errorf("%+v: expected a pipeline with a slow link to be left out", drop)
	}
	for _, n := range r.X.On.Nodes {
		r.Links = append(r.Links, n.Out)
	}
	if drop := find(r.Options(Drop), Drop); drop.Why == "" {
		t.Errorf("%+v: expected nothing broken", drop)
	}
}

// TestExpertsTogether: where copies have experts together, microbatches are shared out among groups of
// copies, a detour finds no like rank, and copies go by whole groups.
func TestExpertsTogether(t *testing.T) {
	r := sound()
	c := r.X.Model.Profile.(paralleltest.Chain)
	for i := range c {
		c[i].Mixture = parallel.Mixture{Count: 2, ParamKiB: c[i].ParamKiB / 2}
	}
	for i := range r.Now.Pipelines {
		for k := range r.Now.Pipelines[i].Ranks {
			r.Now.Pipelines[i].Ranks[k].Experts = 2
		}
	}
	r.Full = r.Now
	r.X.On.Speeds = slices.Repeat([]float64{1}, 9)
	r.X.On.Speeds[0] = .5 // of the first group
	r.X = parallel.NewSimulator(r.X.Model, r.X.On)
	route := find(r.Options(), Route)
	if route.Why != "" {
		t.Fatal(route.Why)
	}
	got := route.Plan.Pipelines
	if got[0].Microbatches != got[1].Microbatches || got[2].Microbatches != got[3].Microbatches || got[0].Microbatches >= got[2].Microbatches || route.Plan.Batch() != 64 {
		t.Errorf("%v: expected fewer in the first two, which have experts together", &route.Plan)
	}
	r.Away = []int32{0}
	all := r.Options()
	if why := find(all, Route).Why; !strings.Contains(string(why), "experts are spread") {
		t.Errorf("a detour: %q", why)
	}
	if why := find(all, Drop).Why; !strings.Contains(string(why), "expected multiples") { // of four copies one goes
		t.Errorf("a copy is dropped: %q", why)
	}
}

// TestMoreAgain: a run that had half of what its job asked for, as a device was lost before, and has ended, goes on
// with all where these are as fast as asked for; the same half is slower until the repair, and to wait for it as well.
func TestMoreAgain(t *testing.T) {
	r := &Run{Sound: unit.Second, Full: Of(8), Now: Of(4), Sizes: []Size{{Workers: 8, Step: unit.Second}, {Workers: 4, Step: 2 * unit.Second}, {Workers: 2, Step: 4 * unit.Second}},
		Left: unit.Day, Repair: unit.Hour, Start: unit.Minute}
	all := r.Options()
	if o := &all[0]; o.Name != Restart || len(o.Plan.Devices()) != 8 || o.Price != 60*8 {
		t.Errorf("%+v, expected a start on 8 that costs 8 devices a minute", o)
	}
	if swap := find(all, Swap); len(swap.Plan.Devices()) != 4 || swap.Step != 2*unit.Second || swap.Price <= all[0].Price {
		t.Errorf("%+v, expected the same 4 at half the pace", swap)
	}
	if wait := find(all, Wait); wait.Step != 2*unit.Second || len(wait.Plan.Devices()) != 4 || wait.Pause != unit.Hour+unit.Minute {
		t.Errorf("%+v, expected the same 4 after the repair", wait)
	}
}
