package spot

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/reaction"
)

// How a run is played: between two changes of what nodes there are it works by one plan, whose step
// the simulation told; at a change it stops for as long as the copies or the restart take, and goes
// on by another. Nothing is drawn by chance.

// Ground is what a run is played on.
type Ground struct {
	Trace Trace
	// X is of as many nodes as there are at most; they are alike.
	X      *parallel.Simulator
	Limits parallel.Limits
	// Start is how long processes take to begin again and to find each other, whatever they do
	// besides: the same for who restarts and who does not.
	Start unit.Duration

	plans map[planned]known // of so many nodes, which are all alike
}

type planned struct {
	planner parallel.Planner
	nodes   int
}

type known struct {
	best  parallel.Candidate
	found bool
}

// Policy is how a run goes on.
type Policy struct {
	Planner parallel.Planner
	// Copies says that it goes on from what devices hold where it can; else from the checkpoint.
	Copies bool
	// Fixed, where it is set, is how many nodes it takes, always.
	Fixed int
}

// Report is what got done.
type Report struct {
	Samples  float64 // that count
	Lost     float64 // that were done again
	Restarts int     // from a checkpoint
	Recovers int     // by copies
	Stopped  unit.Duration
}

// run is one under way.
type run struct {
	*Ground
	Policy
	Report
	here  []int32
	plan  *parallel.Candidate
	at    unit.Time     // so far it is told
	ready unit.Time     // when it computes again
	since unit.Duration // of work that no checkpoint has
	step  unit.Duration // of work since the last step began
}

// Play plays a policy. The time between checkpoints is the best for how often nodes go.
func (g *Ground) Play(p Policy) Report {
	r := run{Ground: g, Policy: p}
	for _, c := range g.Trace.Changes {
		r.work(c.At)
		r.change(&c)
	}
	r.work(g.Trace.End)
	return r.Report
}

// work computes until then, with the checkpoints that come due. What it tells is a mean: how far
// the last step and the last checkpoint are is known, but not each single one of them, so that a
// trace of weeks is played in no time.
func (r *run) work(until unit.Time) {
	if r.plan == nil || r.ready >= until {
		r.Stopped += until.Sub(r.at)
		r.at = until
		return
	}
	r.Stopped += max(0, r.ready.Sub(r.at))
	took := until.Sub(max(r.at, r.ready))
	// Checkpoints slow the run as much as they take; what they save is in redo.
	cost := r.stored(r.plan)
	interval := reaction.Interval(cost, r.Trace.Between())
	worked := unit.Duration(float64(took) * float64(interval) / float64(interval+cost))
	r.Samples += r.rate() * float64(worked)
	r.since = (r.since + worked) % interval
	r.step = (r.step + worked) % r.plan.Result.Step
	r.at = until
}

// rate is samples for each microsecond of work.
func (r *run) rate() float64 { return float64(r.X.Model.Batch) / float64(r.plan.Result.Step) }

// stored is how long it takes to write what the fullest device holds, or to read it. All write at
// the same time, each through the link of its node, and the run waits for them.
func (g *Ground) stored(c *parallel.Candidate) unit.Duration {
	most := int64(0)
	for _, part := range c.Result.Parts {
		for _, m := range part.Timing.Peak {
			most = max(most, m.ParamKiB)
		}
	}
	return parallel.Link{Bandwidth: g.X.On.Nodes[0].Out}.Takes(most)
}

// change lets nodes come and go.
func (r *run) change(c *Change) {
	r.here = slices.DeleteFunc(r.here, func(n int32) bool { return slices.Contains(c.Goes, n) })
	r.here = append(r.here, c.Comes...)
	slices.Sort(r.here)
	if r.plan != nil && r.loses(c.Goes) {
		r.lose(c.Goes)
	}
	// From nothing it begins with what the checkpoint has.
	if r.plan == nil {
		if next, found := r.best(); found {
			r.adopt(next, r.Start+r.stored(next))
		}
		return
	}
	if len(c.Comes) > 0 && r.Fixed == 0 {
		r.grow()
	}
}

// loses reports whether the plan uses a node that goes. Devices are nodes here.
func (r *run) loses(gone []int32) bool {
	return slices.ContainsFunc(r.plan.Plan.Devices(), func(d int32) bool { return slices.Contains(gone, r.X.On.NodeOf(d)) })
}

