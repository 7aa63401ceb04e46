package month

import (
	"errors"
	"fmt"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/reaction"
)

// What runs: Llama 3 70B with Adam, on nodes of eight H100 with 400 Gb/s for each. Every copy
// holds the whole state of the optimiser, so that what one loses another has.
const (
	model   = "llama-3-70b"
	device  = "H100"
	inNode  = 8
	out     = 8 * 400_000 // Mb/s of a node
	samples = 8           // of 8,192 tokens, of a step and node
	storage = 16_000      // Mb/s of a node, to checkpoints
	start   = unit.Minute // until processes have begun again
)

// parts are the sizes that the job may have besides all nodes, in 32ths of these. Fewer nodes than half would
// not pay for as much as they lose.
var parts = []int{16, 20, 24, 28, 30}

// Ground is what a month is played on, the same for all regimes: the cluster with its spares, and the job with
// a menu of what the planner has for each of its sizes.
type Ground struct {
	Nodes, Spares int
	cluster       *cluster.Cluster
	job           workload.Job
	save, load    unit.Duration // of a checkpoint
}

// New plans the job for sound nodes, at each size, and adds the spares that pay for lost ones.
func New(nodes int) (*Ground, error) {
	g := &Ground{Nodes: nodes, cluster: stand(nodes)}
	maker, err := catalogue.Menus(g.cluster, catalogue.Composition{})
	if err != nil {
		return nil, err
	}
	g.job = workload.Job{Name: model,
		Resources:  workload.Resources{Gang: int32(nodes * inNode), Devices: 1, Share: unit.Whole},
		Traits:     workload.Traits{Pipeline: workload.Pipeline{Model: model, Batch: int32(samples * nodes)}},
		Checkpoint: workload.Checkpoint{OnRequest: true}}
	for _, part := range parts {
		if nodes*part%32 == 0 {
			g.job.Sizes = append(g.job.Sizes, int32(nodes*part/32*inNode))
		}
	}
	g.job.Sizes = append(g.job.Sizes, g.job.Gang)
	if o := maker.Write(&g.job); o != nil {
		return nil, errors.New(o.Found)
	}
	if len(g.job.Menu) < 2 {
		return nil, fmt.Errorf("%d nodes: the planner has no plan for fewer of them", nodes)
	}
	full, less := g.full(), g.job.Menu[len(g.job.Menu)-2]
	best, why := maker.Read(&g.job, 0, full.Workers, full.Plan.Shape)
	if why != "" {
		return nil, errors.New(string(why))
	}
	most := int64(0)
	for _, part := range best.Result.Parts {
		for _, m := range part.Timing.Peak {
			most = max(most, m.ParamKiB)
		}
	}
	// Copies share what is written, and each reads all that it has.
	g.load = parallel.Link{Bandwidth: storage / inNode}.Takes(most)
	g.save = parallel.Link{Bandwidth: storage / inNode}.Takes(most / int64(len(best.Plan.Pipelines)))
	// Without a spare a lost node costs what the next smaller size is slower.
	g.Spares = reaction.Spares(nodes, lost.every, lost.lasts, max(1, int(float64(nodes)*(1-less.Rate))))
	g.cluster = stand(nodes + g.Spares)
	return g, nil
}

// full is the offer for all nodes: sizes ascend.
func (g *Ground) full() *workload.Offer { return &g.job.Menu[len(g.job.Menu)-1] }

// stand is so many nodes, in racks of sixteen whose links do not bound them.
func stand(nodes int) *cluster.Cluster {
	c := cluster.Uniform("month", nodes, inNode, cluster.Model{Name: device, Memory: 80 << 10, Speed: 1}, inRack)
	for i := range c.Nodes {
		c.Nodes[i].Uplink = out
	}
	return c
}
