package oobleck

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"pgregory.net/rapid"
)

func TestConform(t *testing.T) {
	scheduletest.ConformPart(t, parallel.PlannerPart, func() any { return New(Default()) })
}

func drawn(t *rapid.T, layers, nodes, inNode, batch int) *parallel.Simulator {
	c := make(paralleltest.Chain, layers)
	for i := range c {
		d := func(name string) unit.Duration {
			return unit.Duration(rapid.IntRange(100, 2000).Draw(t, fmt.Sprint(name, i)))
		}
		c[i] = parallel.Layer{Forward: d("F"), Input: d("I"), Weight: d("W"), ParamKiB: 1024, ActivationKiB: 64, OutputKiB: 8, GFlop: 1}
	}
	m := &parallel.Model{Name: "drawn", Profile: c, Batch: batch, State: parallel.State{Weights: 1, Gradients: 1, Optimizer: 2}}
	least := int64(rapid.IntRange(1, min(3, nodes)).Draw(t, "least"))
	kind := parallel.Device{Name: "unit", TFlops: 1, Memory: unit.MiB(4*int64(layers)/least/int64(inNode)) + 6, Inside: parallel.Link{Bandwidth: 100_000}}
	return parallel.NewSimulator(m, parallel.Even(kind, nodes, inNode, 10_000))
}

// TestSearch: of the ways to divide layers and the devices of nodes among stages, none beats the
// search in the time of a step by the sum of the stages and the slowest, and none beats the
// template by a twentieth in simulation.
func TestSearch(t *testing.T) {
	worst := 1.
	draws.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 3).Draw(t, "nodes")
		x := drawn(t, rapid.IntRange(2, 6).Draw(t, "layers"), nodes, rapid.SampledFrom([]int{1, 2}).Draw(t, "devices"), 16)
		f, why := NewFamily(x, Setting{Sequence: parallel.Sequence{Name: "1f1b", Order: onefoneb.Ordering{}}, Samples: 1, Nodes: nodes})
		if why != "" {
			t.Skip(string(why))
		}
		s := newSearch(f, x)
		s.extend(nodes * f.inNode)
		through, best := s.form(t, f), f.Of(nodes)
		if best == nil {
			return
		}
		var least, simulated float64
		f.every(nodes, func(all *Template) {
			if f.time(all, nodes) != "" {
				return
			}
			if got := all.takes(float64(f.batches)); simulated == 0 || got < simulated {
				simulated = got
			}
		}, s, func(form float64) {
			if least == 0 || form < least {
				least = form
			}
		})
		if least != through {
			t.Fatalf("sum and slowest %g, brute force %g", through, least)
		}
		worst = max(worst, best.takes(float64(f.batches))/simulated)
	})
	if worst > 1.05 {
		t.Errorf("a template takes %.4f times as long as the best of all, want 1.05 at most", worst)
	}
	t.Logf("at most %.4f times the best of all", worst)
}

// form is the least sum and microbatches-1 times the slowest stage that the search found.
func (s *search) form(t *rapid.T, f *Family) (least float64) {
	for _, d := range s.fronts[len(s.fronts)-1][f.layers] {
		if got := float64(d.through) + float64(f.batches-1)*float64(d.slowest); least == 0 || got < least {
			least = got
		}
	}
	return least
}

// every tries all divisions, and tells the form of their cost.
func (f *Family) every(nodes int, try func(*Template), s *search, form func(float64)) {
	var sizes []int
	var cuts []int32
	var grow func(devices, layers int)
	grow = func(devices, layers int) {
		if devices == 0 {
			if layers == f.layers {
				through, slowest, at := unit.Duration(0), unit.Duration(0), 0
				for i, size := range sizes {
					first, end := 0, f.layers
					if i > 0 {
						first = int(cuts[i-1])
						through += s.link(at, size)(first)
					}
					if i < len(cuts) {
						end = int(cuts[i])
					}
					takes := s.stage(first, end, size)
					if takes == unit.Forever {
						return
					}
					through, slowest, at = through+takes, max(slowest, takes), at+size
				}
				form(float64(through) + float64(f.batches-1)*float64(slowest))
				try(&Template{Sizes: slices.Clone(sizes), Cuts: slices.Clone(cuts)})
			}
			return
		}
		done := nodes*f.inNode - devices
		for size := 1; size <= f.inNode; size++ {
			if f.inNode%size != 0 || (done+size)%size != 0 || done%f.inNode+size > f.inNode {
				continue
			}
			for end := layers + 1; end <= f.layers; end++ {
				sizes = append(sizes, size)
				if end < f.layers {
					cuts = append(cuts, int32(end))
				}
				grow(devices-size, end)
				sizes = sizes[:len(sizes)-1]
				if end < f.layers {
					cuts = cuts[:len(cuts)-1]
				}
			}
		}
	}
	grow(nodes*f.inNode, 0)
}

