package parallel_test

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"github.com/musterdl/muster/strategies/pipeline/wfbp"
)

var sequence = parallel.Sequence{Name: "1f1b", Order: onefoneb.Ordering{}}

func model(layers, batch int) *parallel.Model {
	c := make(paralleltest.Chain, layers)
	for i := range c {
		c[i] = parallel.Layer{Forward: 1000, Input: 1000, Weight: 1000, ParamKiB: 1024, ActivationKiB: 1024, OutputKiB: 1024, GFlop: 1}
	}
	return &parallel.Model{Name: "chain", Profile: c, Batch: batch, State: parallel.State{Weights: 1, Gradients: 1}}
}

func shape(samples, microbatches, tensor, ranks, copies int, cuts []int32, ways []int8) parallel.Plan {
	s := parallel.Shape{Sequence: sequence, Samples: samples, Microbatches: microbatches, Tensor: tensor, Ranks: ranks, Copies: copies, Cuts: cuts, Ways: ways}
	return s.Plan()
}

// TestSimulate: a pipeline alone takes (m+p-1) T; copies of it add the exchange of a stage's
// gradients and nothing else.
func TestSimulate(t *testing.T) {
	kind := parallel.Device{Name: "unit", TFlops: 1}
	for _, copies := range []int{1, 2, 4} {
		m := model(8, 8*copies)
		x := parallel.NewSimulator(m, parallel.Even(kind, 4*copies, 1, 8192))
		p := shape(1, 8, 1, 4, copies, []int32{2, 4, 6}, nil)
		r, why := x.Simulate(&p)
		if why != "" {
			t.Fatal(why)
		}
		send := unit.Duration(1024) // 1 MiB at 8192 Mbps
		pipelined := r.Step - r.Exposed
		if least := unit.Duration((8+3)*2*3000) + 6*send; pipelined < least {
			t.Errorf("%d copies: %d microseconds without the exchange, want %d at least", copies, pipelined, least)
		}
		if want := unit.Duration(2*(copies-1)) * 2 * send / unit.Duration(copies); r.Exposed != want {
			t.Errorf("%d copies: %d microseconds exposed, want %d", copies, r.Exposed, want)
		}
		if r.MFU <= 0 || r.MFU > 1 || r.Bubble <= 0 || r.Bubble >= 1 {
			t.Errorf("MFU %g, bubble %g: expected parts of one", r.MFU, r.Bubble)
		}
	}
}

// TestGradients: a single exchange takes what it takes without a merger; one message for each layer
// exposes the last one alone where a layer's pass is longer than its message, and the rest is told as
// hidden. Of unlike copies no more is hidden than the faster one computes.
func TestGradients(t *testing.T) {
	m := model(8, 16)
	on := parallel.Even(parallel.Device{Name: "unit", TFlops: 1}, 4, 1, 8192)
	p := shape(1, 8, 1, 2, 2, []int32{4}, nil)
	step := func(g overlap.Merger) parallel.Result {
		x := parallel.NewSimulator(m, on)
		x.Gradients = g
		r, why := x.Simulate(&p)
		if why != "" {
			t.Fatal(why)
		}
		return r
	}
	const message = 1024 // 1 MiB from each of two to the other at 8192 Mbps
	none, whole, single := step(nil), step(wfbp.Whole{}), step(wfbp.Single{})
	if none.Exposed != 4*message || whole.Exposed != none.Exposed || single.Exposed != message {
		t.Errorf("%d, %d and %d microseconds exposed, want 4096, 4096 and 1024", none.Exposed, whole.Exposed, single.Exposed)
	}
	if hidden := single.Overlap().ComputeTransfer - none.Overlap().ComputeTransfer; hidden != 3*message || single.Step != none.Step-hidden {
		t.Errorf("%d microseconds hidden of each rank: want 3072, and as much off the step", hidden)
	}
	on.Speeds = []float64{1, .01, 1, .01} // the last layers' backward passes take 2 ms here, 200 ms there
	if got := step(wfbp.Single{}).Exposed; got != message {
		t.Errorf("%d microseconds exposed where one copy is slow, want 1024", got)
	}
	on.Kinds[0].Inside = parallel.Link{} // endless, but the nodes have their uplink
	on.Nodes[0].Out = 1024
	if slow, all := step(wfbp.Single{}).Exposed, step(nil).Exposed; slow >= all || slow < all-3*2000 {
		t.Errorf("%d of %d microseconds exposed over a slow link: want what three layers' passes do not hide", slow, all)
	}
}

