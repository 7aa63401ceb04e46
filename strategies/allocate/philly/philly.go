// Package philly lets a gang wait for locality, and relax what it wants by timers, as
// Microsoft's Philly does (Jeon et al., USENIX ATC 2019). A job first wants the fewest
// nodes it could have, in one rack; when it has waited for a while any nodes of one rack
// will do, and after as long again any nodes at all. A job on part of a node goes to the
// tightest one.
//
// The survey has Philly relax locality; the paper's own guideline is to trade queueing
// for locality. Both are settings: how long a tier is waited for, never to relax, always
// to take what there is; and a rule that asks the job, by how much of an iteration it
// communicates: who communicates much never relaxes, who does little takes what there is.
//
// Read in notes: the workflow. Ours: one timer where Philly counts failed tries of about
// two minutes. Left out: quotas of virtual clusters and preemption at 90 % occupancy (the
// tree of queues does both), retries of failed jobs (the engine's), and the probe pool.
package philly

import (
	"errors"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/philly/tiers"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "philly", System: "Philly", Part: allocate.PlacePart, Status: "after",
	Source: "Jeon et al., ATC 2019",
	Idea:   "the fewest nodes of one rack; after a while any of one rack, later any at all",
	Goal:   "throughput", Needs: "nothing; the rule by sensitivity how long an iteration computes and communicates",
	Live: "as simulated",
}

// Config says how long locality is waited for.
type Config struct {
	// RelaxAfter is how long a job waits at each tier; 0 takes what there is at once.
	RelaxAfter unit.Duration `yaml:"relax-after" least:"0"`
	// Strict never relaxes.
	Strict bool `yaml:"strict"`
	// StrictAbove, where it is set, goes by the job in the place of the timers: one whose
	// communication takes more than this part of its computation never relaxes, and all
	// others take what there is.
	StrictAbove float64 `yaml:"strict-above" least:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{RelaxAfter: 30 * unit.Minute} }

// Validate says which fields exclude each other.
func (c Config) Validate() error {
	if c.Strict && c.StrictAbove > 0 {
		return errors.New("strict is for all jobs and strict-above for some: set one of them")
	}
	return nil
}

// Placer is the strategy. Its other fields are scratch.
type Placer struct {
	config Config
	search tiers.Search
	except []plan.NodeID
}

var (
	_ allocate.Placer  = (*Placer)(nil)
	_ allocate.Patient = (*Placer)(nil)
)

// New returns the placer; the configuration must be valid.
func New(c Config) *Placer { return &Placer{config: c} }

// Place takes the best placement that is near enough for how long the job has waited; a
// runner-up keeps off the first node of every better candidate. The score counts tiers
// first and nodes second, both against it.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	p.except = p.except[:0]
	worst, _ := p.worst(v, need.Job)
	for range k {
		into = allocate.Extend(into)
		c := &into[len(into)-1]
		found, tier, ok := p.search.Place(v, need, worst, p.except, c.Slots)
		if !ok {
			return into[:len(into)-1]
		}
		c.Slots, c.Score = found.Slots, -int64(tier)<<32-int64(found.Nodes)
		p.except = append(p.except, c.Slots[0].Node)
	}
	return into
}

// Retry is when the job relaxes next.
func (p *Placer) Retry(v plan.View, job plan.JobID) unit.Time {
	_, until := p.worst(v, job)
	return until
}

// worst is the worst tier that a job takes now, and until when it takes no worse.
func (p *Placer) worst(v plan.View, job plan.JobID) (tiers.Tier, unit.Time) {
	c := &p.config
	switch f := v.ProfileOf(job); {
	case c.Strict:
		return tiers.Near, unit.Never
	case c.StrictAbove > 0 && float64(f.Communicate) > c.StrictAbove*float64(f.Compute):
		return tiers.Near, unit.Never
	case c.StrictAbove > 0 || c.RelaxAfter == 0:
		return tiers.Any, unit.Never
	}
	waited := v.WaitedFor(job)
	for tier := tiers.Near; tier < tiers.Any; tier++ {
		if left := unit.Duration(tier+1)*c.RelaxAfter - waited; left > 0 {
			return tier, v.Now().Add(left)
		}
	}
	return tiers.Any, unit.Never
}
