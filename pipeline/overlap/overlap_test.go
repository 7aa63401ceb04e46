package overlap_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/overlap/overlaptest"
)

// stage is three layers whose halves and forward pass take 10 us each, with 100, 200 and 300
// KiB of gradients; an exchange takes 5 us, and 0.1 us for a KiB.
func stage() *overlap.Costs {
	c := &overlap.Costs{Start: 5, MicrosPerKiB: .1}
	for i := range int64(3) {
		c.Layers = append(c.Layers, pipeline.Stage{Forward: 10, Input: 10, Weight: 10, ParamKiB: 100 * (i + 1), OutputKiB: 10, ActivationKiB: 100})
	}
	return c
}

// TestTime: what plans take, by hand.
func TestTime(t *testing.T) {
	for name, c := range map[string]struct {
		plan                overlap.Plan
		iteration, exchange unit.Duration
	}{
		"one message":       {overlap.Whole(3), 60 + 65 + 30, 65},
		"a message a layer": {overlap.Single(3), 20 + 35 + 25 + 15 + 30, 75},
		"two messages":      {overlap.Plan{Sizes: []int32{1, 2}}, 60 + 35 + 30, 70},
		// Scattered until 37, 52 and 67, gathered until 75, 88 and 106.
		"halves": {overlap.Plan{Sizes: []int32{1, 1, 1}, Split: true, Own: true}, 106 + 10, 75},
		// The third layer's is there at 55, the first one's at 70, the second one's at 95.
		"first two in reverse": {overlap.Plan{Sizes: []int32{1, 1, 1}, Reverse: 2, Own: true}, 95 + 20, 75},
	} {
		got, why := c.plan.Time(stage())
		if why != "" || got.Exchange != c.exchange || got.Iteration != c.iteration || got.Compute != 90 {
			t.Errorf("%s: %+v (%s), want %+v", name, got, why, c)
		}
	}
}

// slow is what a plan takes without a graph: each message waits for its gradients and for the
// message before, each forward pass for the one before and for the messages that it awaits.
func slow(p *overlap.Plan, c *overlap.Costs) unit.Duration {
	n := len(c.Layers)
	computed, clock := make([]unit.Duration, n), unit.Duration(0)
	for l := n - 1; l >= 0; l-- {
		clock += c.Layers[l].Input
		if l >= int(p.Reverse) {
			clock += c.Layers[l].Weight
			computed[l] = clock
		}
	}
	for l := range int(p.Reverse) {
		clock += c.Layers[l].Weight
		computed[l] = clock
	}
	order := p.Order(n)
	var channel unit.Duration
	arrived, first := make([]unit.Duration, n), []int{}
	takes, at := map[int]unit.Duration{}, 0
	for _, size := range p.Sizes {
		group := order[at : at+int(size)]
		at += int(size)
		kib, ready := int64(0), unit.Duration(0)
		for _, l := range group {
			kib += c.Layers[l].ParamKiB
			ready = max(ready, computed[l])
		}
		whole := c.Takes(kib)
		lowest := int(slices.Min(group))
		first, takes[lowest] = append(first, lowest), whole
		if p.Split {
			whole /= 2
		}
		channel = max(channel, ready) + whole
		for _, l := range group {
			arrived[l] = channel
		}
	}
	if p.Split {
		slices.Sort(first)
		for _, lowest := range first {
			channel += takes[lowest] - takes[lowest]/2
			at := 0
			for _, size := range p.Sizes {
				if group := order[at : at+int(size)]; int(slices.Min(group)) == lowest {
					for _, l := range group {
						arrived[l] = channel
					}
				}
				at += int(size)
			}
		}
	}
	for l := range n {
		if p.Own {
			clock = max(clock, arrived[l])
		} else {
			clock = max(clock, channel)
		}
		clock += c.Layers[l].Forward
	}
	return clock
}

