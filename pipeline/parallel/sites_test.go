package parallel_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
)

// twoSites are two of so many nodes of one device.
func twoSites(r *rand.Rand, nodes int) *parallel.Devices {
	far := parallel.Link{Bandwidth: unit.Mbps(10 + r.IntN(2000)), Latency: unit.Duration(r.IntN(5000))}
	on := &parallel.Devices{Kinds: []parallel.Device{{Name: "unit", TFlops: 1}}, Sites: [][]parallel.Link{{{}, far}, {far, {}}}}
	for i := range 2 * nodes {
		on.Nodes = append(on.Nodes, parallel.Node{Count: 1, Site: int32(i / nodes), Out: 10_000})
	}
	return on.Index()
}

// TestSitesByBruteForce: of two sites, which carries what is as good as the best of all ways to put
// the ranks of all pipelines on the devices: stages that go on, or copies that exchange gradients.
func TestSitesByBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	cases := []struct{ nodes, ranks, copies int }{{2, 2, 2}, {2, 4, 1}, {2, 1, 4}, {3, 2, 3}}
	together, apart := 0, 0
	for range 120 {
		size := cases[r.IntN(len(cases))]
		var layers paralleltest.Chain
		layer := parallel.Layer{Forward: 1000, Input: 1000, Weight: 1000, ParamKiB: 1 << r.IntN(14), ActivationKiB: 1, OutputKiB: 1 << r.IntN(12), GFlop: 1}
		for range 4 {
			layers = append(layers, layer)
		}
		x := parallel.NewSimulator(&parallel.Model{Profile: layers, Batch: 4 * size.copies, State: parallel.MixedAdam}, twoSites(r, size.nodes))
		found, why := (&parallel.Grid{Sequences: []parallel.Sequence{paralleltest.OneFOneB}}).Search(x, parallel.Limits{Tensor: 1, Ranks: size.ranks, Copies: size.copies, Samples: 1})
		if why != "" {
			t.Fatal(why)
		}
		s := parallel.Shape{Sequence: paralleltest.OneFOneB, Samples: 1, Microbatches: 4, Tensor: 1, Ranks: size.ranks, Copies: size.copies}
		if s.Cuts, why = x.Cuts(&s, nil); why != "" {
			t.Fatal(why)
		}
		flat, best, plan := s.Plan(), unit.Forever, ""
		each(2*size.nodes, func(devices []int32) {
			other := flat.On(devices)
			if result, why := x.Simulate(&other); why == "" && result.Step < best {
				best, plan = result.Step, fmt.Sprint(devices)
			}
		})
		if found[0].Result.Step != best {
			t.Errorf("%+v over %+v: %v, and on %s %v", size, x.On.Sites[0][1], found[0].Result.Step, plan, best)
		}
		if size.ranks == 2 && size.copies == 2 {
			if shape, like := found[0].Plan.Shape(); like && shape.Apart == 2 {
				apart++
			} else {
				together++
			}
		}
	}
	if together == 0 || apart == 0 {
		t.Errorf("copies apart in %d cases and not in %d: expected both", apart, together)
	}
}

// each goes through the orders of so many devices.
func each(n int, see func([]int32)) {
	devices := make([]int32, n)
	for i := range devices {
		devices[i] = int32(i)
	}
	var swap func(at int)
	swap = func(at int) {
		if at == n {
			see(devices)
			return
		}
		for i := at; i < n; i++ {
			devices[at], devices[i] = devices[i], devices[at]
			swap(at + 1)
			devices[at], devices[i] = devices[i], devices[at]
		}
	}
	swap(0)
}

// TestApart: copies stand in groups that end where sites do, and a plan knows its groups again.
func TestApart(t *testing.T) {
	on := &parallel.Devices{Kinds: []parallel.Device{{Name: "unit", TFlops: 1}}, Sites: make([][]parallel.Link, 2)}
	for site, nodes := range []int{2, 6} {
		for range nodes {
			on.Nodes = append(on.Nodes, parallel.Node{Count: 2, Site: int32(site)})
		}
	}
	on.Index()
	if got := on.Apart(16, 8); !slices.Equal(got, []int{2, 4}) {
		t.Errorf("%v, expected halves of 8 and groups of 4 devices", got)
	}
	if got := on.Apart(4, 4); len(got) > 0 {
		t.Errorf("%v on one site", got)
	}
	s := parallel.Shape{Sequence: paralleltest.OneFOneB, Samples: 1, Microbatches: 2, Tensor: 1, Ranks: 4, Copies: 4, Apart: 4, Cuts: []int32{1, 2, 3}}
	plan := s.Plan()
	again, like := plan.Shape()
	if !like || again.Apart != 4 {
		t.Errorf("%+v, %v", again, like)
	}
	for _, one := range plan.Pipelines {
		for _, rank := range one.Ranks {
			if on.Nodes[on.NodeOf(rank.Devices[0])].Site != on.Nodes[on.NodeOf(one.Ranks[0].Devices[0])].Site {
				t.Errorf("%+v leaves its site", one)
			}
		}
	}
}
