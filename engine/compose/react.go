package compose

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/drift"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// How runs with plans go on when what their plans were made for is so no more.

// replan gives runs another plan whose stages were seen to take other times than theirs says, where
// that loses fewer device-seconds than to go on.
func (s *Scheduler) replan(d *plan.Draft, observed []schedule.Observation) {
	pipelines, plans := s.parts.Planner.(*Pipelines)
	if s.parts.Reaction == nil || !plans {
		return
	}
	for i := range observed {
		o := &observed[i]
		run := d.Job(o.Job).Run
		if len(o.Stages) == 0 || run == plan.None || d.Run(run).Status != plan.Running {
			continue
		}
		rules := s.parts.Reaction.Setting()
		x, by, times := pipelines.going(d.View, run)
		if x == nil || len(o.Stages) != len(drift.Times(&by.Result)[0]) {
			continue
		}
		seen := drift.Sample{Stages: [][]unit.Duration{o.Stages}, Steps: 1}
		learned, differs := seen.Learn(&by, times, rules.Skew)
		if !differs {
			continue
		}
		request := Request(*d.ProfileOf(o.Job))
		now := x.Like(scaled(parallel.Of(request), learned), x.On)
		r := s.broken(d.View, o.Job, &by, now)
		r.Drifted, r.Copying, r.Change = true, linked(d.View, run, x.On), rules.Change
		r.Left, r.Repair = s.left(d.View, run, &by, now), unit.Forever
		ways := s.parts.Reaction.Ways(r)
		if len(ways) == 0 || ways[0].Why != "" {
			continue
		}
		d.React(plan.Reaction{Job: o.Job, At: d.Now(), Cause: plan.Drifted, Chosen: ways[0].Name, Ways: waysOf(ways)})
		if ways[0].Name == reaction.Ride {
			continue
		}
		best := parallel.Candidate{Plan: ways[0].Plan}
		var why parallel.Why
		if best.Result, why = now.Simulate(&best.Plan); why != "" {
			continue
		}
		terms := d.Run(run).Terms
		was := d.Pipeline(terms.Plan.ID)
		if pl, ok := pipelines.planned(&best, d.View, o.Job, &was, learned); ok {
			terms.Plan.ID = d.PlanID(pl)
			before, _ := now.Simulate(&by.Plan)
			d.Regrant(run, terms, plan.Reason{Code: plan.Replanned, A: int64(before.Step), B: int64(best.Result.Step)})
		}
	}
}

// broken is a run as the policy is told of it.
func (s *Scheduler) broken(v plan.View, job plan.JobID, by *parallel.Candidate, x *parallel.Simulator) *reaction.Run {
	j, rules := v.Job(job), s.parts.Reaction.Setting()
	return &reaction.Run{Sound: by.Result.Step, Full: by.Plan, Now: by.Plan, X: x, Start: rules.Start, Store: max(j.Checkpoint.Save, j.Checkpoint.Load), Repair: rules.Repair,
		Plan: func([]int32) (parallel.Candidate, parallel.Why) {
			return parallel.Candidate{}, "its layers are planned for as many workers as it asks for"
		}}
}

// left is how long a run would still take at the pace for which its plan was made. Of one of which
// nobody knows how long it is, as much is believed to be left as it has done.
func (s *Scheduler) left(v plan.View, run plan.RunID, by *parallel.Candidate, now *parallel.Simulator) unit.Duration {
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
