package sites

import (
	_ "embed" // for Claim
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// Claim is what must hold of the choice of data centres, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds the search against all places on drawn networks, and chooses among the zones of
// which the links were measured.
func Measure(open figures.Open, seed uint64) (map[string]float64, error) {
	got := map[string]float64{"unlike": 0, "deadlines": 0, "singles": 0}
	dice := rand.New(rand.NewPCG(seed, 3))
	for range 200 {
		exhaust(got, dice)
	}
	n, err := measured(open)
	if err != nil {
		return nil, err
	}
	return got, large(got, n)
}

// even is a curve on which speeds add up, and each border costs a tenth of a second.
type even struct{ work unit.Duration }

// Step is what speeds and borders say.
func (e even) Step(parts []Part) (Step, pipeline.Why) {
	s := Step{Takes: e.Least(parts)}
	for range len(parts) - 1 {
		s.Takes += unit.Second / 10
		s.BorderGB = append(s.BorderGB, .01)
	}
	return s, ""
}

// Least is a step without borders. The second pool of a centre is twice as fast as the first.
func (e even) Least(parts []Part) unit.Duration {
	speed := 0
	for _, p := range parts {
		speed += p.Stages * (1 + p.Pool)
	}
	return e.work / unit.Duration(speed)
}

// exhaust draws a network of up to five centres and a job, and holds what the search finds and
// chooses against all places. That all places are listed is what the package's own test shows: it
// puts each stage by itself into each pool and adds up by itself.
func exhaust(got map[string]float64, dice *rand.Rand) {
	n := &Network{}
	for range 2 + dice.IntN(4) {
		var pools []Pool
		for range 1 + dice.IntN(2) {
			pools = append(pools, Pool{Nodes: dice.IntN(5), Devices: 4, Dollars: 1 + 3*dice.Float64()})
		}
		n.Centres = append(n.Centres, Centre{Pools: pools})
	}
	for range n.Centres {
		ways := make([]Way, len(n.Centres))
		for k := range ways {
			ways[k] = Way{pipeline.Link{Bandwidth: unit.Mbps(500 + dice.IntN(9500))}, .01 * float64(1+dice.IntN(9))}
		}
		n.Ways = append(n.Ways, ways)
	}
	j := &Job{DataGB: 1000 * dice.Float64(), WeightsGB: 100, Steps: 1000, Stages: []int{2, 4}, Most: 3, TimeAgainstDollars: dice.Float64()}
	curve := even{10 * unit.Second}
	found, why := n.Search(j, curve)
	if why != "" {
		return
	}
	got["places"] += float64(found.Places)
	got["asked"] += float64(found.Asked)
	var all []Place
	for _, parts := range n.all(j) {
		step, _ := curve.Step(parts)
		all = append(all, n.place(j, parts, step))
	}
	is := func(a, b *Place) bool { return a.Time == b.Time && a.Dollars == b.Dollars }
	for i := range all {
		p := &all[i]
		best := !slices.ContainsFunc(all, func(o Place) bool { return p.notBetter(o) && !is(p, &o) })
		if best != slices.ContainsFunc(found.Best, func(o Place) bool { return is(p, &o) }) {
			got["unlike"]++
		}
	}
	soonest := slices.MinFunc(all, func(a, b Place) int { return int(a.Time - b.Time) })
	for _, d := range []unit.Duration{-1, 0, unit.Minute} {
		j.Deadline = soonest.Time + d
		p, why := found.Choose(n, j)
		if (why != "") != (d < 0) || d >= 0 && p.Time > j.Deadline || d < 0 && p.Time != soonest.Time {
			got["deadlines"]++
		}
		if slices.ContainsFunc(all, func(o Place) bool {
			return d >= 0 && len(p.Parts) > 1 && len(o.Parts) == 1 && o.Time <= j.Deadline && o.Dollars <= p.Dollars
		}) {
			got["singles"]++
		}
	}
}

// borderBytes is what one sequence of the model below sends over a border: links were measured
// with messages of many sizes.
const borderBytes = 2048 * 6144 * 2

// zones are those whose links were measured, those of one region first.
var zones = []string{"us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f", "us-west1-b"}

// measured is the network of the zones, with as many free nodes as is ours to say: three of four
// A100 in each but the last, which has eight.
func measured(open figures.Open) (*Network, error) {
	// Source zone, device, devices of a node, destination zone, device, devices: three
	// coefficients in log2 of the megabytes, then the most.
	var links map[string]map[string]map[string]map[string]map[string]map[string][2]json.RawMessage
	if err := figures.FromJSON(open, "wan/multizone_bandwidths.json.gz", &links); err != nil {
		return nil, err
	}
	dollars, err := price(open, "gpu-specs/gpu_prices_on_demand.csv", []string{"gpu", "region", "usd_per_h_on_demand"}, "A100-40", zones[0])
	if err != nil {
		return nil, err
	}
	var out [2]float64 // inside a region, between two
	for i, to := range []string{"us-east-2", "us-west-2"} {
		if out[i], err = price(open, "wan/aws_transfer_costs.csv", []string{"src", "dst", "cost"}, "us-east-1", to); err != nil {
			return nil, err
		}
	}
	n := &Network{}
	last := len(zones) - 1
	for i, from := range zones {
		nodes, ways := 3, make([]Way, len(zones))
		if i == last {
			nodes = 8
		}
		n.Centres = append(n.Centres, Centre{from, []Pool{{Nodes: nodes, Devices: 4, Dollars: dollars}}})
		for k, to := range zones {
			var c [3]float64
			leaf := links[from]["A100-40"]["4"][to]["A100-40"]["4"]
			if err := json.Unmarshal(leaf[0], &c); err != nil {
				return nil, fmt.Errorf("wan/multizone_bandwidths.json.gz: from %s to %s: %w", from, to, err)
			}
			x := math.Log2(borderBytes / 1e6)
			if ways[k].Bandwidth = unit.Mbps(8000 * (c[0]*x*x + c[1]*x + c[2])); i != k {
				ways[k].DollarsPerGB = out[0]
				if i == last || k == last {
					ways[k].DollarsPerGB = out[1]
				}
			}
		}
		n.Ways = append(n.Ways, ways)
	}
	return n, nil
}

// price is the third column of the first row that has the given words in the first two.
func price(open figures.Open, path string, columns []string, first, second string) (found float64, err error) {
	err = figures.FromTable(open, path, columns, func(f []string) (err error) {
		if found == 0 && f[0] == first && f[1] == second {
			found, err = strconv.ParseFloat(f[2], 64)
		}
		return err
	})
	if err == nil && found == 0 {
		err = fmt.Errorf("%s: no row for %s and %s", path, first, second)
	}
	return found, err
}

// oneFOneB is the order of the stages.
type oneFOneB struct{}

// Schedule has each stage alternate once its first microbatches are under way.
func (oneFOneB) Schedule(ranks, microbatches int, _ *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	s := pipeline.NewSchedule(ranks, microbatches, pipeline.Straight(ranks))
	for r := range ranks {
		s.Line(r).Alternate(s.Chunks(r)[0], ranks-1-r)
	}
	return s, ""
}

// large trains a model of 22 billion parameters whose data lie in the first zone, on eight nodes.
// Only the last zone has as many. What three zones of one region cost more is what leaves them
// in each step, not the time that it is on its way.
func large(got map[string]float64, n *Network) error {
	form, why := shape.Find("gpt-22b")
	profile, whys := shape.New(form, shape.Half)
	device, not := shape.Device("A100-40GB", shape.Half)
	if why != "" || not != "" || len(whys) > 0 {
		return fmt.Errorf("gpt-22b on A100-40GB: %s %s %v", why, not, whys)
	}
	curve := &Simulated{Network: n, Kinds: []parallel.Device{device}, Samples: 1, Sequence: parallel.Sequence{Name: "1f1b", Order: oneFOneB{}},
		Model: &parallel.Model{Name: form.Name, Profile: profile, Batch: 64, State: parallel.MixedAdam}}
	last := len(zones) - 1
	for i, parts := range [][]Part{{{last, 0, 8}}, {{0, 0, 3}, {1, 0, 3}, {2, 0, 2}}, {{0, 0, 3}, {last, 0, 5}}} {
		s, why := curve.Step(parts)
		if why != "" {
			return fmt.Errorf("gpt-22b on %v: %s", parts, why)
		}
		got[[]string{"step_one", "step_zones", "step_regions"}[i]] = s.Takes.Seconds()
	}
	j := &Job{DataGB: 1000, WeightsGB: 44, Steps: 10_000, Stages: []int{8}, Most: 3}
	found, why := n.Search(j, curve)
	if why != "" {
		return fmt.Errorf("gpt-22b: %s", why)
	}
	single := found.Single[0]
	if p, _ := found.Choose(n, j); len(p.Parts) == 1 {
		got["single_chosen"]++
	}
	// A little less time than the single zone takes is for several to keep.
	j.Deadline = single.Time - unit.Minute
	p, why := found.Choose(n, j)
	if why != "" {
		return fmt.Errorf("gpt-22b: %s", why)
	}
	got["sooner_centres"], got["sooner_time"], got["sooner_dollars"] = float64(len(p.Parts)), float64(p.Time)/float64(single.Time), p.Dollars/single.Dollars
	return nil
}