// TestRefused: what is no plan is refused in words that say why.
func TestRefused(t *testing.T) {
	m := model(8, 8)
	on := parallel.Even(parallel.Device{Name: "unit", TFlops: 1, Memory: 5}, 2, 2, 0)
	for _, c := range []struct {
		plan parallel.Plan
		want string
	}{
		{shape(1, 4, 1, 2, 1, []int32{4}, nil), "expected the batch of 8"},
		{shape(1, 8, 2, 4, 1, []int32{2, 4, 6}, nil), "not there or taken twice"},
		{shape(1, 8, 4, 1, 1, nil, nil), "over several nodes"},
		{shape(1, 8, 1, 2, 1, []int32{2, 4}, nil), "expected 1"},
		{shape(1, 8, 1, 2, 1, []int32{4}, nil), "needs"},
		{shape(3, 8, 1, 2, 1, []int32{4}, nil), "batch"},
	} {
		if _, why := parallel.NewSimulator(m, on).Simulate(&c.plan); !strings.Contains(string(why), c.want) {
			t.Errorf("%v: %q, want %q in it", &c.plan, why, c.want)
		}
	}
}

// TestPareto: of candidates none is worse than another in both.
func TestPareto(t *testing.T) {
	m := model(8, 8)
	x := parallel.NewSimulator(m, parallel.Even(parallel.Device{Name: "unit", TFlops: 1}, 4, 1, 0))
	var all []parallel.Candidate
	for _, cut := range []int32{1, 2, 3, 4, 5, 6, 7} {
		for _, way := range []int8{0, 1} {
			p := shape(1, 8, 1, 2, 1, []int32{cut}, []int8{way, way, way, way, way, way, way, way})
			r, why := x.Simulate(&p)
			if why != "" {
				t.Fatal(why)
			}
			all = append(all, parallel.Candidate{Plan: p, Result: r})
		}
	}
	kept := parallel.Pareto(all)
	for i, c := range kept {
		for _, o := range all {
			if o.Result.Step < c.Result.Step && o.Result.PeakKiB() < c.Result.PeakKiB() {
				t.Errorf("candidate %d, %v: %v is better in both", i, &c.Plan, &o.Plan)
			}
		}
	}
	if len(kept) < 1 || len(kept) == len(all) {
		t.Errorf("%d of %d kept", len(kept), len(all))
	}
}

// TestRacks: between nodes of different racks a device has its part of the racks' uplinks, and within one that of
// its node's.
func TestRacks(t *testing.T) {
	on := parallel.Even(parallel.Device{Name: "unit", TFlops: 1}, 4, 2, 8000)
	on.Racks = []unit.Mbps{4000, 0}
	on.Nodes[2].Rack, on.Nodes[3].Rack = 1, 1
	on.Index()
	for _, c := range []struct {
		from, to []int32
		want     unit.Mbps
	}{{[]int32{0}, []int32{2}, 4000}, {[]int32{0}, []int32{4}, 1000}, {[]int32{0, 1}, []int32{4, 5}, 2000}, {[]int32{4}, []int32{6}, 4000}} {
		if got := on.Between(c.from, c.to).Bandwidth; got != c.want {
			t.Errorf("from %v to %v: %d Mbps, want %d", c.from, c.to, got, c.want)
		}
	}
	if left, _ := on.Without([]int32{1}); left.Between([]int32{0}, []int32{3}).Bandwidth != 4000/3 {
		t.Errorf("%d Mbps where three are left: expected a third", left.Between([]int32{0}, []int32{3}).Bandwidth)
	}
}

// TestSent: what crosses nodes is counted, by hand: activations and their gradients between stages, gradients
// around a ring of copies, tokens to experts and back.
func TestSent(t *testing.T) {
	kind := parallel.Device{Name: "unit", TFlops: 1}
	for _, c := range []struct {
		m    *parallel.Model
		plan parallel.Plan
		want int64
	}{
		{model(8, 8), shape(1, 8, 1, 2, 1, []int32{4}, nil), 8 * 1024}, // of each microbatch 1 MiB to the other node
		{model(8, 8), shape(1, 4, 1, 1, 2, nil, nil), 8 * 1024},        // 2 (n-1)/n of 8 MiB
		{mixed(2, 8), over(mixed(2, 8), 2, 2), 2*1024 + 2*4*4*512},     // the 1 MiB that both have, and half of the tokens
	} {
		x := parallel.NewSimulator(c.m, parallel.Even(kind, 2, 1, 8192))
		all, why := x.Candidates(c.plan)
		if why != "" {
			t.Fatal(why)
		}
		for node, got := range x.Sent(&all[0]) {
			if got != c.want {
				t.Errorf("%v: node %d sends %d KiB, %d by hand", &c.plan, node, got, c.want)
			}
		}
	}
}
