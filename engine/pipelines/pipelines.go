// Package pipelines is step 4 within a decision: the pipeline plan that a job starts with, and how a run with
// a plan goes on when what that was made for is so no more.
package pipelines

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/drift"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/plan"
)

// Planner is made of a partitioner and an ordering, with the null pair to compare with. Plans are made
// once per layer profile.
type Planner struct {
	Cut          pipeline.Partitioner
	Sequence     pipeline.Ordering
	NullCut      pipeline.Partitioner
	NullSequence pipeline.Ordering
	Name         string // of the pair, for the plan
	// Spread, where there is one, takes the place of the cut.
	Spread parallel.Planner

	made map[key]*made
	like map[string]*made // by what was asked for: each job has a profile of its own
}

// key is what a plan depends on: a profile, and what the workers stand on, where that is said.
type key struct {
	profile int32
	on      string
}

type made struct {
	plan plan.Pipeline
	null unit.Duration
	ok   bool
}

// Plan cuts and orders the job's layers for the stages it asked for, and says what the null plan would take.
func (p *Planner) Plan(v plan.View, job plan.JobID, on []plan.Slot) (plan.Pipeline, unit.Duration, bool) {
	id := v.Job(job).Profile
	devices, speeds := Placed(v, on, v.Profile(id).Stages)
	k := key{profile: id}
	if devices != nil {
		k.on = fmt.Sprint(devices.Nodes, devices.Racks, speeds)
	}
	m, seen := p.made[k]
	if !seen {
		m = p.once(Request(v.Profile(id)), devices, speeds)
		p.made[k] = m
	}
	return m.plan, m.null, m.ok
}

// once makes the plan of a request, or finds that of another job that asked for the same.
func (p *Planner) once(request workload.Pipeline, devices *parallel.Devices, speeds []float64) *made {
	if p.made == nil {
		p.made, p.like = map[key]*made{}, map[string]*made{}
	}
	params := pipeline.Params{Speeds: speeds}
	if devices == nil {
		devices = parallel.Ranks(int(request.Stages), nil)
	} else {
		params.Links = devices.Links()
	}
	asked := fmt.Sprint(request, params.Speeds, params.Links)
	m, seen := p.like[asked]
	if !seen {
		one := p.make(request, params, devices)
		m = &one
		p.like[asked] = m
	}
	return m
}

// Placed is what the workers of a run stand on where each is a stage, and the speeds of their
// devices where they are unlike; nothing where these are alike and links have no end. A plan for like
// devices is the same on any kind of them: only its seconds differ, which the run's own rate says. So
// it is made once for all, and kept in the journal once.
func Placed(v plan.View, on []plan.Slot, stages int32) (devices *parallel.Devices, speeds []float64) {
	var nodes []int32
	limited := false
	for i := range on {
		node := &v.Cluster().Nodes[on[i].Node]
		for range on[i].Workers {
			nodes = append(nodes, int32(on[i].Node))
			speeds = append(speeds, v.Cluster().Models[node.Model].Speed)
		}
		limited = limited || i > 0 && (node.Uplink > 0 || v.Cluster().Racks[node.Rack].Uplink > 0)
	}
	if len(nodes) != int(stages) {
		return nil, nil
	}
	if speeds = pipeline.Unlike(speeds); speeds == nil && !limited {
		return nil, nil
	}
	return parallel.Placed(v.Cluster(), nodes, speeds), speeds
}

func (p *Planner) make(request workload.Pipeline, on pipeline.Params, devices *parallel.Devices) made {
	null, why := pipeline.Build(p.NullCut, p.NullSequence, request, on)
	if why != "" {
		null = pipeline.Plan{}
	}
	lacks := ""
	best, why := p.best(request, on, devices)
	if why != "" { // a job that asks for stages has them: then the order is that without a strategy
		lacks = string(why)
		if best, why = pipeline.Build(p.Cut, p.NullSequence, request, on); why != "" {
			best = null
		}
	}
	if best.Stages == 0 {
		return made{}
	}
	m := made{ok: true, null: null.Iteration, plan: plan.Pipeline{Cuts: best.Cuts, Schedule: p.Name, Lacks: lacks, Iteration: best.Iteration, Spare: best.Spare}}
	encoded, err := json.Marshal(best)
	if err != nil {
		return made{} // a plan is numbers and short texts; nothing of it can fail
	}
	m.plan.JSON = encoded
	return m
}

// best is the plan of the strategies. A planner is asked for one pipeline with a rank for each
// worker: more a run of this many workers could not carry out.
func (p *Planner) best(request workload.Pipeline, on pipeline.Params, devices *parallel.Devices) (pipeline.Plan, pipeline.Why) {
	if p.Spread == nil {
		return pipeline.Build(p.Cut, p.Sequence, request, on)
	}
	x := parallel.NewSimulator(parallel.Of(request), devices)
	all, why := p.Spread.Plans(x, parallel.Limits{Stages: true, Sequences: []parallel.Sequence{{Name: p.Name, Order: p.Sequence}}})
	if why != "" {
		return pipeline.Plan{}, why
	}
	best, why := all[0].Staged()
	best.Tensor = request.Tensor
	return best, why
}

// belief is what is believed of a run: how many times as long as its profile says each layer takes, and
// as it should the devices of each rank.
type belief struct{ layers, devices []float64 }

