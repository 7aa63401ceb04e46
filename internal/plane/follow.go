package plane

import (
	"context"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Follower is told of every batch, once it is durable. It is called in the plane's
// goroutine: it must not wait, and has no way to change anything there.
type Follower interface {
	// Wants says whether it has to begin anew with the next batch.
	Wants() bool
	// Begin hands it the plane as it is before that batch.
	Begin(m *Mirror)
	// Follow hands it the batch, as it was journaled.
	Follow(b store.Batch)
}

// Follow tells a follower of all that happens from now on, instead of the one before;
// nil is nobody.
func (p *Plane) Follow(ctx context.Context, f Follower) error {
	return p.Query(ctx, func(plan.View) { p.follower = f })
}

// begin lets the follower begin, if it wants to.
func (p *Plane) begin() {
	if p.follower != nil && p.follower.Wants() {
		p.follower.Begin(&Mirror{state: p.engine.State().Copy(), policy: p.config.Policy, decide: p.decide})
	}
}

// Mirror is a copy of a plane's state and setting that goes the same way beside it.
type Mirror struct {
	state  *plan.State
	policy engine.Policy
	decide decider
	engine *engine.Engine // over the state, from the first batch on
}

// Next is a batch that is about to happen to a Mirror.
type Next struct {
	At     unit.Time
	Events []engine.Event
	// Strategy is what decides it, Seed and Policy what with.
	Strategy catalogue.Composition
	Seed     uint64
	Policy   engine.Policy

	// Line is the canonical one of what was decided; nil is nothing.
	Line   []byte
	asides []plan.Aside
}

// silent decides nothing: a Mirror is told what was decided.
type silent struct{}

// Decide changes nothing and asks for no other time.
func (silent) Decide(*plan.Draft, schedule.Trigger) unit.Time { return unit.Never }

// Next reads a batch. The state stays as it is before it until Take.
func (m *Mirror) Next(b store.Batch) (n Next, err error) {
	if n.At, n.Events, n.Line, n.asides, _, err = decodeBatch(b); err != nil {
		return n, err
	}
	if m.engine == nil {
		m.engine = engine.Restore(m.state, silent{}, m.policy)
	}
	if err := m.decide.follow(m.engine, n.Events); err != nil {
		return n, err
	}
	s, err := parseSetting(m.decide.current)
	n.Strategy, n.Seed, n.Policy = m.decide.strategy, s.Seed, m.policy
	return n, err
}

// State is the state as it is; it is not to be changed.
func (m *Mirror) State() *plan.State { return m.state }

// Take lets the batch happen as it was recorded.
func (m *Mirror) Take(n Next) (engine.Out, error) {
	return m.engine.Fold(n.At, n.Events, n.Line, n.asides)
}
