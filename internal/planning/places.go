package planning

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate/sites"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Places are the sites on which one pipeline could be trained, as allocate/sites chooses: stages of a
// node each, cut at the borders of sites only.
type Places struct {
	Steps float64 `json:"steps"` // that are left, by the best plan's step
	Home  string  `json:"home"`  // the site where the weights are
	// CostIn is money where the file has prices, else device-hours.
	CostIn string  `json:"cost_in"`
	Best   []Place `json:"places,omitempty"` // of which none is better in both time and cost, the soonest first
	Chosen *Place  `json:"chosen,omitempty"`
	Asked  int     `json:"asked"` // of how many places a step was simulated
	Of     int     `json:"of"`
	Why    string  `json:"none_because,omitempty"`
}

// Place is one of them.
type Place struct {
	Stages  string  `json:"stages"` // how many at each site, such as "east:4 + west:2"
	TimeSec float64 `json:"time_s"`
	Cost    float64 `json:"cost"`
}

// mostPlaced is the most nodes of which places are looked for: each number of stages at each of the
// sites is one to simulate.
const mostPlaced = 32

// places asks on which sites to train what is left, where there are several.
func (c *Comparison) places(best *parallel.Candidate) {
	t := c.task
	if t.Sites == nil || len(t.Sites.Names) < 2 {
		return
	}
	p := &Places{Steps: t.Outlook.Left.Seconds() / max(1e-6, best.Result.Step.Seconds()), Home: t.Sites.Names[0]}
	c.Sites = p
	nodes := len(t.On.Nodes)
	if nodes > mostPlaced {
		p.Why = fmt.Sprintf("not asked of more than %d nodes, and these are %d", mostPlaced, nodes)
		return
	}
	n, paid := c.network()
	if p.CostIn = "device-hours"; paid {
		p.CostIn = "money"
	}
	curve := &sites.Simulated{Network: n, Kinds: t.On.Kinds, Model: t.Model, Samples: 1, Sequence: best.Plan.Sequence}
	if i := slices.IndexFunc(t.Limits.Sequences, func(q parallel.Sequence) bool { return q.Name == "1f1b" }); i >= 0 {
		curve.Sequence = t.Limits.Sequences[i]
	}
	for _, node := range t.On.Nodes {
		curve.Out = max(curve.Out, node.Out)
	}
	job := &sites.Job{WeightsGB: c.weightsGB(), Steps: p.Steps, Most: len(n.Centres), TimeAgainstDollars: t.Outlook.Sooner}
	most := min(nodes, t.Model.Profile.Layers(), t.Model.Batch)
	job.Stages = []int{most}
	for size := 1; size < most; size *= 2 {
		job.Stages = append(job.Stages, size)
	}
	for _, centre := range n.Centres {
		for _, pool := range centre.Pools {
			job.Stages = append(job.Stages, min(most, pool.Nodes))
		}
	}
	slices.Sort(job.Stages)
	job.Stages = slices.Compact(job.Stages)
	found, why := n.Search(job, curve)
	p.Asked, p.Of, p.Why = found.Asked, found.Places, string(why)
	if why != "" {
		return
	}
	for i := range found.Best {
		p.Best = append(p.Best, placed(n, &found.Best[i]))
	}
	chosen, _ := found.Choose(n, job) // without limits there always is one
	one := placed(n, &chosen)
	p.Chosen = &one
}

func placed(n *sites.Network, p *sites.Place) Place {
	return Place{Stages: n.Text(p), TimeSec: p.Time.Seconds(), Cost: p.Dollars}
}

// network is the sites as their nodes and links: those that are alike are a pool. Without prices each
// device costs the same, and only time on devices counts.
func (c *Comparison) network() (n *sites.Network, paid bool) {
	t := c.task
	for _, price := range t.PerHour {
		paid = paid || price > 0
	}
	n = &sites.Network{}
	for i, name := range t.Sites.Names {
		n.Centres = append(n.Centres, sites.Centre{Name: name})
		ways := make([]sites.Way, len(t.Sites.Names))
		for k := range ways {
			ways[k] = sites.Way{Link: t.On.Sites[i][k]}
			if paid {
				ways[k].DollarsPerGB = float64(t.Sites.PerGB[i][k]) / 1000
			}
		}
		n.Ways = append(n.Ways, ways)
	}
	for i, node := range t.On.Nodes {
		pool := sites.Pool{Kind: node.Kind, Devices: int(node.Count), Dollars: 1}
		if paid {
			pool.Dollars = float64(t.PerHour[i]) / 1000 / float64(node.Count)
		}
		pools := &n.Centres[node.Site].Pools
		at := slices.IndexFunc(*pools, func(p sites.Pool) bool {
			p.Nodes = 0
			return p == pool
		})
		if at < 0 {
			at = len(*pools)
			*pools = append(*pools, pool)
		}
		(*pools)[at].Nodes++
	}
	return n, paid
}

// weightsGB is what has to be at a site before it can train.
func (c *Comparison) weightsGB() (gb float64) {
	for i := range c.Layers {
		ways, why := c.task.Model.Profile.Ways(i, &c.task.On.Kinds[0], 1, 1)
		if why == "" {
			gb += float64(ways[0].ParamKiB) * 1024 / 1e9
		}
	}
	return gb
}