// lose goes on without nodes. With copies only the step at work is done again, and where no copy is
// left of a layer, or too few nodes, the checkpoint is what there is for everybody.
func (r *run) lose(gone []int32) {
	if keeper, can := r.Planner.(parallel.Recoverer); can && r.Copies {
		if next, why := keeper.Recover(r.X, &r.plan.Plan, r.of(gone), r.Limits); why == "" && !next.Restart {
			r.redo(r.step)
			r.Recovers++
			r.adopt(&next.Candidate, r.Start+next.Takes)
			return
		}
	}
	r.redo(r.since)
	r.Restarts++
	r.since = 0
	next, found := r.best()
	if !found {
		r.plan = nil
		return
	}
	r.adopt(next, r.Start+r.stored(next))
}

// redo takes back so much work.
func (r *run) redo(work unit.Duration) {
	lost := r.rate() * float64(work)
	r.Samples -= lost
	r.Lost += lost
	r.since = max(0, r.since-work)
}

// grow takes in nodes that came, where that makes a step faster. Who restarts for it writes a
// checkpoint before, and loses nothing.
func (r *run) grow() {
	next, found := r.best()
	if !found || next.Result.Step >= r.plan.Result.Step {
		return
	}
	// Whoever cannot copy says so by the same way as after a loss.
	pause := r.stored(r.plan) + r.Start + r.stored(next)
	if r.Copies {
		if moved, why := r.X.Recovery(&r.plan.Plan, &next.Plan, nil); why == "" {
			pause = r.Start + moved.Takes
		}
	} else {
		r.since = 0
	}
	r.redo(r.step)
	r.adopt(next, pause)
}

// adopt goes on by a plan after a pause. A change in the middle of a pause begins another: whatever
// was on its way did not arrive.
func (r *run) adopt(c *parallel.Candidate, pause unit.Duration) {
	r.plan, r.step = c, 0
	r.ready = r.at.Add(pause)
}

// of are the devices of nodes.
func (g *Ground) of(nodes []int32) (devices []int32) {
	for d := range int32(g.X.On.Len()) {
		if slices.Contains(nodes, g.X.On.NodeOf(d)) {
			devices = append(devices, d)
		}
	}
	return devices
}

// best is the fastest plan on the nodes that are here.
func (r *run) best() (*parallel.Candidate, bool) {
	nodes := len(r.here)
	if r.Fixed > 0 {
		if nodes < r.Fixed {
			return nil, false
		}
		nodes = r.Fixed
	}
	k := r.planFor(r.Planner, nodes)
	if !k.found {
		return nil, false
	}
	c := k.best
	c.Plan = c.Plan.On(r.of(r.here))
	return &c, true
}

// planFor is the plan of so many nodes, which is made once: they are alike, and the plan is moved to
// whichever are here.
func (g *Ground) planFor(p parallel.Planner, nodes int) known {
	key := planned{p, nodes}
	if k, seen := g.plans[key]; seen {
		return k
	}
	if g.plans == nil {
		g.plans = map[planned]known{}
	}
	var k known
	if nodes > 0 {
		var absent []int32
		for d := range int32(g.X.On.Len()) {
			if int(g.X.On.NodeOf(d)) >= nodes {
				absent = append(absent, d)
			}
		}
		left, _ := g.X.On.Without(absent)
		if all, why := p.Plans(parallel.NewSimulator(g.X.Model, left), g.Limits); why == "" {
			k = known{all[0], true}
		}
	}
	g.plans[key] = k
	return k
}

// Ideal is what goodput is a part of. It is how many samples would be done if whatever nodes there are worked at once by the best
// plan of any of the planners, and nothing took time.
func (g *Ground) Ideal(planners []parallel.Planner) (samples float64) {
	here, at, rate := 0, unit.Time(0), 0.
	for _, c := range append(slices.Clone(g.Trace.Changes), Change{At: g.Trace.End}) {
		samples += rate * float64(c.At.Sub(at))
		at, rate = c.At, 0
		here += len(c.Comes) - len(c.Goes)
		for _, p := range planners {
			for n := 1; n <= here; n++ {
				if k := g.planFor(p, n); k.found {
					rate = max(rate, float64(g.X.Model.Batch)/float64(k.best.Result.Step))
				}
			}
		}
	}
	return samples
}
