package catalogue

import (
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/pipeline"
)

// Parts makes those parts of a composition that say who is next, where a run goes and
// with which settings, for whoever plans beside the Scheduler.
func (c Composition) Parts(env Env) (compose.Parts, error) {
	c = c.over(Default)
	var p compose.Parts
	var cut pipeline.Partitioner
	var sequence pipeline.Ordering
	for _, err := range []error{c.fill("order", env, &p.Order), c.fill("place", env, &p.Placer), c.fill("flow", env, &p.Flow),
		c.fill("cut", env, &cut), c.fill("sequence", env, &sequence)} {
		if err != nil {
			return compose.Parts{}, err
		}
	}
	p.Planner = &compose.Pipelines{Cut: cut, Sequence: sequence, NullCut: cut, NullSequence: sequence, Name: c.Cut + "+" + c.Sequence}
	return p, nil
}
