package parallel_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/strategies/pipeline/schemoe"
)

// mixed is a chain of layers of which three quarters of the weights and half of the passes are those of
// eight experts; tokens are 1 MiB of each sample.
func mixed(layers, batch int) *parallel.Model {
	m := model(layers, batch)
	c := m.Profile.(paralleltest.Chain)
	for i := range c {
		c[i].ParamKiB = 4096
		c[i].Mixture = parallel.Mixture{Count: 8, Forward: 500, Input: 500, Weight: 500, ParamKiB: 3072, SendKiB: 1024}
	}
	return m
}

// over is a plan of one rank for each of so many copies, with experts over some of them.
func over(m *parallel.Model, copies, experts int) parallel.Plan {
	s := parallel.Shape{Sequence: sequence, Samples: 1, Microbatches: m.Batch / copies, Tensor: 1, Ranks: 1, Copies: copies, Experts: experts}
	return s.Plan()
}

// TestExpertsByHand: what a device holds, how long tokens are on their way and what gradients take, each
// against what is written here.
func TestExpertsByHand(t *testing.T) {
	const layers, copies, micros = 2, 8, 4
	m := mixed(layers, copies*micros)
	m.State = parallel.State{Weights: 1, Gradients: 1, Optimizer: 2, Sharded: true}
	// Two devices of a node, 4 MiB in a millisecond between them; each has 1 MiB in a millisecond to other nodes.
	kind := parallel.Device{Name: "unit", TFlops: 1, Inside: parallel.Link{Bandwidth: 4 * 8192}}
	on := parallel.Even(kind, 4, 2, 2*8192)
	for _, c := range []struct {
		experts int
		trip    unit.Duration // of the tokens of a pass through a layer, there or back
		rings   unit.Duration // of the gradients of 2 MiB that all have, and of those of the experts
	}{
		// A ring of n moves 2 (n-1)/n of it. All eight: a node sends with both its links.
		{0, 0, 8 * 1024 * 7 * 2 / 8 / 2},
		{1, 0, 8 * 1024 * 7 * 2 / 8 / 2},
		// Half stays, the other half goes to the other of the node. Four copies of 3 MiB of experts, each a link of its own.
		{2, 128, 2*1024*7*2/8/2 + 3*1024*3*2/4},
		// A quarter to the other of the node, half to other nodes.
		{4, 64 + 512, 2*1024*7*2/8/2 + 3*512*2*1/2},
		{8, 32 + 768, 2 * 1024 * 7 * 2 / 8 / 2},
	} {
		p := over(m, copies, c.experts)
		r, why := parallel.NewSimulator(m, on).Simulate(&p)
		if why != "" {
			t.Fatal(why)
		}
		passes := unit.Duration(micros * layers * (3000 + 4*int(c.trip)))
		if got := r.Step - r.Exposed - r.Update; got != passes {
			t.Errorf("ep%d: passes of %d microseconds, %d by hand", c.experts, got, passes)
		}
		if off := r.Exposed - c.rings; off < 0 || off > 1 { // a part of a microsecond is a whole one
			t.Errorf("ep%d: an exchange of %d microseconds, %d by hand", c.experts, r.Exposed, c.rings)
		}
		e := int64(max(1, c.experts))
		// The moments are spread over the copies that have the same weights.
		held := layers*(1024+3072/e)*2 + layers*1024*2/copies + layers*3072/e*2*e/copies
		if got := r.Parts[0].Timing.Peak[0].ParamKiB; got != held {
			t.Errorf("ep%d: %d KiB held, %d by hand", c.experts, got, held)
		}
	}
}

// TestExpertsInChunks: in chunks, tokens are on their way while others are computed, and within a node while others
// go between nodes: here all that is computed is hidden, and all that stays in the node.
func TestExpertsInChunks(t *testing.T) {
	m := mixed(4, 32)
	on := parallel.Even(parallel.Device{Name: "unit", TFlops: 1, Inside: parallel.Link{Bandwidth: 4 * 8192}}, 4, 2, 2*8192)
	p := over(m, 8, 4)
	whole, chunks := parallel.NewSimulator(m, on), parallel.NewSimulator(m, on)
	chunks.Tokens = schemoe.Scheduler{}
	a, why := whole.Simulate(&p)
	b, not := chunks.Simulate(&p)
	if why+not != "" || a.Step-b.Step != 4*4*2*(500+2*64) {
		t.Errorf("%v and in chunks %v %s: expected less by what the experts compute and a node keeps", a.Step, b.Step, why+not)
	}
	if again := chunks.Like(m, on); again.Tokens == nil {
		t.Error("a simulator like one with chunks has none")
	}
}

// TestExpertsOnce: over one copy is as without a word about experts, byte for byte.
func TestExpertsOnce(t *testing.T) {
	m := mixed(4, 32)
	on := parallel.Even(parallel.Device{Name: "unit", TFlops: 1, Inside: parallel.Link{Bandwidth: 8192}}, 4, 2, 8192)
	plain := mixed(4, 32)
	for i := range plain.Profile.(paralleltest.Chain) {
		plain.Profile.(paralleltest.Chain)[i].Mixture = parallel.Mixture{}
	}
	g := parallel.Grid{Sequences: sequences}
	all, why := g.Search(parallel.NewSimulator(m, on), parallel.Limits{Experts: 1})
	want, not := g.Search(parallel.NewSimulator(plain, on), parallel.Limits{})
	if why+not != "" || len(all) != len(want) {
		t.Fatalf("%d plans and %d %s", len(all), len(want), why+not)
	}
	for i := range all {
		a, _ := all[i].Plan.Short()
		b, _ := want[i].Plan.Short()
		if string(a) != string(b) || strings.Contains(string(a), "experts") || !reflect.DeepEqual(all[i].Result, want[i].Result) {
			t.Errorf("%s takes %v, without experts %s %v", a, all[i].Result.Step, b, want[i].Result.Step)
		}
	}
}

