// Package oobleck spreads a model as Oobleck does (Jang et al., "Oobleck: Resilient Distributed
// Training of Large Models Using Pipeline Templates", SOSP 2023; SymbioticLab/Oobleck): a family
// of templates, one pipeline for each number of nodes from the least on which the model fits to
// one below twice as many. Every larger number of nodes is a sum of these. Pipelines of several
// sizes share the batch by their speed. When nodes are lost, their pipelines take smaller
// templates, borrow nodes or are merged, and layers are copied from a pipeline that has them:
// no checkpoint is read.
//
// A template says what stands on the first of its nodes, on the second and so on. A plan puts the
// nodes that there are into groups and gives each group the template of its size; a recovery
// changes groups and looks the templates up. So what takes long, to find good pipelines, is done
// before anything fails, and what has to be quick is a matter of lists.
//
// That a failure loses no layer is due to the copies: each pipeline holds the whole model, and
// there is one pipeline more than nodes may fail at once. It does not hold for the state of an
// optimiser that is spread over the copies, and such a model is refused when it has to recover.
//
// Left out: the form of the cost that the code goes by, and its formula for the least number of
// nodes; both are told by simulation. Added: nodes that come are taken in by a new mix of
// templates, and of mixes only those of one or two sizes are looked at.
package oobleck

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "oobleck", System: "Oobleck", Part: parallel.PlannerPart, Status: "after",
	Source: "Oobleck (Jang et al., SOSP 2023), SymbioticLab/Oobleck",
	Idea:   "pipelines of unlike sizes from a family of templates: a lost node means a smaller template, and no restart",
	Acts:   []strategy.Act{strategy.Pipeline},
	Goal:   "throughput", Needs: "a layer profile, nodes of one kind", Live: parallel.LiveRecovery,
}

// Config says for what the plan is made: more failures at once take more pipelines, of fewer nodes
// each, and fewer nodes hold fewer activations.
type Config struct {
	Failures int `yaml:"failures" least:"0"` // nodes that may be lost at once
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Failures: 1} }

// Planner is Oobleck.
type Planner struct{ config Config }

var _ parallel.Recoverer = Planner{}

// New returns a planner.
func New(c Config) Planner { return Planner{c} }

// mixes is how many mixes of templates are simulated for each family: what they take without the
// exchange of gradients is known before, and only that differs.
const mixes = 4

// Plans mixes the templates of each order, way to run the layers and size of microbatch.
func (o Planner) Plans(x *parallel.Simulator, l parallel.Limits) (all []parallel.Candidate, why parallel.Why) {
	nodes := len(x.On.Nodes)
	if l.Devices > 0 {
		nodes = min(nodes, l.Devices/int(x.On.Nodes[0].Count))
	}
	// What is computed again takes time, and leaves room for larger microbatches, of which each pass is started for more samples.
	ways, why := x.Ways(x.Model.Profile.Layers()/2, 0, 1, 1)
	for way := range int8(len(ways)) {
		for _, sequence := range l.Sequences {
			// Larger microbatches fill a device better and a pipeline worse. As soon as one does not fit, no
			// larger one does.
			for samples := 1; samples <= x.Model.Batch; samples *= 2 {
				if l.Samples > 0 && samples > l.Samples || l.Stages && samples > 1 || x.Model.Batch%samples != 0 {
					break
				}
				some, not := o.mix(x, Setting{sequence, samples, way, nodes, l.Stages})
				if all = append(all, some...); not != "" {
					if why == "" {
						why = not
					}
					break
				}
			}
		}
	}
	if len(all) > 0 {
		return parallel.Pareto(all), ""
	}
	return nil, why
}

// mix is what the best mixes of the templates of a setting take. To go on after so many failures it
// needs one copy of every layer more than that, and so a pipeline more.
func (o Planner) mix(x *parallel.Simulator, s Setting) (all []parallel.Candidate, why parallel.Why) {
	f, why := NewFamily(x, s)
	if why != "" {
		return nil, why
	}
	failures := o.config.Failures
	if s.Alone {
		failures = 0
	}
	if s.Nodes < (failures+1)*f.Least {
		return nil, parallel.Why(fmt.Sprintf("%d nodes, and the least pipeline takes %d: expected %d nodes, for %d failures at once; set oobleck.failures lower",
			s.Nodes, f.Least, (failures+1)*f.Least, failures))
	}
	for _, sizes := range f.mixes(s.Nodes, failures+1, mixes) {
		p, not := f.plan(consecutive(sizes))
		if not == "" {
			var r parallel.Result
			if r, not = x.Simulate(&p); not == "" {
				all = append(all, parallel.Candidate{Plan: p, Result: r})
				continue
			}
		}
		if why == "" {
			why = not
		}
	}
	if len(all) > 0 {
		why = ""
	}
	return all, why
}

// consecutive gives pipelines of so many nodes the first nodes, in order: neighbours in a pipeline
// are then neighbours in the room.
func consecutive(sizes []int) (groups [][]int32) {
	next := int32(0)
	for _, n := range sizes {
		group := make([]int32, n)
		for i := range group {
			group[i] = next
			next++
		}
		groups = append(groups, group)
	}
	return groups
}

// Recover gives the pipelines that lost nodes smaller templates, or others' nodes. A node of which
// any device is lost is left out.
func (o Planner) Recover(x *parallel.Simulator, p *parallel.Plan, lost []int32, _ parallel.Limits) (r parallel.Recovery, why parallel.Why) {
	s := Setting{Sequence: p.Sequence, Samples: p.Samples, Nodes: len(x.On.Nodes)}
	if ways := p.Pipelines[0].Ways; len(ways) > 0 {
		s.Way = slices.Max(ways)
	}
	f, why := NewFamily(x, s)
	if why != "" {
		return r, why
	}
	return f.Recover(x, p, lost)
}
