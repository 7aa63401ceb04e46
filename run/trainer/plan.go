package trainer

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/shape"
)

// build is the job of a plan that says what is trained: the model's sizes and the batch take the place
// of what no flag said; another size that one did say is a mistake.
func (c *Config) build(t *shape.Told, said func(flag string) bool) error {
	m := t.Model
	if m == nil {
		return nil
	}
	if why := cannotBuild(m); why != "" {
		return fmt.Errorf("the model %s: %s", m.Name, why)
	}
	for _, f := range []struct {
		flag string
		own  *int
		told int
	}{{"dim", &c.Dim, m.Hidden}, {"layers", &c.Layers, m.Blocks}, {"heads", &c.Heads, m.Heads}, {"seq", &c.Seq, m.Sequence}, {"vocab", &c.Vocab, m.Vocabulary}, {"batch", &c.Batch, t.Batch}} {
		if said(f.flag) && *f.own != f.told {
			return fmt.Errorf("%s is %d, and the plan is of the model %s with %d: expected as many, or nothing said of it", f.flag, *f.own, m.Name, f.told)
		}
		*f.own = f.told
	}
	return nil
}

// cannotBuild says what a model has that the trainer does not: it builds GPT's blocks, each norm with a
// bias and no product with one, and a head of its own weights.
func cannotBuild(m *shape.Shape) string {
	for _, f := range []struct {
		lacks bool
		what  string
	}{
		{m.Encoder > 0, "an encoder"}, {m.KVHeads > 0 && m.KVHeads != m.Heads, "fewer heads of keys and values"}, {m.Experts != nil, "experts"},
		{m.Latent != nil, "latent attention"}, {m.HeadWidth > 0 && m.HeadWidth*m.Heads != m.Hidden, "heads of another width"}, {m.Patch > 0, "images"},
		{m.Tied, "a head tied to the embedding"}, {m.Headless, "no head"}, {m.Gated, "a gated feed-forward"}, {m.Bias, "products with a bias"}, {m.Dropout, "dropout"},
		{m.FFN != mlpFactor*m.Hidden, fmt.Sprintf("a feed-forward that is not %d times as wide as the model", mlpFactor)}, {m.Positions != m.Sequence, "other positions than its sequence has"},
	} {
		if f.lacks {
			return "it has " + f.what + ", which this trainer does not build"
		}
	}
	return ""
}

// checkPlan says what is wrong with a plan for a job: it must be one for as many layers,
// whose orders do not wait for each other, and ask no more than is built here.
func checkPlan(t *shape.Told, c Config) error {
	p := &t.Plan
	if t.Shape != nil && slices.Max(append([]int8{0}, t.Shape.Ways...)) > 0 {
		return fmt.Errorf("shape.ways has layers that are computed again: this trainer computes again only what an order says with R")
	}
	if p.Tensor < 0 || p.Tensor > 1 && c.Heads%int(p.Tensor) != 0 {
		return fmt.Errorf("tensor is %d: expected a divisor of %d, the attention heads", p.Tensor, c.Heads)
	}
	if p.Microbatches > int32(c.Batch) {
		return fmt.Errorf("microbatches is %d: expected 1 to %d, the batch", p.Microbatches, c.Batch)
	}
	if why := p.Check(c.depth()); why != "" {
		return fmt.Errorf("%s", why)
	}
	schedule := p.Schedule()
	if len(schedule.Routes) > 1 || p.Wave != 0 {
		return fmt.Errorf("%s", pipeline.LiveCopies)
	}
	for _, order := range p.Orders {
		for _, op := range order {
			if op.Kind == pipeline.Recompute && slices.Contains(order, pipeline.Op{Kind: pipeline.FirstHalf, Stage: op.Stage, Micro: op.Micro}) {
				return fmt.Errorf("%v computes again what passed forward in halves: expected one or the other, since the trainer keeps one input for each", op)
			}
		}
	}
	route, ranks := schedule.Routes[0], int32(len(p.Orders))
	for s, rank := range route[1:] {
		if apart := (rank - route[s] + ranks) % ranks; apart != 0 && apart != 1 && apart != ranks-1 {
			return fmt.Errorf("routes[0] goes from worker %d to %d: expected the same or a neighbour on the ring of %d", route[s], rank, ranks)
		}
	}
	if _, why := schedule.Time(pipeline.Like(int(p.Stages))); why != "" {
		return fmt.Errorf("%s", why)
	}
	return nil
}

// layersOf returns the range of layers of a stage of a model with this depth.
func layersOf(p *pipeline.Plan, stage, depth int) (from, to int) {
	to = depth
	if stage > 0 {
		from = int(p.Cuts[stage-1])
	}
	if stage < int(p.Stages)-1 {
		to = int(p.Cuts[stage])
	}
	return from, to
}
