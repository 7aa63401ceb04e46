package parallel

import "github.com/musterdl/muster/model/unit"

// LeastOf is what a step of a shape takes at least by what its stages take; 0 where that says nothing.
func LeastOf(x *Simulator, s *Shape) unit.Duration {
	routes, why := x.routes(s.Sequence, s.Ranks, s.Microbatches)
	if why != "" {
		return 0
	}
	plan := s.Plan()
	costs, _, why := x.costs(&plan, 0, routes)
	if why != "" {
		return 0
	}
	return routes.least(costs.Stages, s.Ranks, s.Microbatches)
}
