package planning

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/reaction"
)

// Outlook is what nobody knows of a run before it has run, and prices depend on.
type Outlook struct {
	Spares int           // idle nodes, each like the lost one
	Repair unit.Duration // until the node is back, in the mean
	Since  unit.Duration // of work that no checkpoint has
	Left   unit.Duration // of work
	Start  unit.Duration // until processes have begun again and found each other
	// Sooner is how much sooner counts against cheaper in a choice of sites: 0 is cost alone, 1 time alone.
	Sooner float64
}

// Usual is the outlook of a large run of which nothing is known: a node is away for half a day, a
// checkpoint is written each hour, there are no spares, and time and cost
// count alike.
var Usual = Outlook{Repair: 12 * unit.Hour, Since: 30 * unit.Minute, Left: 7 * unit.Day, Start: unit.Minute, Sooner: .5}

// Loss is what it costs to lose the first node of the best plan.
type Loss struct {
	Devices int `json:"devices"` // of the node
	// SpareNodes, RepairSec, SinceSec, LeftSec and StartSec are what was taken for granted.
	SpareNodes int     `json:"spare_nodes"`
	RepairSec  float64 `json:"repair_s"`
	SinceSec   float64 `json:"since_checkpoint_s"`
	LeftSec    float64 `json:"left_s"`
	StartSec   float64 `json:"start_s"`
	// StoreSec is how long it takes to read weights and state over the uplinks.
	StoreSec float64 `json:"store_s"`
	// Reactions are the ways to go on, the cheapest first, and then those that cannot be.
	Reactions []Reaction `json:"reactions"`
	// NotAsked says which plans were not looked for.
	NotAsked string `json:"not_asked,omitempty"`
}

// Reaction is a way to go on, as a run that broke shows it.
type Reaction struct {
	Way            string  `json:"way"`
	Plan           string  `json:"plan,omitempty"` // that it goes by then
	PauseSec       float64 `json:"pause_s"`
	RedoSec        float64 `json:"redo_s"`
	StepSec        float64 `json:"step_s,omitempty"`
	PriceDeviceSec float64 `json:"price_device_s"`
	Why            string  `json:"why,omitempty"` // why it cannot be
}

// A command that answers in seconds cannot search for each plan anew, and cannot put all
// pipelines of the largest plans into one schedule. What is left out is said.
const (
	// mostAnew is the most devices for which planners are asked a second time.
	mostAnew = 256
	// mostPasses is the most passes of a schedule of all pipelines.
	mostPasses = 1 << 17
)

// lose prices the ways to go on without the first node of the best plan.
func (c *Comparison) lose(x *parallel.Simulator, best *parallel.Candidate, planners []Named) {
	node := x.On.NodeOf(best.Plan.Pipelines[0].Ranks[0].Devices[0])
	if int(x.On.Nodes[node].Count) == x.On.Len() && c.task.Outlook.Spares == 0 {
		return // nothing is left that could go on
	}
	l := loss{Comparison: c, x: x, best: best, planners: planners}
	if spares := c.task.Outlook.Spares; spares > 0 {
		// They come last, so that the devices of the plan keep their numbers.
		on := &parallel.Devices{Kinds: x.On.Kinds, Sites: x.On.Sites, Racks: x.On.Racks, Nodes: slices.Concat(x.On.Nodes, slices.Repeat([]parallel.Node{x.On.Nodes[node]}, spares))}
		l.x = x.Like(x.Model, on.Index())
	}
	for d := range int32(l.x.On.Len()) {
		if l.x.On.NodeOf(d) == node {
			l.lost = append(l.lost, d)
		}
	}
	o := &c.task.Outlook
	r := reaction.Run{Sound: best.Result.Step, Full: best.Plan, Now: best.Plan, X: l.x, Away: l.lost, Sequences: c.task.Limits.Sequences, Plan: l.anew, Recover: l.recover,
		Passes: mostPasses, Left: o.Left, Since: o.Since, Repair: o.Repair, Start: o.Start, Store: load(x, best)}
	for _, n := range l.x.On.Nodes {
		r.Links = append(r.Links, n.Out)
	}
	c.Lost = &Loss{Devices: len(l.lost), SpareNodes: o.Spares, RepairSec: o.Repair.Seconds(), SinceSec: o.Since.Seconds(), LeftSec: o.Left.Seconds(), StartSec: o.Start.Seconds(), StoreSec: r.Store.Seconds()}
	for _, way := range r.Options() {
		one := Reaction{Way: way.Name, Why: string(way.Why)}
		if way.Why == "" {
			one.Plan = text(l.x, &way.Plan)
			one.PauseSec, one.RedoSec, one.StepSec, one.PriceDeviceSec = way.Pause.Seconds(), way.Redo.Seconds(), way.Step.Seconds(), way.Price
		}
		c.Lost.Reactions = append(c.Lost.Reactions, one)
	}
	if l.x.On.Len()-len(l.lost) > mostAnew {
		c.Lost.NotAsked = fmt.Sprintf("no planner was asked for the %d devices that are left, as it is of %d at most: to restart, pipelines that are left or have fewer ranks were looked at", l.x.On.Len()-len(l.lost), mostAnew)
	}
}

