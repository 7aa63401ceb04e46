// Package chance reserves room by how long jobs like a job ran, as a distribution, and lets the short pass:
// backfill that believes no estimate.
//
// Three rules. Whoever waits is passed by those who are likely to be over sooner, by the median of jobs like them:
// on the same devices the short one loses less by the long one's wait than the other way round. A gang that is wider than
// any node does not find its room by luck; it has a claim where its room is gathered, nine times in ten for each run that is in the
// way, before that has kept idle as much device time as the gang is likely to use: half of the room, on the average, until it is
// complete. Others pass a claim if nine in ten like them are over by then. The oldest has a claim whatever that costs
// once it has waited for Patience, and from Slack after the instant first promised its room is closed, as under EASY.
//
// After EASY (Lifka, JSSPP 1995), with distributions in the place of estimates as 3Sigma has them (Park et al., EuroSys 2018), and
// shortest first among those who fill in (Tsafrir et al., TPDS 2007). Left out: what an estimator believes, such as
// the truth of oracle; a claim's chance is that of each run in its way and not of all together.
package chance

import (
	"math"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile/lifetime"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "chance", Part: calendar.ReservePart, Step: "schedule", Status: "after",
	Source: "after Lifka (JSSPP 1995), 3Sigma (Park et al., EuroSys 2018) and Tsafrir et al. (TPDS 2007)",
	Idea:   "the short pass the long; a wide gang has a claim where gathering its room keeps less idle than it uses, by how long jobs like those in the way ran",
	Goal:   "throughput", Needs: "nothing; learns from finished jobs", Live: "as simulated",
}

// Config tunes what is claimed.
type Config struct {
	// Depth, Patience and Slack are those of calendar.Policy.
	Depth    int           `yaml:"depth" least:"0"`
	Patience unit.Duration `yaml:"patience" least:"0"`
	Slack    unit.Duration `yaml:"slack" least:"0"`
	// Chance is that with which each run is over by when it is reckoned to be.
	Chance float64 `yaml:"chance" above:"0" below:"1"`
	// Refresh is how often finished jobs are taken in.
	Refresh unit.Duration `yaml:"refresh" above:"0"`
	// Prior is how many jobs of one's own group weigh as much as what coarser groups say.
	Prior float64 `yaml:"prior" above:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config {
	return Config{Depth: 1, Patience: 7 * unit.Day, Slack: 4 * unit.Hour, Chance: .8, Refresh: unit.Hour, Prior: 30}
}

// New returns the policy; the configuration must be valid.
func New(c Config) calendar.Policy {
	return calendar.Policy{Depth: c.Depth, Patience: c.Patience, Slack: c.Slack,
		Foresight: &foresight{chance: c.Chance, past: lifetime.New(lifetime.Config{Refresh: c.Refresh, Prior: c.Prior})}}
}

// foresight is the strategy.
type foresight struct {
	chance float64
	past   *lifetime.Past
	nodes  int // so many are in widest
	widest map[int32]int32
}

var (
	_ calendar.Foresight = (*foresight)(nil)
	_ schedule.Learner   = (*foresight)(nil)
)

// Learn takes in how long a finished job ran.
func (f *foresight) Learn(v plan.View, id plan.JobID) { f.past.Learn(v, id) }

// Step is how long jobs like a job take at the median, in the steps of lifetime.
func (f *foresight) Step(v plan.View, id plan.JobID) (int32, unit.Time) {
	left := f.left(v, id, .5).Seconds()
	hours := 1 + f.past.Wait(v, id).Seconds()/3600
	return int32(math.Floor(4 * math.Log2(left/hours))), f.past.Until()
}

// left is what a job has still to run, on the workers that it asked for, with some chance.
func (f *foresight) left(v plan.View, id plan.JobID, part float64) unit.Duration {
	j := v.Job(id)
	t, scale, ran := f.past.Of(v, id), lifetime.Scale(&j), lifetime.Ran(v, id)
	return max(unit.Second, unit.Seconds(t.Quantile(lifetime.StepOf(ran/scale), part)*scale-ran))
}

// Length is how long a run takes with the chance, and no longer than its time limit.
func (f *foresight) Length(v plan.View, id plan.JobID, workers int32) unit.Duration {
	length := f.left(v, id, f.chance)
	if gang := v.Shape(id).Gang; workers != gang && workers > 0 {
		length = length * unit.Duration(gang) / unit.Duration(workers)
	}
	if _, limit, _ := v.Believed(id); limit > 0 {
		length = min(length, limit)
	}
	return max(1, length)
}

// Expected is when a run is over with the chance, given that it has come so far.
func (f *foresight) Expected(v plan.View, id plan.RunID) (end unit.Time, steady bool) {
	r := v.Run(id)
	end = v.Now().Add(f.Length(v, r.Job, r.Workers))
	if _, limit, _ := v.Believed(r.Job); limit > 0 && r.Status == plan.Running {
		end = min(end, max(r.Began.Add(limit), v.Now()+1))
	}
	return end, false
}

// Claims are for gangs that are wider than any node that they may use.
func (f *foresight) Claims(v plan.View, id plan.JobID, workers int32) bool {
	if f.nodes > v.Nodes() {
		f.nodes, f.widest = 0, nil // another state
	}
	if f.widest == nil {
		f.widest = map[int32]int32{}
	}
	for ; f.nodes < v.Nodes(); f.nodes++ {
		n := v.Node(plan.NodeID(f.nodes))
		f.widest[n.Model] = max(f.widest[n.Model], n.Count)
	}
	shape, widest := v.Shape(id), int32(0)
	for model, count := range f.widest {
		if shape.Models&(1<<model) != 0 {
			widest = max(widest, count)
		}
	}
	return shape.WholeDevices(workers) > widest
}

// Pays: while its room is gathered half of it is idle, on the average, and that for no longer than twice
// as long as the gang is likely to run, and those after it who are alike.
func (f *foresight) Pays(v plan.View, id plan.JobID, alike int, at unit.Time) bool {
	return at != unit.Never && at.Sub(v.Now()) <= 2*unit.Duration(alike)*f.left(v, id, .5)
}
