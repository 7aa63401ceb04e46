package month

import (
	"errors"
	"slices"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/pipeline/shape"
)

// What runs: Llama 3 70B with Adam, on nodes of eight H100 with 400 Gb/s for each. Every copy
// holds the whole state of the optimiser, so that what one loses another has.
const (
	model   = "llama-3-70b"
	device  = "H100"
	inNode  = 8
	out     = 8 * 400_000 // Mb/s of a node
	samples = 4           // of 8,192 tokens, of a step and node
	storage = 16_000      // Mb/s of a node, to checkpoints
	start   = unit.Minute // until processes have begun again
)

// Ground is what a month is played on, the same for all regimes.
type Ground struct {
	Nodes, Spares int
	Sound         parallel.Candidate
	store         unit.Duration
	kind          parallel.Device
	x             *parallel.Simulator // which all plans are simulated by
	sequences     []parallel.Sequence
	planner       parallel.Planner
	plans         map[int]planned // by nodes, which are alike
}

type planned struct {
	parallel.Candidate
	why parallel.Why
}

// New plans the run for sound nodes, with the spares that pay for lost ones.
func New(nodes int) (*Ground, error) {
	g := &Ground{Nodes: nodes, plans: map[int]planned{}}
	at := slices.IndexFunc(shape.Presets, func(s shape.Shape) bool { return s.Name == model })
	profile, whys := shape.New(shape.Presets[at], shape.Half)
	kind, why := shape.Device(device, shape.Half)
	if len(whys) > 0 {
		return nil, whys[0]
	}
	if why != "" {
		return nil, errors.New(string(why))
	}
	m := &parallel.Model{Name: model, Profile: profile, Batch: samples * nodes, State: parallel.MixedAdam}
	g.kind, g.x = kind, parallel.NewSimulator(m, parallel.Even(kind, nodes, inNode, out))
	for _, name := range []string{"1f1b", "zb-h1"} {
		c, err := catalogue.Parse("month", "sequence: "+name+"\nplanner: ptd-p\n")
		if err != nil {
			return nil, err
		}
		filled, err := c.Fill(catalogue.Env{})
		if err != nil {
			return nil, err
		}
		g.planner = strategy.In[parallel.Planner](filled, parallel.PlannerPart)
		g.sequences = append(g.sequences, parallel.Sequence{Name: name, Order: strategy.In[pipeline.Ordering](filled, pipeline.SequencePart)})
	}
	p := g.planFor(nodes)
	if p.why != "" {
		return nil, errors.New(string(p.why))
	}
	g.Sound = p.Candidate
	copies := len(g.Sound.Plan.Pipelines)
	g.Spares = reaction.Spares(nodes, lost.every, lost.lasts, max(1, nodes/copies))
	most := int64(0)
	for _, m := range g.Sound.Result.Parts[0].Timing.Peak {
		most = max(most, m.ParamKiB)
	}
	g.store = parallel.Link{Bandwidth: storage / inNode}.Takes(most)
	return g, nil
}

// planFor is the plan of so many sound nodes.
func (g *Ground) planFor(nodes int) planned {
	if p, seen := g.plans[nodes]; seen {
		return p
	}
	// As many nodes as make copies of equal size that divide the batch: a few may be idle.
	var p planned
	for n := nodes; n > nodes*3/4; n-- {
		x := g.x.With(parallel.Even(g.kind, n, inNode, out))
		all, why := g.planner.Plans(x, parallel.Limits{Sequences: g.sequences, Tensor: inNode})
		if why == "" && (p.Plan.Samples == 0 || all[0].Result.Step < p.Result.Step) {
			p.Candidate = all[0]
		}
		if p.why = why; why == "" && n < nodes-inNode {
			break
		}
	}
	if p.Plan.Samples > 0 {
		p.why = ""
	}
	g.plans[nodes] = p
	return p
}

// Month is what became of a run.
type Month struct {
	// Goodput is the work that counts over what sound devices would do in that time.
	Goodput float64 `json:"goodput"`
	Faults  int     `json:"faults"`
	// Took counts what was done.
	Took map[string]int `json:"took"`
}

// Price is the policy that takes the cheapest way; the others always take theirs.
const Price = "by price"

// run is one under way.
type run struct {
	*Ground
	*Regime
	Month
	policy string
	r      reaction.Run
	active []fault
	at     unit.Time
	ready  unit.Time // when it computes again
	step   unit.Duration
	work   unit.Duration // done, in time of sound devices
	waits  bool
	every  unit.Duration // between checkpoints
}

