package planning

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Failure is a way to go on without the first node of the best plan.
type Failure struct {
	Remedy string `json:"remedy"`
	// TakesSec is until the next step begins, StepSec what that and the later ones take.
	TakesSec float64 `json:"takes_s"`
	StepSec  float64 `json:"step_s,omitempty"`
	Why      string  `json:"none_because,omitempty"` // why there is no such way
}

// lose tries ways to go on: what the planner itself knows, the copies that are left, and a plan
// made anew for the rest.
func (c *Comparison) lose(x *parallel.Simulator, best *parallel.Candidate, planners []Named) {
	node := x.On.NodeOf(best.Plan.Pipelines[0].Ranks[0].Devices[0])
	var lost []int32
	for d := range int32(x.On.Len()) {
		if x.On.NodeOf(d) == node {
			lost = append(lost, d)
		}
	}
	if len(lost) == x.On.Len() {
		return
	}
	for i := range planners {
		r, can := planners[i].Planner.(parallel.Recoverer)
		if !can || planners[i].Auto && x.On.Len() > mostAsked {
			continue
		}
		how, why := r.Recover(x, &best.Plan, lost, c.task.Limits)
		c.remedy(x, planners[i].Name+" recovers", &how, why)
	}
	if left, n := fewer(x, &best.Plan, lost); n > 0 {
		how, why := x.Recovery(&best.Plan, left, lost)
		name := fmt.Sprintf("drop %d of %d copies", n, len(best.Plan.Pipelines))
		if how.Plan.Pipelines == nil || why == "" {
			c.remedy(x, name, &how, why)
		}
		if why != "" {
			if result, not := x.Simulate(left); not == "" {
				how = parallel.Recovery{Candidate: parallel.Candidate{Plan: *left, Result: result}, Restart: true}
				c.remedy(x, name+", from the last checkpoint", &how, "")
			}
		}
	}
	if none := !slices.ContainsFunc(c.Failures, func(f Failure) bool { return f.Why == "" }); none && len(planners) > 0 {
		how, why := parallel.Restart(x, planners[0].Planner, lost, c.task.Limits)
		c.remedy(x, "plan anew, from the last checkpoint", &how, why)
	}
	slices.SortStableFunc(c.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(len(a.Why), len(b.Why)), cmp.Compare(a.TakesSec, b.TakesSec))
	})
}

func (c *Comparison) remedy(x *parallel.Simulator, name string, how *parallel.Recovery, why parallel.Why) {
	f := Failure{Remedy: name, Why: string(why)}
	if why == "" {
		takes := how.Takes
		if how.Restart {
			takes = load(x, how)
		}
		f.TakesSec, f.StepSec = takes.Seconds(), how.Result.Step.Seconds()
	}
	c.Failures = append(c.Failures, f)
}

// load is how long the devices of a plan take to read their weights and the state of the
// optimiser, each over its part of the uplink of its node.
func load(x *parallel.Simulator, how *parallel.Recovery) (longest unit.Duration) {
	s := x.Model.State
	part := (s.Weights + s.Optimizer) / max(1e-9, s.Weights+s.Gradients+s.Optimizer)
	for i := range how.Plan.Pipelines {
		for r, rank := range how.Plan.Pipelines[i].Ranks {
			n := &x.On.Nodes[x.On.NodeOf(rank.Devices[0])]
			out := parallel.Link{Bandwidth: n.Out / unit.Mbps(max(1, n.Count))}
			longest = max(longest, out.Takes(int64(part*float64(how.Result.Parts[i].Timing.Peak[r].ParamKiB))))
		}
	}
	return longest
}

// fewer is a plan without the pipelines that stood on lost devices, whose microbatches the others
// take; n is how many go, and 0 where none is left.
func fewer(x *parallel.Simulator, p *parallel.Plan, lost []int32) (left *parallel.Plan, n int) {
	gone := map[int32]bool{}
	for _, d := range lost {
		gone[d] = true
	}
	one, microbatches := *p, 0
	one.Pipelines = nil
	for _, pipe := range p.Pipelines {
		microbatches += pipe.Microbatches
		if !slices.ContainsFunc(pipe.Ranks, func(r parallel.Rank) bool {
			return slices.ContainsFunc(r.Devices, func(d int32) bool { return gone[d] })
		}) {
			one.Pipelines = append(one.Pipelines, pipe)
		}
	}
	k := len(one.Pipelines)
	if k == 0 {
		return nil, 0
	}
	for i := range one.Pipelines {
		one.Pipelines[i].Microbatches = microbatches*(i+1)/k - microbatches*i/k
	}
	return &one, len(p.Pipelines) - k
}