// TestExpertsKept: a plan says over how many copies, in its name and when it is kept.
func TestExpertsKept(t *testing.T) {
	p := over(mixed(2, 8), 8, 4)
	if p.String() != "tp1 ep4 pp1 dp8 1f1b m1" {
		t.Errorf("%s", &p)
	}
	text, err := p.Short()
	var s parallel.Shape
	if err != nil || json.Unmarshal([]byte(strings.Replace(string(text), `"sequence":"1f1b",`, "", 1)), &s) != nil || s.Experts != 4 {
		t.Errorf("%s %v: expected experts over 4", text, err)
	}
	s.Sequence = sequence
	if again := s.Plan(); !reflect.DeepEqual(again.Pipelines, p.Pipelines) {
		t.Errorf("%+v is read as %+v", p, again)
	}
}

// TestExpertsRefused: all that is wrong with where experts stand is said at once.
func TestExpertsRefused(t *testing.T) {
	on := parallel.Even(parallel.Device{Name: "unit", TFlops: 1}, 4, 3, 0)
	twelve := over(mixed(2, 12), 12, 8)
	unlike := over(mixed(2, 12), 12, 4)
	unlike.Pipelines[3].Ways = []int8{1, 1}
	for _, c := range []struct {
		plan parallel.Plan
		of   *parallel.Model
		want []string
	}{
		{twelve, mixed(2, 12), []string{"over 8 of 12 copies: expected a divisor of the copies"}},
		{over(mixed(2, 12), 12, 12), mixed(2, 12), []string{"8 experts over 12 copies: expected a divisor of the experts"}},
		{over(mixed(2, 12), 12, 5), mixed(2, 12), []string{"over 5 of 12 copies", "8 experts over 5 copies"}},
		{over(mixed(2, 12), 12, 4), mixed(2, 12), []string{"over 4 copies of 1 devices each: expected as many on each of their nodes"}},
		{over(mixed(2, 12), 12, 4), model(2, 12), []string{"0 experts over 4 copies"}},
		{over(mixed(2, 12), 12, -4), mixed(2, 12), []string{"over -4 of 12 copies", "8 experts over -4 copies"}},
		{unlike, mixed(2, 12), []string{"1 of 12 pipelines are unlike"}},
	} {
		why := c.plan.Check(c.of, on)
		for _, want := range c.want {
			if !strings.Contains(string(why), want) {
				t.Errorf("%v: %q, want %q in it", &c.plan, why, want)
			}
		}
	}
}

// TestExpertsLost: experts of a lost device are with the copies that have the same ones; where there is no
// other group of copies they are nowhere.
func TestExpertsLost(t *testing.T) {
	m := mixed(1, 8)
	x := parallel.NewSimulator(m, parallel.Even(parallel.Device{Name: "unit", TFlops: 1}, 5, 1, 8192))
	for _, c := range []struct {
		experts int
		want    []parallel.Copy
	}{{2, []parallel.Copy{{From: 1, To: 4, KiB: 1024}, {From: 1, To: 4, KiB: 1536}}}, {4, nil}} {
		before, after := over(m, 4, c.experts), over(m, 4, c.experts)
		after.Pipelines[3].Ranks[0].Devices[0] = 4
		copies, why := x.Copies(&before, &after, []int32{3})
		if c.want == nil {
			if !strings.Contains(string(why), "no device that is left") {
				t.Errorf("ep%d: %v %q, expected that nobody has the experts", c.experts, copies, why)
			}
			continue
		}
		// What all have comes from whom it may, the experts from the one that has the same.
		if len(copies) != 2 || copies[0].KiB != c.want[0].KiB || copies[1] != c.want[1] {
			t.Errorf("ep%d: %+v %q, want %+v", c.experts, copies, why, c.want)
		}
	}
}

// TestExpertsGrid: the search finds a plan where there is one, and hardly ever one that is slower than the
// best over all copies that can have experts together.
func TestExpertsGrid(t *testing.T) {
	rng, slow, none, spread := rand.New(rand.NewPCG(3, 4)), 0, 0, 0
	const draws = 60
	for i := range draws {
		m, on := drawn(rng)
		c := m.Profile.(paralleltest.Chain)
		for l := range c {
			if rng.IntN(3) > 0 {
				c[l].ParamKiB *= 4
				c[l].Mixture = parallel.Mixture{Count: 4, Forward: c[l].Forward / 2, Input: c[l].Input / 2, Weight: c[l].Weight / 2,
					ParamKiB: c[l].ParamKiB * 7 / 8, SendKiB: int64(64 << rng.IntN(5))}
			}
		}
		want := every(parallel.NewSimulator(m, on))
		g := parallel.Grid{Sequences: sequences}
		all, why := g.Search(parallel.NewSimulator(m, on), parallel.Limits{})
		switch {
		case (why == "") != (want < unit.Forever):
			t.Errorf("draw %d: %q, and the best of all takes %v", i, why, want)
		case why != "":
			none++
		case float64(all[0].Result.Step) > 1.001*float64(want):
			slow++
			t.Logf("draw %d: %v takes %v, the best of all %v", i, &all[0].Plan, all[0].Result.Step, want)
		case all[0].Plan.Experts() > 1:
			spread++
		}
	}
	t.Logf("%d of %d have no plan, %d are slower than the best, %d spread experts", none, draws, slow, spread)
	if slow > draws/30 || none > draws/2 || spread < draws/10 {
		t.Errorf("%d of %d slower than the best of all, %d without a plan, %d spread: expected 3 %% at most, half at most, and some", slow, draws, none, spread)
	}
}
