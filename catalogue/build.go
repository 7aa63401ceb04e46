package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/schedule"
)

// Built is a Scheduler with what a driver has to know of it.
type Built struct {
	Scheduler schedule.Scheduler
	// TellTruth: the estimator wants true run times, which only a simulation has.
	TellTruth bool
	// Knows says in words what the estimator goes by.
	Knows string
	// OnRequest: jobs are asked to checkpoint before they are stopped.
	OnRequest   bool
	Composition Composition
}

// Build makes the Scheduler of a composition.
func (c Composition) Build(env Env, explain bool) (Built, error) {
	if err := c.clash(); err != nil {
		return Built{}, err
	}
	c = c.over(defaults())
	p, err := c.Parts(env)
	if err != nil {
		return Built{}, err
	}
	p.Explain = explain
	_, truth := strategy.Can[profile.Oracular](p.Estimator)
	return Built{Scheduler: compose.New(p), TellTruth: truth, Knows: knows(c.Choices[profile.EstimatePart], truth),
		OnRequest: c.Choices[run.RestartPart] == run.OnRequest, Composition: c}, nil
}

// knows says what an estimator goes by.
func knows(estimate string, truth bool) string {
	switch {
	case estimate == profile.EstimatePart.Default:
		return "declared times"
	case truth:
		return "true times (" + estimate + ")"
	}
	return estimate
}

// Parts makes the parts that a Scheduler is composed of, for it and for whoever plans
// beside it.
func (c Composition) Parts(env Env) (compose.Parts, error) {
	filled, err := c.over(defaults()).Fill(env)
	if err != nil {
		return compose.Parts{}, err
	}
	null, err := Null().Fill(Env{})
	return compose.PartsOf(filled, null), err
}

// Fill makes what fills each part, one that only planners ask too.
func (c Composition) Fill(env Env) (strategy.Filled, error) {
	filled := strategy.Filled{}
	for _, p := range slices.SortedFunc(maps.Keys(c.Choices), byRank) {
		if c.Choices[p] == "" {
			continue // a part that there need not be
		}
		made, err := c.make(p, env)
		if err != nil {
			return nil, err
		}
		filled[p] = strategy.Filling{Name: c.Choices[p], Strategy: made}
	}
	return filled, nil
}

// make makes what fills one part.
func (c Composition) make(p *strategy.Part, env Env) (any, error) {
	switch names := strings.Split(c.Choices[p], chained); {
	case p.Words != nil:
		return c.Choices[p], nil
	case p.Chain != nil && len(names) > 1:
		return c.chain(p, names, env)
	}
	return c.strategy(p, c.Choices[p], env)
}

// chain makes the strategies that share a part.
func (c Composition) chain(p *strategy.Part, names []string, env Env) (any, error) {
	links := make([]any, len(names))
	for i, name := range names {
		var err error
		if links[i], err = c.strategy(p, name, env); err != nil {
			return nil, err
		}
	}
	made, greedy := p.Chain(links)
	if greedy >= 0 {
		return nil, fmt.Errorf("%s: %s takes every job, so that none is left for %s: put it last", c.Name, names[greedy], names[greedy+1])
	}
	return made, nil
}

// strategy makes one strategy for a part.
func (c Composition) strategy(p *strategy.Part, name string, env Env) (any, error) {
	e, ok := Find(name)
	if !ok || e.Part != p {
		return nil, unknown(p, name)
	}
	options := c.optionsOf(e)
	if err := strategy.Check(options); err != nil {
		return nil, fmt.Errorf("options of %s: %w", name, err)
	}
	made := e.make(options, env)
	if env.Break != "" && env.Break == cmp.Or(e.System, e.Name) {
		made = broken(made)
	}
	if !p.Fulfils(made) {
		panic(fmt.Sprintf("catalogue: %s is no %s", name, p.Name))
	}
	return made, nil
}
