// Package parrot shares the network among jobs that send one coflow after another, so
// that the jobs' completion times together are short, without knowing how large coflows
// are or how many are left (Parrot: Li et al., IEEE Transactions on Cloud Computing
// 2020). The job with the least attained service per coflow is believed to be nearest
// to its end; jobs have weights by that belief, and a linear program scales their rates
// to the largest weighted sum that the links allow.
//
// After the paper's abstract: least per-coflow attained service, weights, the program
// and the filling of what it leaves are its own. Ours are the formulas: every job's
// weight is how many times more the largest has attained per coflow (with weight for
// the smallest alone the sum of completion times was larger), and a part of its fair
// rate is every flow's for sure. Left out: changes to hosts or switches.
package parrot

import (
	_ "embed" // the claim
	"math"
	"slices"

	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/flow/fluid"
	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "parrot", System: "Parrot", Part: flow.PolicyPart, Status: "after",
	Source: "Li et al., IEEE TCC 2020 (abstract)", Challenges: []string{"C6"},
	Idea: "runs that have sent least per iteration get more of the links, by a linear program; nobody starves",
	Acts: []strategy.Act{strategy.Weight},
	Goal: "throughput", Needs: "the traffic of a worker; the phases of an iteration make it better",
	Live: "cannot, because no driver weighs what runs send",
}

// Claim is the experiment that checks it.
//
//go:embed claim.yaml
var Claim []byte

// Config says how far the strategy goes.
type Config struct {
	// FairPart is the part of its fair rate that every flow has for sure.
	FairPart float64 `yaml:"fair-part" above:"0" most:"1"`
	// MostWeight bounds how many times the weight of the last job another one has.
	MostWeight float64 `yaml:"most-weight" least:"1"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{FairPart: .5, MostWeight: 1000} }

// Strategy is Parrot for the runs of a cluster.
type Strategy struct{ config Config }

var (
	_ flow.Policy = Strategy{}
	_ flow.Shaper = Strategy{}
)

// New returns the strategy; the configuration must be valid.
func New(c Config) Strategy { return Strategy{c} }

// Traffic is the same for every run: one is weighed when it is among the others.
func (Strategy) Traffic(plan.View, plan.JobID) plan.TrafficTerms { return plan.TrafficTerms{} }

// Shape weighs the runs that share links. A run's weight is the rate it is to have: the
// network, which shares by weight, gives it at least that, and then what is left over.
func (s Strategy) Shape(v plan.View, runs []plan.RunID, into []flow.Setting) []flow.Setting {
	var sending []plan.RunID
	var flows []maxmin.Flow
	for _, run := range runs {
		if uses := fluid.OfRun(v, run); len(uses) > 0 {
			sending = append(sending, run)
			flows = append(flows, maxmin.Flow{Uses: uses, Limit: 1})
		}
	}
	capacities := fluid.Capacities(v.Cluster())
	fair := maxmin.Fill(capacities, flows)
	if len(fair) == 0 || slices.Min(fair) == 1 {
		return into // there is enough for all
	}
	claims, served := make([]claim, len(sending)), make([]float64, len(sending))
	for i, run := range sending {
		claims[i] = claim{uses: flows[i].Uses, most: 1}
		served[i] = perCoflow(v, run)
	}
	weigh(claims, served, s.config.MostWeight)
	scaled, _ := scale(capacities, 1-s.config.FairPart, claims)
	for i, run := range sending {
		traffic := v.Run(run).Terms.Traffic
		weight := max(1, int32(math.Round(1000*(s.config.FairPart*fair[i]+scaled[i]))))
		if traffic.Weight != weight {
			traffic.Weight = weight
			into = append(into, flow.Setting{Run: run, Traffic: traffic})
		}
	}
	return into
}

// perCoflow is what a run's job has sent per iteration, in Mbit, from its progress: the
// mean of those that ended, or what the first has sent. Where the iterations are not
// known, all it does is one coflow.
func perCoflow(v plan.View, run plan.RunID) float64 {
	r := v.Run(run)
	p, done := v.ProfileOf(r.Job), v.Work(r.Job)
	mbps := float64(v.Job(r.Job).Traffic) * float64(r.Workers)
	switch iteration := p.Compute + p.Communicate; {
	case p.Communicate == 0:
		return mbps * done.Seconds()
	case done < iteration:
		return mbps * max(0, done-p.Compute).Seconds()
	}
	return mbps * p.Communicate.Seconds()
}