// TestTimeIsSlow: the task graph says what the recurrence says, of all kinds of plans; and what
// computes or is sent is never longer than the iteration, nor shorter together.
func TestTimeIsSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	overlaptest.Stages(7, 500, func(c *overlap.Costs) {
		n := len(c.Layers)
		p := overlap.Plan{Reverse: int32(r.IntN(n + 1)), Split: r.IntN(2) == 0, Own: r.IntN(2) == 0}
		for left := n; left > 0; left -= int(p.Sizes[len(p.Sizes)-1]) {
			p.Sizes = append(p.Sizes, int32(1+r.IntN(left)))
		}
		got, why := p.Time(c)
		want := slow(&p, c)
		if why != "" || got.Iteration != want {
			t.Fatalf("%+v of %+v: %v (%s), want %v", p, c, got.Iteration, why, want)
		}
		if got.Overlap < 0 || got.Overlap > min(got.Compute, got.Exchange) || got.Exposed() < 0 {
			t.Fatalf("%+v", got)
		}
	})
}

// TestNothingToSend: layers without parameters send nothing and wait for nobody.
func TestNothingToSend(t *testing.T) {
	c := stage()
	for i := range c.Layers {
		c.Layers[i].ParamKiB = 0
	}
	for _, p := range []overlap.Plan{overlap.Whole(3), overlap.Single(3), {Sizes: []int32{3}, Split: true, Own: true}} {
		if got, why := p.Time(c); why != "" || got.Iteration != 90 || got.Exchange != 0 {
			t.Errorf("%+v: %+v (%s)", p, got, why)
		}
	}
	c.Layers[2].ParamKiB = 1000 // the first two compute while it is sent
	p := overlap.Plan{Sizes: []int32{3}, Own: true}
	if got, _ := p.Time(c); got.Iteration != 20+105+10 {
		t.Errorf("one layer of three has parameters: %+v", got)
	}
}

// TestMemory: gradients of outputs and activations wait for those of the weights.
func TestMemory(t *testing.T) {
	for reverse, want := range []int64{320, 320, 320, 330} {
		p := overlap.Single(3)
		p.Reverse = int32(reverse)
		if got, _ := p.Time(stage()); got.PeakKiB != want {
			t.Errorf("%d reversed: %d KiB at most, want %d", reverse, got.PeakKiB, want)
		}
	}
}

// TestRing: n replicas move (n-1)/n of the gradients twice, and begin 2(n-1) times.
func TestRing(t *testing.T) {
	link := pipeline.Link{Bandwidth: 8192, Latency: 7} // a KiB in a microsecond
	for replicas, want := range map[int]unit.Duration{0: 0, 1: 0, 2: 2*7 + 1000, 4: 6*7 + 1500} {
		c := overlap.Ring(nil, replicas, link)
		if got := c.Takes(1000); got != want {
			t.Errorf("%d replicas: %v, want %v", replicas, got, want)
		}
	}
	if endless := overlap.Ring(nil, 4, pipeline.Link{}); endless.Takes(1<<30) != 0 {
		t.Error("an exchange over an endless link takes time")
	}
}

// TestCheck: what cannot be is said.
func TestCheck(t *testing.T) {
	for want, spoil := range map[string]func(*overlap.Costs, *overlap.Plan){
		"0 layers, an exchange":      func(c *overlap.Costs, _ *overlap.Plan) { c.Layers = nil },
		"layer 1: passes of -1":      func(c *overlap.Costs, _ *overlap.Plan) { c.Layers[1].Forward = -1 },
		"layer 2: sizes -5":          func(c *overlap.Costs, _ *overlap.Plan) { c.Layers[2].ParamKiB = -5 },
		"and -1 per KiB":             func(c *overlap.Costs, _ *overlap.Plan) { c.MicrosPerKiB = -1 },
		"messages of [1 1] layers":   func(_ *overlap.Costs, p *overlap.Plan) { p.Sizes = []int32{1, 1} },
		"messages of [2 0 1] layers": func(_ *overlap.Costs, p *overlap.Plan) { p.Sizes = []int32{2, 0, 1} },
		"4 of them reversed":         func(_ *overlap.Costs, p *overlap.Plan) { p.Reverse = 4 },
	} {
		c, p := stage(), overlap.Single(3)
		spoil(c, &p)
		if _, why := p.Time(c); !strings.Contains(string(why), want) {
			t.Errorf("%q, want that it says %q", why, want)
		}
	}
}