// going is the plan by which a run of measured layers goes, with what it is believed to take, and the
// simulator that says so: of the devices that the run has, as fast as they are against the one on which
// the layers were measured.
func (p *Planner) going(v plan.View, run plan.RunID) (x *parallel.Simulator, by parallel.Candidate, is belief) {
	r := v.Run(run)
	if r.Terms.Plan.ID == plan.None || v.ProfileOf(r.Job).Stages == 0 {
		return nil, by, is
	}
	pl, request := v.Pipeline(r.Terms.Plan.ID), Request(*v.ProfileOf(r.Job))
	order := p.Sequence
	if pl.Lacks != "" {
		order = p.NullSequence
	}
	var made pipeline.Plan
	if pl.Schedule != p.Name || json.Unmarshal(pl.JSON, &made) != nil {
		return nil, by, is // another strategy made it, before this one took over
	}
	one := parallel.Pipeline{Microbatches: int(request.Microbatches), Cuts: made.Cuts}
	for rank := range request.Stages {
		one.Ranks = append(one.Ranks, parallel.Rank{Tensor: 1, Replicas: 1, Devices: []int32{rank}})
	}
	by.Plan = parallel.Plan{Samples: 1, Sequence: parallel.Sequence{Name: p.Name, Order: order}, Pipelines: []parallel.Pipeline{one}}
	for l, layer := range request.Layers {
		if is.layers = append(is.layers, 1); pl.Layers != nil {
			is.layers[l] = float64(pl.Layers[l]) / float64(max(1, layer.Forward+layer.Backward))
		}
	}
	if is.devices = pl.Slow; is.devices == nil {
		is.devices = slices.Repeat([]float64{1}, int(request.Stages))
	}
	x = parallel.NewSimulator(scaled(parallel.Of(request), is.layers), slowed(ranks(v, run, request.Stages), is.devices))
	var why parallel.Why
	if by.Result, why = x.Simulate(&by.Plan); why != "" {
		return nil, by, is
	}
	// A planner may have put stages on other workers, or their passes in another order: what it takes then is
	// not told by this.
	if staged, why := by.Staged(); why != "" || !slices.EqualFunc(staged.Orders, made.Orders, slices.Equal) {
		return nil, by, is
	}
	return x, by, is
}

// slowed are devices that take so many times as long as they should.
func slowed(on *parallel.Devices, times []float64) *parallel.Devices {
	on.Speeds = nil
	for _, t := range times {
		on.Speeds = append(on.Speeds, 1/t)
	}
	return on
}

// scaled is a model whose layers take so many times as long.
func scaled(m *parallel.Model, times []float64) *parallel.Model {
	m.Profile = drift.Scaled{Profile: m.Profile, Times: times}
	return m
}

// ranks are the devices of a run's plan, with the links between them and as fast as the slowest of those that its rank
// has: a rank's workers are neighbours.
func ranks(v plan.View, run plan.RunID, n int32) *parallel.Devices {
	nodes, speeds, i := make([]int32, 0, n), slices.Repeat([]float64{math.Inf(1)}, int(n)), int32(0)
	each := max(1, v.Run(run).Workers*max(1, v.Shape(v.Run(run).Job).Devices)/n)
	v.GrantsOf(run, func(g plan.Grant) {
		at := min(i/each, n-1)
		if i++; int(at) == len(nodes) {
			nodes = append(nodes, int32(g.Node))
		}
		speeds[at] = min(speeds[at], cmp.Or(v.Cluster().Models[v.Node(g.Node).Model].Speed, 1))
	})
	if len(nodes) == int(n) {
		return parallel.Placed(v.Cluster(), nodes, speeds)
	}
	for rank := range speeds {
		if math.IsInf(speeds[rank], 1) {
			speeds[rank] = speeds[rank-1] // each worker is several slices of a stage
		}
	}
	return parallel.Ranks(int(n), speeds)
}

// planned is a plan of one pipeline as a run is given it.
func (p *Planner) planned(c *parallel.Candidate, v plan.View, job plan.JobID, was *plan.Pipeline, is belief) (pl plan.Pipeline, ok bool) {
	request := Request(*v.ProfileOf(job))
	staged, why := c.Staged()
	if why != "" {
		return pl, false
	}
	staged.Tensor = request.Tensor
	encoded, err := json.Marshal(staged)
	pl = plan.Pipeline{Cuts: staged.Cuts, Schedule: was.Schedule, Lacks: was.Lacks, Iteration: c.Result.Step, JSON: encoded, Groups: was.Groups, Spare: staged.Spare}
	for l, layer := range request.Layers {
		pl.Layers = append(pl.Layers, unit.Duration(math.Round(float64(layer.Forward+layer.Backward)*is.layers[l])))
	}
	if slices.Max(is.devices) > 1 {
		pl.Slow = is.devices
	}
	return pl, err == nil
}

// Request turns a stored profile back into what the job asked.
func Request(p plan.Profile) workload.Pipeline {
	r := workload.Pipeline{Stages: p.Stages, Microbatches: p.Microbatches, Tensor: p.Tensor}
	for _, l := range p.Layers {
		r.Layers = append(r.Layers, workload.Layer{Forward: l.Forward, Backward: l.Backward,
			ParamKiB: l.ParamKiB, OutputKiB: l.OutputKiB, ActivationKiB: l.ActivationKiB})
	}
	return r
}
