package pipelines

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/drift"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Reactions are how runs with plans go on when what their plans were made for is so no more.
type Reactions struct {
	policy  reaction.Policy // nil has no run changed
	planner *Planner        // nil where another one plans
	hands   Hands
}

// Hands carry out on the draft what is decided of a run. Each keeps a job out of what is held, reports
// whether there was room, and leaves all as it was where there was none.
type Hands interface {
	// Again ends a run and starts its job as wished, in a start that waits for the end.
	Again(d *plan.Draft, run plan.RunID, w *allocate.Wish, holds []plan.Hold) bool
	// GoOn starts a job again that has lost its run, in the processes that are left of it where it keeps some.
	GoOn(d *plan.Draft, w *allocate.Wish, keeps plan.PlanTerms, holds []plan.Hold) bool
	// Waits reports whether a job waits for a start.
	Waits(job plan.JobID) bool
}

// NewReactions are those of a policy, on the plans of a planner.
func NewReactions(policy reaction.Policy, planner *Planner, hands Hands) Reactions {
	return Reactions{policy, planner, hands}
}

// Replan has runs go on in another way whose stages were seen to take other times than their plans say,
// where that loses fewer device-seconds than to go on: by another plan, or without the devices that have
// become slow.
func (s *Reactions) Replan(d *plan.Draft, observed []schedule.Observation) {
	if s.policy == nil || s.planner == nil {
		return
	}
	for i := range observed {
		o := &observed[i]
		run := d.Job(o.Job).Run
		if run == plan.None || d.Run(run).Status != plan.Running {
			continue
		}
		if len(o.Stages) == 0 {
			s.leaveSlow(d, run, o)
			continue
		}
		rules := s.policy.Setting()
		x, by, was := s.planner.going(d.View, run)
		if x == nil {
			s.leaveSlow(d, run, o) // its stages were timed all the same
			continue
		}
		if len(o.Stages) != len(drift.Times(&by.Result)[0]) {
			continue
		}
		is, differs := learned(x, &by, was, o, rules.Skew)
		if !differs {
			continue
		}
		w := drifted{run: run, planner: s.planner, by: by, is: is, slow: slowNodes(d.View, run, o.Slow, rules.Skew)}
		w.now = x.Like(scaled(parallel.Of(Request(*d.ProfileOf(o.Job))), is.layers), slowed(ranks(d.View, run, int32(len(is.devices))), is.devices))
		r := s.broken(d.View, o.Job, &by, w.now)
		r.Drifted, r.Copying, r.Change = true, ranks(d.View, run, int32(len(is.devices))), rules.Change
		r.Left, r.Repair = s.left(d.View, run, &by, w.now), unit.Forever
		if slices.Equal(is.layers, was.layers) && slices.Max(is.devices) > 1 {
			r.Repair = d.Repair(rules.Repair) // layers stay as they are, and a device is repaired
		}
		s.elsewhere(d.View, &w, r)
		s.takes(d, &w, r)
	}
}

// leaveSlow has a run whose plan came with its offer go on in the way that costs least while its devices
// or links are slow: to ride it through, or to leave them, at its size or a smaller one.
func (s *Reactions) leaveSlow(d *plan.Draft, run plan.RunID, o *schedule.Observation) {
	is, skew := d.Run(run), s.policy.Setting().Skew
	if is.Terms.Plan.ID == plan.None || d.Pipeline(is.Terms.Plan.ID).JSON == nil {
		return
	}
	w := drifted{run: run}
	model, several := d.View.Where(run)
	times := 1.
	if times, w.slow = heldUp(d.View, run, o, model, skew); len(w.slow) == 0 {
		return
	}
	r := s.ended(d.View, &schedule.Broken{Job: o.Job, Plan: is.Terms.Plan.ID, Workers: is.Workers, Model: model, Several: several})
	s.saves(d.View, run, r)
	// It is no slower than its slowest device and link make it, nor than it was seen to be.
	if r.Slow = times; o.RateMicro > 0 {
		r.Slow = min(r.Slow, float64(d.Rate(o.Job, model, is.Workers, several))/float64(o.RateMicro))
	}
	if r.Slow > 1+skew {
		s.takes(d, &w, r)
	}
}

// takes has a run go on in the cheapest way that can be had.
func (s *Reactions) takes(d *plan.Draft, w *drifted, r *reaction.Run) {
	job := d.Run(w.run).Job
	ways := s.policy.Ways(r)
	for k := 0; k < len(ways) && ways[k].Why == ""; k++ {
		if ways[k].Why = s.goes(d, w, &ways[k]); ways[k].Why == "" {
			s.keep(d, plan.Reaction{Job: job, Cause: plan.Drifted, Chosen: ways[k].Name, Ways: waysOf(ways)}, w.slow)
			return
		}
	}
}