// Play plays a regime under a policy.
func (g *Ground) Play(regime *Regime, policy string, days int, seed uint64) Month {
	end := unit.Time(unit.Duration(days) * unit.Day)
	stops, repair := regime.stops(g.Nodes)
	x := &run{Ground: g, Regime: regime, policy: policy, step: g.Sound.Result.Step, every: reaction.Interval(g.store, stops)}
	x.Took = map[string]int{}
	x.r = reaction.Run{Sound: g.Sound.Result.Step, Full: g.Sound.Plan, Now: g.Sound.Plan, Sequences: g.sequences, Repair: repair, Start: start, Store: g.store, Plan: x.plan}
	faults := regime.draw(g.Nodes+g.Spares, end, seed)
	x.Faults = len(faults)
	for {
		next := end
		if len(faults) > 0 {
			next = min(next, faults[0].at)
		}
		for _, f := range x.active {
			next = min(next, f.until)
		}
		if x.advance(next); next == end {
			x.Goodput = float64(x.work) / float64(end)
			return x.Month
		}
		was := x.r.Away
		x.active = slices.DeleteFunc(x.active, func(f fault) bool { return f.until <= next })
		for len(faults) > 0 && faults[0].at <= next {
			x.active = append(x.active, faults[0])
			faults = faults[1:]
		}
		x.r.Left = end.Sub(next)
		x.world()
		for _, d := range was {
			if !slices.Contains(x.r.Away, d) {
				x.r.Empty = append(x.r.Empty, d)
			}
		}
		x.react()
	}
}

// advance computes until then.
func (x *run) advance(until unit.Time) {
	if from := max(x.at, x.ready); until > from && !x.waits {
		worked := float64(until.Sub(from)) * float64(x.every) / float64(x.every+x.store)
		done := unit.Duration(worked * float64(x.r.Sound) / float64(x.step))
		x.work += done
		x.r.Since = (x.r.Since + done) % x.every
	}
	x.at = until
}

// world makes the devices as they are.
func (x *run) world() {
	on := parallel.Even(x.kind, x.Nodes+x.Spares, inNode, out)
	x.r.Away = nil
	for _, f := range x.active {
		for _, n := range f.nodes {
			switch {
			case f.cause.link:
				on.Nodes[n].Out = min(on.Nodes[n].Out, unit.Mbps(f.left*out))
			case f.left > 0:
				if on.Speeds == nil {
					on.Speeds = slices.Repeat([]float64{1}, on.Len())
				}
				at := n*inNode + f.device
				on.Speeds[at] = min(on.Speeds[at], f.left)
			default:
				for d := range int32(inNode) {
					x.r.Away = append(x.r.Away, n*inNode+d)
				}
			}
		}
	}
	slices.Sort(x.r.Away)
	x.r.Away = slices.Compact(x.r.Away)
	x.r.X = x.x.With(on)
}

// plan is that of the nodes that are whole.
func (x *run) plan(without []int32) (c parallel.Candidate, why parallel.Why) {
	left, was := x.r.X.On.Without(without)
	p := x.planFor(min(x.Nodes, len(left.Nodes)))
	if p.why != "" {
		return c, p.why
	}
	c.Plan = p.Plan.On(was)
	c.Result, why = x.r.X.Simulate(&c.Plan)
	return c, why
}

// react chooses how the run goes on. Who always does the same does so where something is broken that
// the run uses; where that cannot be, and when all is whole again, it takes what is cheapest of
// what everybody can do.
func (x *run) react() {
	options := x.r.Options(x.allowed()...)
	if len(options) == 0 || options[0].Why != "" {
		x.waits = true
		return
	}
	o := &options[0]
	for i := range options {
		if options[i].Name == x.policy && options[i].Why == "" && x.broken(x.r.Now.Devices()) {
			o = &options[i]
		}
	}
	if o.Name == reaction.Ride && x.waits {
		o.Pause = start + x.store
	}
	x.Took[o.Name]++
	x.work -= min(x.work, o.Redo)
	x.r.Since = max(0, x.r.Since-o.Redo)
	x.waits = o.Name == reaction.Wait
	if x.waits {
		return
	}
	x.ready = max(x.ready, x.at).Add(o.Pause)
	if o.Pause == 0 && x.ready < x.at {
		x.ready = x.at
	}
	x.step, x.r.Now = o.Step, o.Plan
	if o.Name == reaction.Swap {
		x.r.Full = o.Plan
	}
	if o.Name == reaction.Swap || o.Name == reaction.Restart {
		used := o.Plan.Devices()
		x.r.Empty = slices.DeleteFunc(x.r.Empty, func(d int32) bool { return slices.Contains(used, d) })
	}
}

// broken reports whether any of the devices are on a node that has something broken.
func (x *run) broken(devices []int32) bool {
	return slices.ContainsFunc(x.active, func(f fault) bool {
		return slices.ContainsFunc(f.nodes, func(n int32) bool { return slices.Contains(devices, n*inNode) })
	})
}

// allowed are the ways that a policy looks at; none is all.
func (x *run) allowed() []string {
	now, full := x.r.Now.Devices(), x.r.Full.Devices()
	empty := slices.ContainsFunc(x.r.Empty, func(d int32) bool { return slices.Contains(now, d) })
	if slices.Equal(now, full) && !x.broken(now) && !x.waits && !empty {
		return []string{reaction.Ride, reaction.Swap}
	}
	if x.policy == Price {
		return nil
	}
	common := []string{reaction.Ride, reaction.Restart, reaction.Wait}
	if !x.broken(full) {
		return append(common, reaction.Swap) // back to the full plan
	}
	return append(common, x.policy)
}
