package dtfm

import (
	_ "embed" // for Claim
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/pipeline/shape"
)

// Claim is what is expected of the search, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// scenario is 64 peers as DT-FM's code has them: from which to which a link is how slow.
type scenario struct {
	name string
	link func(a, b int) (delayMs, gbps float64)
}

// within is a peer's part of its fourth or its eighth of all.
func within(peers, parts, peer int) int { return peer * parts / peers }

// either is one figure inside of a part, another between two.
func either(inside bool, near, far float64) float64 {
	if inside {
		return near
	}
	return far
}

// scenarios are the five published ones: instances of eight GPUs; spot instances of four beside
// single GPUs; two universities; four regions; eight cities of the world.
var scenarios = []scenario{
	{"datacenter", func(a, b int) (float64, float64) {
		return 0, either(a/8 == b/8, 100, 3.125)
	}},
	{"spot", func(a, b int) (float64, float64) {
		return 0, either(a/4 == b/4 && a < 32, 100, 1.25)
	}},
	{"universities", func(a, b int) (float64, float64) {
		alike := within(64, 2, a) == within(64, 2, b)
		return either(alike, 1, 11), either(alike, 5, 1.12)
	}},
	{"regions", func(a, b int) (float64, float64) { return between(regional, within(64, 4, a), within(64, 4, b)) }},
	{"world", func(a, b int) (float64, float64) { return between(cities, within(64, 8, a), within(64, 8, b)) }},
}

// pair is two places, their delay in ms and their bandwidth in Gbit/s.
type pair struct {
	a, b        int
	delay, gbps float64
}

// regional is Virginia, Oregon, California and Ohio; cities are Oregon, Virginia, Ohio, Tokyo,
// Seoul, London, Frankfurt and Ireland, as measured between regions of AWS (config.py of DS3Lab/DT-FM).
var (
	regional = []pair{{0, 1, 67, 1.15}, {0, 2, 59, 1.05}, {0, 3, 11, 1.12}, {1, 2, 12, 1.25}, {1, 3, 49, 1.10}, {2, 3, 52, 1.02}}
	cities   = []pair{
		{0, 1, 67, .79}, {0, 2, 49, 1.10}, {0, 3, 96, .523}, {0, 4, 124, .46}, {0, 5, 136, .42}, {0, 6, 143, .404}, {0, 7, 124, .482},
		{1, 2, 11, 1.12}, {1, 3, 143, .524}, {1, 4, 172, .5}, {1, 5, 76, 1.16}, {1, 6, 90, 1.02}, {1, 7, 67, 1.05},
		{2, 3, 130, .694}, {2, 4, 159, .529}, {2, 5, 86, 1.05}, {2, 6, 99, .799}, {2, 7, 77, 1.14},
		{3, 4, 34, 1.10}, {3, 5, 210, .366}, {3, 6, 223, .36}, {3, 7, 199, .465},
		{4, 5, 238, .342}, {4, 6, 235, .358}, {4, 7, 228, .335}, {5, 6, 14, 1.14}, {5, 7, 12, 1.09}, {6, 7, 24, 1.08},
	}
)

// between is a link of a table; inside of a place it is 5 ms and 2 Gbit/s.
func between(table []pair, a, b int) (delayMs, gbps float64) {
	for _, p := range table {
		if p.a == min(a, b) && p.b == max(a, b) {
			return p.delay, p.gbps
		}
	}
	return 5, 2
}

// devices are the 64 peers, each a site of its own, so that every two have their own link.
func (s *scenario) devices() (*parallel.Devices, parallel.Why) {
	kind, why := shape.Device("V100-32GB", shape.Half)
	on := &parallel.Devices{Kinds: []parallel.Device{kind}}
	for a := range 64 {
		on.Nodes = append(on.Nodes, parallel.Node{Count: 1, Site: int32(a)})
		links := make([]parallel.Link, 64)
		for b := range links {
			if delay, gbps := s.link(a, b); a != b {
				links[b] = parallel.Link{Bandwidth: unit.Mbps(gbps * 1000), Latency: unit.Duration(delay * 1000)}
			}
		}
		on.Sites = append(on.Sites, links)
	}
	return on.Index(), why
}

// Measure tells what the search's assignments of a GPT of 1.3 billion parameters cost in the five
// scenarios, over the median of 100 random ones, by the objective and simulated.
func Measure(seed uint64) map[string]float64 {
	profile, whys := shape.New(shape.Shape{Name: "gpt-3-xl", Blocks: 24, Hidden: 2048, FFN: 8192, Heads: 16, Sequence: 2048, Vocabulary: 50257,
		Positions: 2048, Tied: true, Bias: true, Dropout: true}, shape.Half)
	if len(whys) > 0 {
		panic(whys[0]) // it is a legal shape
	}
	// Eight stages and eight copies, as published: the search has no choice of sizes here.
	r := map[string]float64{}
	for i := range scenarios {
		on, why := scenarios[i].devices()
		x := parallel.NewSimulator(&parallel.Model{Name: "gpt-3-xl", Profile: profile, Batch: 488, State: parallel.MixedAdam}, on)
		peers, not := peersOf(x, 64, 8)
		if why+not != "" {
			panic(why + not)
		}
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		found := peers.Search(rng)
		var costs, steps []float64
		for range 100 {
			a := peers.Random(rng)
			if costs = append(costs, a.Cost); len(steps) < 9 {
				steps = append(steps, step(x, peers.Lines(a)))
			}
		}
		// The median is what somebody may expect who looks at nothing.
		slices.Sort(costs)
		slices.Sort(steps)
		r[scenarios[i].name] = found.Cost / costs[len(costs)/2]
		r[scenarios[i].name+"_simulated"] = step(x, peers.Lines(found)) / steps[len(steps)/2]
	}
	return r
}

// step is what pipelines take with microbatches of one sample, which all fit.
func step(x *parallel.Simulator, lines [][]int) float64 {
	p := planning{x: x, limits: parallel.Limits{Sequences: []parallel.Sequence{paralleltest.OneFOneB}}}
	if p.try(lines, 1); len(p.all) == 0 {
		panic(p.why)
	}
	return float64(p.all[0].Result.Step)
}