// drifted is a run that was seen to take other times than its plan says.
type drifted struct {
	run     plan.RunID
	planner *Planner
	by      parallel.Candidate  // by which it goes, with what that was to take
	is      belief              // what it is believed to take now
	now     *parallel.Simulator // which says so
	slow    []plan.NodeID       // those of its nodes that have slow devices
}

// learned is what is believed of a run after an observation, and whether that is otherwise than before:
// what does not differ is not learned. What a slow device explains is not a layer's.
func learned(x *parallel.Simulator, by *parallel.Candidate, was belief, o *schedule.Observation, skew float64) (is belief, differs bool) {
	is, probed := was, *by
	if len(o.Slow) >= len(was.devices) {
		// A rank's workers are neighbours, and it is as slow as the slowest of them. What is slower by less than
		// anybody asks for is as it should be.
		is.devices = slices.Repeat([]float64{1}, len(was.devices))
		for i, times := range o.Slow {
			if rank := i * len(is.devices) / len(o.Slow); times > 1+skew {
				is.devices[rank] = max(is.devices[rank], times)
			}
		}
	}
	if !slices.EqualFunc(is.devices, was.devices, func(a, b float64) bool { return math.Abs(a/b-1) <= skew }) {
		on := *x.On
		var why parallel.Why
		if probed.Result, why = x.Like(x.Model, slowed(&on, is.devices)).Simulate(&by.Plan); why != "" {
			return was, false
		}
		differs = true
	} else {
		is.devices = was.devices
	}
	seen := drift.Sample{Stages: [][]unit.Duration{o.Stages}, Steps: 1}
	if layers, differ := seen.Learn(&probed, was.layers, skew); differ {
		is.layers, differs = layers, true
	}
	return is, differs
}

// slowNodes are those of a run with devices that are slow.
func slowNodes(v plan.View, run plan.RunID, slow []float64, skew float64) (nodes []plan.NodeID) {
	each, i := int(max(1, v.Shape(v.Run(run).Job).Devices)), 0
	v.GrantsOf(run, func(g plan.Grant) {
		if worker := i / each; worker < len(slow) && slow[worker] > 1+skew && !slices.Contains(nodes, g.Node) {
			nodes = append(nodes, g.Node)
		}
		i++
	})
	return nodes
}

// elsewhere says on what a run could begin again of which some nodes are slow: on as many other devices
// as it would leave, where they are free, and in its smaller sizes.
func (s *Reactions) elsewhere(v plan.View, w *drifted, r *reaction.Run) {
	is := v.Run(w.run)
	shape := v.Shape(is.Job)
	s.saves(v, w.run, r)
	if len(w.slow) == 0 {
		return
	}
	leaves, i := int32(0), int32(0)
	var nodes []plan.NodeID
	v.GrantsOf(w.run, func(g plan.Grant) {
		if i++; (i-1)%max(1, shape.Devices) == 0 && slices.Contains(w.slow, g.Node) {
			leaves++
		}
		nodes = append(nodes, g.Node)
	})
	if shape.HasRoom(v, leaves) {
		on := &parallel.Devices{Kinds: r.X.On.Kinds, Nodes: slices.Clone(r.X.On.Nodes), Speeds: slices.Clone(r.X.On.Speeds)}
		for rank, speed := range r.X.On.Speeds {
			if speed < 1 {
				another := r.X.On.Nodes[r.X.On.NodeOf(int32(rank))]
				another.Count = 1
				on.Nodes, on.Speeds = append(on.Nodes, another), append(on.Speeds, 1)
			}
		}
		r.X = r.X.Like(r.X.Model, on.Index())
	}
	kind, several := v.Node(nodes[0]).Model, len(slices.Compact(nodes)) > 1
	for n := shape.Smaller(is.Workers); n > 0; n = shape.Smaller(n) {
		rate, at := v.Rate(is.Job, kind, is.Workers, several), v.Rate(is.Job, kind, n, several)
		if n <= is.Workers-leaves && at > 0 {
			r.Sizes = append(r.Sizes, reaction.Size{Workers: int(n), Step: unit.Duration(float64(r.Sound) * float64(rate) / float64(at))})
		}
	}
}

