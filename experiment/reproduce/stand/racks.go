package stand

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

func init() {
	register("racks", "300 parameter server jobs at 80 % load on 4 racks of 8 nodes of 4 devices, traffic such that chance would load the racks' uplinks so far (network), or as measured (network=measured)", racks)
}

// racks has gangs of 1 to 16 tasks, a quarter of them servers. A node has 10 Gbps and a
// rack's uplink carries a quarter of what its nodes could send; two racks are a domain,
// which only the network cost knows.
func racks(open Data, o *Options, seed uint64) (*Stand, error) {
	const jobs, load, median, sigma, uplink, devices = 300, .8, 1800., 1., 20_000., 4 * 8 * 4
	widths := []struct {
		tasks  int32
		weight float64
	}{{1, .3}, {4, .3}, {8, .25}, {16, .15}}
	text, network := o.Text("network", "0.8"), 0.
	var measured []float64
	var err error
	if text == "measured" {
		measured, err = measuredTraffic(open)
	} else {
		network, err = strconv.ParseFloat(text, 64)
	}
	if err != nil {
		return nil, err
	}
	s := &Stand{Cluster: cluster.Uniform("racks", 32, 4, cluster.Model{Name: "gpu", Speed: 1}, 8)}
	for i := range s.Cluster.Nodes {
		s.Cluster.Nodes[i].Uplink = 10_000
	}
	for i := range s.Cluster.Racks {
		s.Cluster.Racks[i].Uplink = uplink
	}
	mean := 0.
	for _, w := range widths {
		mean += w.weight * float64(w.tasks) * median * math.Exp(sigma*sigma/2)
	}
	list, rng, at := &List{}, rand.New(rand.NewPCG(seed, 1)), 0.
	for i := range jobs {
		at += rng.ExpFloat64() * mean / (load * devices)
		length, tasks := median*math.Exp(sigma*rng.NormFloat64()), int32(0)
		for w, u := 0, rng.Float64(); u >= 0; w++ {
			tasks, u = widths[min(w, len(widths)-1)].tasks, u-widths[min(w, len(widths)-1)].weight
		}
		j := workload.Job{Name: fmt.Sprint("job", i), Submit: unit.Time(0).Add(unit.Seconds(at)), Resources: workload.Resources{Gang: tasks, Devices: 1, Share: unit.Whole},
			Traits: workload.Traits{Servers: tasks / 4}, Checkpoint: workload.Checkpoint{OnRequest: true}}
		// Half to twice of what is usual: 1.082 times that in the mean.
		traffic := network * uplink / (load * devices / 4) / 1.082 * math.Exp2(2*rng.Float64()-1)
		if measured != nil {
			traffic = measured[rng.IntN(len(measured))]
		}
		if tasks > 1 {
			j.Traffic = unit.Mbps(traffic)
		}
		list.Add(j, workload.Truth{Duration: unit.Seconds(length)})
	}
	s.Jobs = list
	cost := 0.
	s.Commit = func(v plan.View, c *plan.Commit) {
		for i := range c.Changes {
			if x := &c.Changes[i]; x.Verb == plan.Start {
				cost += networkCost(v, x.Run, list.Jobs[x.Job].Servers)
			}
		}
	}
	s.Figures = func(*Finished) map[string]float64 { return map[string]float64{"network_cost": cost} }
	return s, nil
}

// networkCost is Liquid's: each pair of a server and another task costs 1 for each Gbps
// where they are on two nodes, 4 on two racks, 40 in two domains.
func networkCost(v plan.View, run plan.RunID, servers int32) (cost float64) {
	var nodes []plan.NodeID // by rank
	v.GrantsOf(run, func(g plan.Grant) { nodes = append(nodes, g.Node) })
	for i := range min(int(servers), len(nodes)) {
		for _, b := range nodes[servers:] {
			a := nodes[i]
			switch x, y := v.Node(a).Rack, v.Node(b).Rack; {
			case x/2 != y/2:
				cost += 40
			case x != y:
				cost += 4
			case a != b:
				cost++
			}
		}
	}
	return cost * float64(v.Job(v.Run(run).Job).Traffic) / 1000
}

// measuredTraffic is what workers of EasyScale's models send, in Mbps: all gradients, of
// four bytes, once in the step that was measured on a V100. Parameters in millions are
// those of the models' papers.
func measuredTraffic(open Data) ([]float64, error) {
	parameters := map[string]float64{"ShuffleNetv2": 2.3, "ResNet50": 25.6, "VGG19": 143.7, "YOLOv3": 61.9, "Bert": 110, "Electra": 110, "SwinTransformer": 28.3}
	rows, err := readCSV(open, "easyscale/overhead.csv")
	if err != nil {
		return nil, err
	}
	var list []float64
	for _, row := range rows {
		step, err := strconv.ParseFloat(row[3], 64)
		if err != nil {
			return nil, fmt.Errorf("easyscale's steps of %s: %w", row[0], err)
		}
		if millions := parameters[row[0]]; millions > 0 && row[2] == "v100" {
			list = append(list, 32*millions/step)
		}
	}
	slices.SortFunc(list, cmp.Compare[float64])
	return list, nil
}
