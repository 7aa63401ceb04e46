package trainer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterdl/muster/pipeline"
)

// ParsePlan reads a plan of step 4 from JSON: where the model is cut, and in which order each
// worker does what. The trainer executes exactly this.
func ParsePlan(data []byte) (*pipeline.Plan, error) {
	p := &pipeline.Plan{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(p); err != nil {
		return nil, fmt.Errorf("not a plan: %w", err)
	}
	return p, nil
}

// checkPlan says what is wrong with a plan for a job: it must be one for as many layers,
// whose orders do not wait for each other, and ask no more than is built here.
func checkPlan(p *pipeline.Plan, c Config) error {
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