// saves says what a run that goes on loses when it is told to stop and begins again elsewhere.
func (s *Reactions) saves(v plan.View, run plan.RunID, r *reaction.Run) {
	is := v.Run(run)
	c := v.Job(is.Job).Checkpoint
	r.Anew, r.Deaf, r.Store = true, !c.OnRequest, max(c.Save, c.Load)
	r.Devices = int(max(1, v.Shape(is.Job).Devices)) * max(int(is.Workers), len(r.Full.Devices()))
	if r.Deaf {
		r.Since = v.Now().Sub(is.Began) - is.Paused
		if c.Every > 0 {
			r.Since %= c.Every
		}
	}
}

// goes has a run go on in a way, and says why it cannot.
func (s *Reactions) goes(d *plan.Draft, w *drifted, way *reaction.Option) parallel.Why {
	switch n := d.Run(w.run).Workers; way.Name {
	case reaction.Ride:
		return ""
	case reaction.Restart:
		return s.leave(d, w, int32(len(way.Plan.Devices())))
	case reaction.Swap:
		return s.leave(d, w, n)
	}
	return w.another(d, &way.Plan)
}

// another gives a run another plan for the devices that it has.
func (w *drifted) another(d *plan.Draft, p *parallel.Plan) (why parallel.Why) {
	best := parallel.Candidate{Plan: *p}
	if best.Result, why = w.now.Simulate(&best.Plan); why != "" {
		return why
	}
	terms := d.Run(w.run).Terms
	was := d.Pipeline(terms.Plan.ID)
	pl, ok := w.planner.planned(&best, d.View, d.Run(w.run).Job, &was, w.is)
	if !ok {
		return "it is no plan that a run could be told"
	}
	if bytes.Equal(pl.JSON, was.JSON) {
		return "" // who would go on as it does is told nothing
	}
	terms.Plan.ID = d.PlanID(pl)
	before, _ := w.now.Simulate(&w.by.Plan)
	d.Regrant(w.run, terms, plan.Reason{Code: plan.Replanned, A: int64(before.Step), B: int64(best.Result.Step)})
	return ""
}

// leave has a run save, and start again with so many workers on other nodes than the slow ones.
func (s *Reactions) leave(d *plan.Draft, w *drifted, n int32) parallel.Why {
	wish := &allocate.Wish{Job: d.Run(w.run).Job, Workers: n, Reason: plan.Reason{Code: plan.LeftSlow, A: int64(n)}}
	if !s.hands.Again(d, w.run, wish, Avoiding(d.View, wish.Job, w.slow...)) {
		return noRoom(n)
	}
	return ""
}

// noRoom is why a job does not start again with so many workers.
func noRoom(n int32) parallel.Why {
	return parallel.Why(fmt.Sprintf("there is no room now for %d workers that it may have", n))
}

// broken is a run as the policy is told of it.
func (s *Reactions) broken(v plan.View, job plan.JobID, by *parallel.Candidate, x *parallel.Simulator) *reaction.Run {
	j, rules := v.Job(job), s.policy.Setting()
	return &reaction.Run{Sound: by.Result.Step, Full: by.Plan, Now: by.Plan, X: x, Start: rules.Start, Store: max(j.Checkpoint.Save, j.Checkpoint.Load), Repair: v.Repair(rules.Repair),
		Plan: func([]int32) (parallel.Candidate, parallel.Why) {
			return parallel.Candidate{}, "its layers are planned for as many workers as it asks for"
		}}
}

// left is how long a run would still take at the pace for which its plan was made. Of one of which
// nobody knows how long it is, as much is believed to be left as it has done.
func (s *Reactions) left(v plan.View, run plan.RunID, by *parallel.Candidate, now *parallel.Simulator) unit.Duration {
	r := v.Run(run)
	left, known := v.Left(r.Job)
	if !known {
		left = v.Work(r.Job)
	}
	// The rate that it was seen to have is that of its plan on layers as they are now.
	is, why := now.Simulate(&by.Plan)
	if why != "" || r.RateMicro <= 0 || is.Step <= 0 {
		return left
	}
	return unit.Duration(float64(left) * plan.FullRate / float64(r.RateMicro) * float64(by.Result.Step) / float64(is.Step))
}

// waysOf are ways as they are kept.
func waysOf(options []reaction.Option) (ways []plan.Way) {
	for _, o := range options {
		ways = append(ways, plan.Way{Name: o.Name, Pause: o.Pause, Redo: o.Redo, Step: o.Step, Price: o.Price, Why: string(o.Why)})
	}
	return ways
}

