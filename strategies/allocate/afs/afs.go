// Package afs divides the devices among elastic jobs by the pair rule of AFS-L (Hwang et
// al., Elastic Resource Sharing for Distributed Deep Learning, NSDI 2021). Each device
// goes to the winner of a knock-out in which every two jobs are compared: would one more
// device for the job that ends sooner, and then for the other, lower the sum of their
// completion times against one more for the other from now on? The rule assumes that
// today's shares stay, and forecasts neither arrivals nor contention.
//
// Read: two re-implementations (DeepBoot uses one denominator for both jobs and so
// deviates; PCS follows the rule). Jobs of unknown length are taken to be equally long
// within a queue of attained service, as AFS-P does; its thresholds are ours (after). So
// is what legal worker counts do to a rule made for any count: rates between two of them
// lie on a straight line, counts are rounded down, and what that leaves goes to the
// jobs whose next count it reaches, by the same rule. Left out: CoDDL, the system around
// the rule, with its overlay network and its in-place resizing; here a resize is a
// restart, and a device counts as a device where the cluster has several models.
package afs

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/divide"
	"github.com/musterdl/muster/allocate/ladder"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "afs", System: "AFS", Step: "allocate", Part: allocate.JointPart, Status: "after",
	Source:     "Hwang et al., NSDI 2021; TuftsNATLab/PCS",
	Idea:       "each device to the winner of a knock-out in which every two jobs are compared by what it does to their completion",
	Challenges: []string{"C4"}, Goal: "throughput",
	Needs: "rates by worker count; the work that is left, or without it the work done",
	Live:  "elastic launch: a resize is a restart from the last checkpoint",
	Inner: "which of two jobs gains more for both from a device: the change of the sum of their completion times",
}

// Config tunes when shares change and what is assumed of jobs of unknown length.
type Config struct {
	// Every is how often shares may change at most; 0 is at every arrival and end.
	Every unit.Duration `yaml:"every" least:"0"`
	// FirstQueue is the attained service, in reference running time, up to which a job of
	// unknown length is in the first queue. Each further queue reaches twice as far. A
	// job is taken to have as much left as its queue reaches.
	FirstQueue unit.Duration `yaml:"first-queue" above:"0"`
	// Rule is who gets the next device: one of Rules.
	Rule string `yaml:"rule"`
}

// Rules are AFS's own, and those that its claim compares it with: the job that could end
// soonest has all it can use, the next device to the job whose time left falls most, and
// equal shares.
var Rules = []string{"pairs", "shortest", "gain", "equal"}

// Default returns the configuration used where none is given.
func Default() Config {
	return Config{Every: unit.Minute, FirstQueue: 15 * unit.Minute, Rule: Rules[0]}
}

// Validate says whether there is such a rule.
func (c Config) Validate() error {
	if !slices.Contains(Rules, c.Rule) {
		return fmt.Errorf("rule is %q: it must be one of %q", c.Rule, Rules)
	}
	return nil
}

// Policy is the strategy. Its fields beyond the configuration are scratch.
type Policy struct {
	config   Config
	known    ladder.Table
	ladders  []*ladder.Ladder
	claims   []divide.Claimant
	steps    []divide.Step
	knockout divide.Knockout
}

var (
	_ allocate.Joint  = (*Policy)(nil)
	_ allocate.Rhythm = (*Policy)(nil)
)

// New returns the policy; the configuration must be valid.
func New(c Config) *Policy { return &Policy{config: c} }

// Every is how often shares may change at most.
func (p *Policy) Every() unit.Duration { return p.config.Every }

// Wishes divides all devices among all jobs anew.
func (p *Policy) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	p.ladders, p.claims = p.ladders[:0], p.claims[:0]
	devices := p.known.Survey(v)
	for _, id := range jobs {
		l := p.known.Of(v, id)
		p.ladders = append(p.ladders, l)
		p.claims = append(p.claims, divide.Claimant{Left: float64(p.left(v, id)), Most: l.Most()})
	}
	shares := p.divide(devices)
	for i, id := range jobs {
		w := allocate.Wish{Job: id, Workers: p.ladders[i].Workers(shares[i]), Reason: plan.Reason{Code: plan.RoundPlan}}
		if v.Shape(id).Devices == 0 {
			w.Workers = v.Shape(id).Gang // work without devices is in nobody's way
		}
		into = append(into, w)
	}
	return into, unit.Never
}

// divide is the devices of every job, by the rule.
func (p *Policy) divide(devices int32) []int32 {
	if p.config.Rule != Rules[0] {
		return p.climb(devices)
	}
	shares := p.knockout.Pairs(p.claims, devices, func(i int, n int32) float64 { return p.ladders[i].Rate(n) })
	for i, n := range shares {
		shares[i] = p.ladders[i].Down(n)
		devices -= shares[i]
	}
	p.reach(shares, devices)
	return shares
}

// reach hands what rounding left to the jobs whose next count it reaches: by the pair
// rule, the gain spread over the devices of the step.
func (p *Policy) reach(shares []int32, spare int32) {
	p.steps = p.steps[:0]
	for i := range p.ladders {
		p.steps = append(p.steps, p.step(i, shares[i]))
	}
	p.knockout.Play(p.steps, spare, func(i int) divide.Step {
		shares[i] += p.steps[i].Units
		return p.step(i, shares[i])
	})
}

// step is a job's next step from so many devices; where there is none, to nothing more.
func (p *Policy) step(job int, has int32) divide.Step {
	l := p.ladders[job]
	s := divide.Side{Left: p.claims[job].Left, First: l.Rate(1), Now: l.Rate(has)}
	next, ok := l.Up(has)
	if s.More = s.Now; ok {
		s.More += (l.Rate(next) - s.Now) / float64(next-has)
	}
	return divide.Step{Contender: divide.NewContender(s), Units: next - has}
}

// left is what a job is believed to need still, at least a microsecond.
func (p *Policy) left(v plan.View, id plan.JobID) unit.Duration {
	if left, known := v.Left(id); known {
		return max(1, left)
	}
	reach := p.config.FirstQueue
	for done := v.Work(id); reach <= done; {
		reach *= 2
	}
	return reach
}