// TestCoverage: sizes from the least to one below twice it make up every larger number of nodes,
// in pipelines of one or two sizes; with one size fewer some are missed.
func TestCoverage(t *testing.T) {
	for least := 1; least <= 12; least++ {
		f := &Family{Least: least, batches: 1000, Setting: Setting{Nodes: 60}}
		for range least {
			f.Templates = append(f.Templates, &Template{More: 1})
		}
		for nodes := least; nodes <= 60; nodes++ {
			best := f.mixes(nodes, nodes/least, 1)
			if len(best) == 0 {
				t.Errorf("templates of %d to %d nodes: none of %d pipelines on %d nodes", least, 2*least-1, nodes/least, nodes)
			}
		}
	}
	f := &Family{Least: 5, batches: 100, Templates: []*Template{{More: 1}, {More: 1}, {More: 1}, {More: 1}}}
	if got := f.mixes(9, 1, 1); len(got) > 0 {
		t.Errorf("templates of 5 to 8 nodes on 9: %v, want none", got)
	}
}

// TestMixes: of all mixes of templates, those of one or two sizes are within a twentieth of the
// best.
func TestMixes(t *testing.T) {
	worst := 1.
	draws.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(4, 14).Draw(t, "nodes")
		x := drawn(t, rapid.IntRange(6, 12).Draw(t, "layers"), nodes, 1, 64)
		f, why := NewFamily(x, Setting{Sequence: parallel.Sequence{Name: "1f1b", Order: onefoneb.Ordering{}}, Samples: 1, Nodes: nodes})
		if why != "" {
			t.Skip(string(why))
		}
		best := f.mixes(nodes, 1, 1)
		if len(best) == 0 {
			return
		}
		got, least := f.slowest(best[0], f.share(best[0])), 0.
		var sizes []int
		var grow func(left, from int)
		grow = func(left, from int) {
			if left == 0 {
				if takes := f.slowest(sizes, f.share(sizes)); least == 0 || takes < least {
					least = takes
				}
			}
			for n := from; n <= left; n++ {
				if f.Of(n) != nil {
					sizes = append(sizes, n)
					grow(left-n, n)
					sizes = sizes[:len(sizes)-1]
				}
			}
		}
		grow(nodes, 1)
		worst = max(worst, got/least)
	})
	if worst > 1.05 {
		t.Errorf("%.4f times the best of all mixes", worst)
	}
	t.Logf("at most %.4f times the best of all mixes", worst)
}

// TestShare: no other way to share microbatches is done earlier.
func TestShare(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		f := &Family{Least: 1, batches: rapid.IntRange(3, 12).Draw(t, "microbatches")}
		for i := range 3 {
			f.Templates = append(f.Templates, &Template{First: rapid.Float64Range(0, 10).Draw(t, fmt.Sprint("first", i)), More: rapid.Float64Range(1, 9).Draw(t, fmt.Sprint("more", i))})
		}
		sizes := []int{1, 2, 3}
		shares := f.share(sizes)
		sum, least := 0, 1e300
		for _, n := range shares {
			sum += n
		}
		for a := 1; a < f.batches; a++ {
			for b := 1; a+b < f.batches; b++ {
				least = min(least, f.slowest(sizes, []int{a, b, f.batches - a - b}))
			}
		}
		if got := f.slowest(sizes, shares); sum != f.batches || slices.Min(shares) < 1 || got > least*(1+1e-9) {
			t.Fatalf("%v take %g, brute force %g", shares, got, least)
		}
	})
}

// TestFailures: through failures each layer keeps an owner, each node is used, the batch stays,
// and what is copied is what the new owners lacked.
func TestFailures(t *testing.T) {
	sequences := 300
	if os.Getenv("MUSTER_LONG") != "" {
		sequences = 10_000
	}
	if broken := Failures(onefoneb.Ordering{}, 1, sequences); broken != (Broken{Sequences: sequences, Recoveries: broken.Recoveries}) || broken.Recoveries < sequences {
		t.Errorf("%+v", broken)
	}
}

// TestSharedNodes: a plan whose pipelines share a node is none of templates, and is told so.
func TestSharedNodes(t *testing.T) {
	c := make(paralleltest.Chain, 4)
	for i := range c {
		c[i] = parallel.Layer{Forward: 100, Input: 100, Weight: 100, ParamKiB: 8, ActivationKiB: 8, OutputKiB: 8, GFlop: 1}
	}
	m := &parallel.Model{Name: "four", Profile: c, Batch: 8, State: parallel.State{Weights: 1}}
	x := parallel.NewSimulator(m, parallel.Even(parallel.Device{Name: "unit", TFlops: 1}, 2, 2, 0))
	s := parallel.Shape{Sequence: parallel.Sequence{Name: "1f1b", Order: onefoneb.Ordering{}}, Samples: 1, Microbatches: 4, Tensor: 1, Ranks: 2, Copies: 2, Cuts: []int32{2}}
	plan := s.Plan()
	if _, why := New(Default()).Recover(x, &plan, []int32{0, 1}, parallel.Limits{}); why != "its pipelines share nodes: expected a plan of templates, each on nodes of its own" {
		t.Errorf("%q", why)
	}
}
