// Package elastic is the house decider for elastic jobs: a device goes where a second of it is
// worth most for the mean completion time, a restart counted.
//
// Devices have one price, in seconds of waiting for a second of a device, at which the jobs
// together want as many as there are. A job takes the count with which it gains most over what
// that costs. Its gain is its rate times the worth of a second of its work: what that second would
// cost at the end of the job, waiting and devices, at the best count for it and the price of then
// (the costate of Pontryagin's principle, one job against a price). The price falls as the work
// that is there gets done. So, where there is a crowd, who ends soon comes first, as the theory
// has it for jobs whose rates are one power of their devices (heSRPT, Berg et al., 2020); and whom
// more devices do not speed up has few. The marginal rule is that of AFS and Optimus; that what
// counts is the goodput at the best batch of each size is Pollux'.
//
// A count other than a job's present one is worth less by what its restart takes of the time for
// which it can be expected to hold, and so is to stop it: small gains are not run after. At its
// present count a job goes as fast as it is seen to.
//
// How much is left of a job is what its own reports of progress say, by the work that is done;
// without reports its estimate; without one, as much as it has done. Nothing is learned or
// remembered from one decision to the next. What a job says is believed: one that claims to
// have nearly ended has devices sooner.
//
// Left out: choosing batches, which is the training loop's part (a job's menu holds the best of
// each size); moving a job that keeps its size; a bound on the wait of who is long and wide while
// short ones keep coming. Where the cluster has several models a device counts as a device.
package elastic

import (
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/ladder"
	"github.com/musterdl/muster/mechanism/rank"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "elastic", Step: "allocate", Part: allocate.JointPart, Status: "ours",
	Source: "ours, after Pollux (OSDI 2021), AFS (NSDI 2021) and heSRPT (Performance Evaluation 2020)",
	Idea:   "devices at one price: each job takes the count that gains most for the mean completion time, restarts counted",
	Goal:   "throughput", Challenges: []string{"C4"}, Needs: "rates by workers (menu); progress as jobs report it, or an estimate, or nothing",
	Live: "resizes by checkpoint and restart; batches are the training loop's",
}

// Config is the rhythm, and what is assumed where nothing is known.
type Config struct {
	// Every is how often shares may change at most; 0 is at every arrival and end.
	Every unit.Duration `yaml:"every" least:"0"`
	// Holds is how long a share is expected to last: a restart must pay in that time, or
	// before its job ends.
	Holds unit.Duration `yaml:"holds" above:"0"`
	// Unknown is the least that a job of which nothing is known is taken to have left, in
	// reference running time. It is taken to have as much left as it has done.
	Unknown unit.Duration `yaml:"unknown" above:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config {
	return Config{Every: unit.Minute, Holds: 10 * unit.Minute, Unknown: 5 * unit.Minute}
}

// Policy is the strategy. Its fields beyond the configuration are scratch.
type Policy struct {
	config  Config
	ladders ladder.Table
	market  market
	order   rank.Order
	wishes  []allocate.Wish
}

var (
	_ allocate.Joint  = (*Policy)(nil)
	_ allocate.Rhythm = (*Policy)(nil)
)

// New returns the policy; the configuration must be valid.
func New(c Config) *Policy { return &Policy{config: c} }

// Every is how often shares may change at most.
func (p *Policy) Every() unit.Duration { return p.config.Every }

// Wishes shares all devices out anew, the largest shares first, since small ones fit into what
// those leave. What is left of jobs changes with time, so it wants to look again though nothing
// happens.
func (p *Policy) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	if len(jobs) == 0 {
		return into, unit.Never
	}
	devices := p.ladders.Survey(v)
	p.market.holds, p.market.jobs = p.config.Holds.Seconds(), p.market.jobs[:0]
	for _, id := range jobs {
		p.market.jobs = append(p.market.jobs, p.describe(v, id))
	}
	p.market.share(devices)
	first := len(into)
	for i, id := range jobs {
		j := &p.market.jobs[i]
		w := allocate.Wish{Job: id, Workers: j.Count[j.gets], Reason: plan.Reason{Code: plan.RoundPlan}}
		if v.Shape(id).Devices == 0 {
			w.Workers = v.Shape(id).Gang // work without devices is in nobody's way
		}
		into = append(into, w)
	}
	into = p.largest(v, into, first)
	return into, v.Now().Add(max(p.config.Every, unit.Minute))
}

// largest puts the wishes from the first on in order.
func (p *Policy) largest(v plan.View, wishes []allocate.Wish, first int) []allocate.Wish {
	p.wishes = append(p.wishes[:0], wishes[first:]...)
	p.order.Begin(len(p.wishes))
	for i := range p.wishes {
		w := &p.wishes[i]
		p.order.Keys[i] = math.MaxInt32 - uint64(w.Workers*v.Shape(w.Job).Devices)
	}
	wishes = wishes[:first]
	for _, i := range p.order.Sort() {
		wishes = append(wishes, p.wishes[i])
	}
	return wishes
}

// describe is a job as the market sees it.
func (p *Policy) describe(v plan.View, id plan.JobID) job {
	at := v.Job(id)
	l := p.ladders.Of(v, id)
	j := job{Ladder: l, left: max(p.left(v, id), unit.Second).Seconds(), restart: (at.Checkpoint.Save + at.Checkpoint.Load).Seconds()}
	if at.Run != plan.None {
		j.has = max(0, slices.Index(l.Count, v.Run(at.Run).Workers))
		j.goes = float64(v.Run(at.Run).RateMicro) / plan.FullRate // it may be spread, or held up
	}
	if at.Attempt == 0 {
		j.restart = 0 // it never ran, so it has nothing to load
	}
	return j
}

// left is the reference running time that a job still needs.
func (p *Policy) left(v plan.View, id plan.JobID) unit.Duration {
	done := v.Work(id)
	if part := min(1, float64(v.Job(id).Progress)/plan.FullRate); part > 0 && done > 0 {
		return unit.Duration(float64(done) / part * (1 - part))
	}
	if left, known := v.Left(id); known {
		return left
	}
	return max(p.config.Unknown, done)
}
