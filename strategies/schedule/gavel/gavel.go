// Package gavel divides the time of unlike devices among jobs by a linear program and
// realises the division in rounds (Gavel; Narayanan et al., Heterogeneity-Aware Cluster
// Scheduling Policies for Deep Learning Workloads, OSDI 2020). A policy is an objective
// over effective rates: what a job gets done per second if it spends X[j][k] of its
// time on type k. The program finds X; every round each type goes to the jobs that have
// got the smallest part of their share of it so far, the largest gangs placed first.
//
// Read: the published simulator, whose rounds, resets and order of types we follow.
// Ours (after): it takes any best X; we go on until every job is as well off as it can
// be without harm to one no better off, and then save device time, so X is one and does
// not hang on the solver; the published searches over the makespan are one program
// here; finish-time fairness reckons a job's isolated time by how the cluster is shared
// now; a job of unknown length has as much left as it has done, an hour at least;
// between rounds, room that comes free goes to who waits. Left out: space sharing (pair
// rows), hierarchies of teams and estimated rates (a job's menu says them).
package gavel

import (
	_ "embed" // the claim
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "gavel", System: "Gavel", Step: "schedule", Part: allocate.JointPart, Status: "read",
	Source:     "Narayanan et al., OSDI 2020; stanford-futuredata/gavel",
	Idea:       "parts of time on every device type by a linear program over effective rates, realised in rounds",
	Challenges: []string{"C2", "C3"}, Goal: "latency",
	Needs: "rates by device model; for makespan, cost and finish-time fairness the work that is left",
	Live:  "a change of type is a restart from the last checkpoint",
	Inner: "the objective of the program; for max-min the least normalised rate",
}

// Claim is the headline experiment.
//
//go:embed claim.yaml
var Claim []byte

// Config tunes what is divided for and how often.
type Config struct {
	// Policy is one of Policies.
	Policy string `yaml:"policy"`
	// RoundSec is how long a job keeps its devices at least.
	RoundSec float64 `yaml:"round-s" least:"1"`
	// RecomputeSec is how long a division holds at least, whoever comes and goes.
	RecomputeSec float64 `yaml:"recompute-s" least:"0"`
	// MostJobs is the number of jobs up to which the program is solved exactly; for more
	// its greedy twin answers.
	MostJobs int `yaml:"most-jobs" least:"0"`
	// Seed draws the order in which the agnostic policy fills the types.
	Seed uint64 `yaml:"seed"`
}

// Default returns the configuration used where none is given: that of the published
// simulator.
func Default() Config {
	return Config{Policy: MaxMin, RoundSec: 360, RecomputeSec: 1920, MostJobs: 500}
}

// Validate says whether there is such a policy.
func (c Config) Validate() error {
	if !slices.Contains(Policies, c.Policy) {
		return fmt.Errorf("policy is %q: it must be one of %q", c.Policy, Policies)
	}
	return nil
}

func (c Config) round() unit.Duration { return unit.Duration(c.RoundSec * float64(unit.Second)) }

func (c Config) recompute() unit.Duration {
	return unit.Duration(c.RecomputeSec * float64(unit.Second))
}