// loss is what is asked of planners when a node is lost.
type loss struct {
	*Comparison
	x        *parallel.Simulator
	best     *parallel.Candidate
	planners []Named
	lost     []int32
}

// recover is the soonest of what planners know that need no checkpoint.
func (l *loss) recover(lost []int32) (soonest parallel.Recovery, why parallel.Why) {
	why = "no planner that was asked knows a way"
	for i := range l.planners {
		p := &l.planners[i]
		r, can := p.Planner.(parallel.Recoverer)
		if !can || p.Auto && l.x.On.Len() > mostAsked {
			continue
		}
		if how, not := r.Recover(l.x, &l.best.Plan, lost, l.task.Limits); not == "" && !how.Restart && (why != "" || how.Takes < soonest.Takes) {
			soonest, why = how, ""
		}
	}
	return soonest, why
}

// anew is the fastest plan for what is left: what the planners say that chose the best, or were
// named, and the best with pipelines of fewer ranks, which needs no search.
func (l *loss) anew(without []int32) (fastest parallel.Candidate, why parallel.Why) {
	fastest, why = l.shorter(without)
	if l.x.On.Len()-len(without) > mostAnew {
		return fastest, why
	}
	for i := range l.planners {
		p := &l.planners[i]
		if p.Auto && !slices.Contains(l.Rows[0].By, p.Name) {
			continue
		}
		limits := l.task.Limits
		if p.Sequences != nil {
			limits.Sequences = p.Sequences
		}
		how, not := parallel.Restart(l.x, p.Planner, without, limits)
		if not == "" && (why != "" || how.Result.Step < fastest.Result.Step) {
			fastest, why = how.Candidate, ""
		} else {
			why = cmp.Or(why, not)
		}
	}
	return fastest, why
}

// shorter is the best plan with as many ranks less as do not fit on what is left.
func (l *loss) shorter(without []int32) (parallel.Candidate, parallel.Why) {
	var none parallel.Candidate
	s, like := l.best.Plan.Shape()
	left, was := l.x.On.Without(without)
	if !like {
		return none, "its pipelines are unlike"
	}
	if s.Ranks = min(s.Ranks, left.Len()/s.Tensor/s.Copies); s.Ranks == 0 {
		return none, parallel.Why(fmt.Sprintf("%d devices are left: expected one for each of %d copies", left.Len(), s.Copies))
	}
	x := l.x.Like(l.x.Model, left)
	cuts, why := x.Cuts(&s, l.task.Cut)
	if why != "" {
		return none, why
	}
	s.Cuts = cuts
	on := s.Plan()
	plan := on.On(was)
	r, why := l.x.Simulate(&plan)
	return parallel.Candidate{Plan: plan, Result: r}, why
}

// load is how long the devices of a plan take to read their weights and the state of the
// optimiser, each over its part of the uplink of its node.
func load(x *parallel.Simulator, c *parallel.Candidate) (longest unit.Duration) {
	s := x.Model.State
	part := (s.Weights + s.Optimizer) / max(1e-9, s.Weights+s.Gradients+s.Optimizer)
	for i := range c.Plan.Pipelines {
		for r, rank := range c.Plan.Pipelines[i].Ranks {
			n := &x.On.Nodes[x.On.NodeOf(rank.Devices[0])]
			out := parallel.Link{Bandwidth: n.Out / unit.Mbps(max(1, n.Count))}
			longest = max(longest, out.Takes(int64(part*float64(c.Result.Parts[i].Timing.Peak[r].ParamKiB))))
		}
	}
	return longest
}
