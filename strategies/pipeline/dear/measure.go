package dear

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/overlap/overlaptest"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is known of all-reduces in two halves, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds a message a layer in two halves against one in one piece, and what is exposed
// of it against whether it fits under the passes, for 3,000 drawn stages each; and the ways to
// merge layers against each other, for 300 whose gradients are larger.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{"slower": 0, "slower_drawn": 0, "hidden": 0, "hidden_wrong": 0}
	halves := func(c *overlap.Costs) overlap.Plan {
		return split(c, func(int, int64) bool { return false })
	}
	against := func(name string, c *overlap.Costs) {
		p, whole := halves(c), overlap.Single(len(c.Layers))
		found, than := overlaptest.Iteration(&p, c), overlaptest.Iteration(&whole, c)
		if r.Note("over"+name, float64(found), float64(than)); found > than {
			r["slower"+name]++
		}
	}
	overlaptest.Stages(seed, 3000, func(c *overlap.Costs) {
		against("_drawn", c)
		for i := range c.Layers {
			l := &c.Layers[i]
			l.Forward = (l.Input + l.Weight + 1) / 2
		}
		against("", c)
		c.Layers[0].ParamKiB = 0 // else its own gradients are never hidden
		c.Start, c.MicrosPerKiB = c.Start/2, c.MicrosPerKiB/2
		p := halves(c)
		t, why := p.Time(c)
		if why != "" {
			panic(why) // every drawn stage has a plan
		}
		if t.Exposed() == 0 {
			r["hidden"]++
		}
		if fits(c) != (t.Exposed() == 0) {
			r["hidden_wrong"]++
		}
	})
	overlaptest.Stages(seed, 300, func(c *overlap.Costs) {
		for i := range c.Layers {
			c.Layers[i].ParamKiB *= 32 // up to 31 MiB
		}
		c.MicrosPerKiB /= 32
		searched, sized, numbered := Searched{}.Merge(c), Sized{}.Merge(c), Numbered{}.Merge(c)
		best := float64(overlaptest.Iteration(&searched, c))
		r.Note("sized", best, float64(overlaptest.Iteration(&sized, c)))
		r.Note("numbered", best, float64(overlaptest.Iteration(&numbered, c)))
	})
	return r
}

// fits reports whether the reduce-scatters of all layers are over when the backward pass is,
// and what has to be gathered before each layer is no more than what is computed before it.
func fits(c *overlap.Costs) bool {
	ready, sent := c.Ready(), unit.Duration(0)
	for l := len(c.Layers) - 1; l >= 0; l-- {
		if takes := c.Takes(c.Layers[l].ParamKiB); takes > 0 {
			sent = max(sent, ready[l]) + takes/2
		}
	}
	if sent > ready[0] {
		return false
	}
	var gathered, computed unit.Duration
	for _, l := range c.Layers {
		takes := c.Takes(l.ParamKiB)
		if gathered += takes - takes/2; gathered > computed+ready[0]-sent {
			return false
		}
		computed += l.Forward
	}
	return true
}
