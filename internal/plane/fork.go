package plane

import (
	"context"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/plan"
)

// Fork is what plans and looks ahead are made on: a copy of the state between two steps,
// at this moment, and what decides.
type Fork struct {
	State    *plan.State
	Strategy catalogue.Composition
	Seed     uint64
	Policy   engine.Policy
}

// Fork copies the state. The plane goes on meanwhile.
func (p *Plane) Fork(ctx context.Context) (Fork, error) {
	var f Fork
	err := p.Query(ctx, func(plan.View) {
		f = Fork{State: p.engine.State().Copy(), Strategy: p.decide.strategy, Seed: p.config.Seed, Policy: p.config.Policy}
		now := max(f.State.Now, p.now())
		f.State.Age(now)
		f.State.Now = now
	})
	if err != nil {
		return Fork{}, err
	}
	return f, nil
}