// GoOn starts jobs again whose runs have lost a device, in the cheapest way for which there is room that
// they may have, or has them wait for the repair where that is cheaper. Under a joint decider that is what
// becomes of those for whom it had no place, or was not asked.
func (s *Reactions) GoOn(d *plan.Draft, broken []schedule.Broken) {
	if s.policy == nil {
		return
	}
	for i := range broken {
		b := &broken[i]
		run := d.Job(b.Job).Run
		if !s.hands.Waits(b.Job) && run == plan.None {
			continue // it has failed, or is held
		}
		ways := s.policy.Ways(s.ended(d.View, b))
		if len(ways) == 0 {
			continue
		}
		chosen := ""
		if run != plan.None { // a joint decider had a place for it
			chosen = ofSize(ways, d.Run(run).Workers)
		}
		for k := 0; k < len(ways) && chosen == "" && ways[k].Why == ""; k++ {
			n := int32(len(ways[k].Plan.Devices()))
			switch {
			case ways[k].Name == reaction.Wait, s.startAgain(d, b, n, ways[k].Name == reaction.Drop || ways[k].Name == reaction.Recut):
				chosen = ways[k].Name
			default:
				ways[k].Why = noRoom(n)
			}
		}
		s.keep(d, plan.Reaction{Job: b.Job, Cause: plan.LostOne, Workers: b.Workers, Chosen: chosen, Ways: waysOf(ways)}, nil)
	}
}

// ofSize is the way by which a run goes on with so many workers.
func ofSize(ways []reaction.Option, n int32) string {
	for i := range ways {
		if ways[i].Why == "" && ways[i].Name != reaction.Wait && len(ways[i].Plan.Devices()) == int(n) {
			return ways[i].Name
		}
	}
	return reaction.Restart
}

// startAgain starts a job with so many workers where there is room that is nobody else's, or in the processes that are
// left of its run.
func (s *Reactions) startAgain(d *plan.Draft, b *schedule.Broken, n int32, keep bool) bool {
	w, keeps := allocate.Wish{Job: b.Job, Workers: n, Reason: plan.Reason{Code: plan.WentOn, A: int64(n)}}, plan.PlanTerms{}
	if keep {
		w.Slots, _ = living(d.View, b, n)
		w.Reason.Code = plan.KeptOn
		keeps = plan.PlanTerms{ID: b.Plan, Keeps: n}
	}
	return s.hands.GoOn(d, &w, keeps, Avoiding(d.View, b.Job))
}

// ended is a run that has ended, as the policy is told of it: its sizes take as long as the job's menu
// says, or in proportion to its workers. What it asked for is what it is to have, whatever it had.
func (s *Reactions) ended(v plan.View, b *schedule.Broken) *reaction.Run {
	setting, j, shape := s.policy.Setting(), v.Job(b.Job), v.Shape(b.Job)
	most := max(shape.Gang, b.Workers)
	r := &reaction.Run{Now: reaction.Of(int(b.Workers)), Full: reaction.Of(int(most)), Since: b.Redo, Repair: v.Repair(setting.Repair), Start: setting.Start, Store: j.Checkpoint.Load}
	rate := max(1, v.Rate(b.Job, b.Model, b.Workers, b.Several))
	steps := func(n int32) unit.Duration {
		at := v.Rate(b.Job, b.Model, n, b.Several)
		return unit.Duration(float64(max(1, v.Pipeline(b.Plan).Iteration)) * float64(rate) / float64(max(1, at)))
	}
	r.Sound = max(1, steps(most))
	left, known := v.Left(b.Job)
	if !known {
		left = v.Work(b.Job) // as much as it has done
	}
	r.Left = unit.Duration(float64(left) * plan.FullRate / float64(max(1, v.Rate(b.Job, b.Model, most, b.Several))))
	for n := most; n > 0; n = shape.Smaller(n) {
		if v.Rate(b.Job, b.Model, n, b.Several) > 0 {
			slots, copies := living(v, b, n)
			r.Sizes = append(r.Sizes, reaction.Size{Workers: int(n), Step: steps(n), Kept: slots != nil, Copies: copies})
		}
	}
	r.Alive = b.Alive != nil
	return r
}

// RepairedBy is until when a job waits for the node that it lost, and starts with no fewer workers than
// it had; 0 where it does not.
func (s *Reactions) RepairedBy(v plan.View, job plan.JobID) (until unit.Time, had int32) {
	if s.policy == nil {
		return 0, 0
	}
	r, ok := v.Reaction(job)
	if !ok || r.Cause != plan.LostOne || r.Chosen != reaction.Wait || v.Job(job).Since > r.At {
		return 0, 0
	}
	return r.At.Add(v.Repair(s.policy.Setting().Repair)), r.Workers
}
