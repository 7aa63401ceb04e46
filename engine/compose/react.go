package compose

import (
	"bytes"

	"fmt"

	"github.com/musterdl/muster/allocate"
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
		if pl, ok := pipelines.planned(&best, d.View, o.Job, &was, learned); ok && !bytes.Equal(pl.JSON, was.JSON) {
			// Who would go on as it does is told nothing.
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

// goOn starts jobs again whose runs have lost a device, in the cheapest way for which there is room that
// they may have, or has them wait for the repair where that is cheaper.
func (s *Scheduler) goOn(d *plan.Draft, broken []schedule.Broken) {
	if s.parts.Reaction == nil {
		return
	}
	for i := range broken {
		b := &broken[i]
		if s.lines.home[b.Job] < 0 {
			continue // it has failed, or is held
		}
		ways := s.parts.Reaction.Ways(s.ended(d.View, b))
		if len(ways) == 0 {
			continue
		}
		chosen := ""
		for k := 0; k < len(ways) && chosen == "" && ways[k].Why == ""; k++ {
			n := int32(len(ways[k].Plan.Devices()))
			switch {
			case ways[k].Name == reaction.Wait, s.startAgain(d, b.Job, n):
				chosen = ways[k].Name
			default:
				ways[k].Why = parallel.Why(fmt.Sprintf("there is no room now for %d workers that it may have", n))
			}
		}
		d.React(plan.Reaction{Job: b.Job, At: d.Now(), Cause: plan.LostOne, Workers: b.Workers, Chosen: chosen, Ways: waysOf(ways)})
	}
}

// startAgain starts a job with so many workers where there is room that is nobody else's.
func (s *Scheduler) startAgain(d *plan.Draft, job plan.JobID, n int32) bool {
	key, _ := s.parts.Order.Key(d.View, job)
	w := allocate.Wish{Job: job, Workers: n, Reason: plan.Reason{Code: plan.WentOn, A: int64(n)}}
	s.making.why, s.agenda.held = plan.Reason{}, false
	if !s.fits(d, &w, n) {
		return false
	}
	s.settled(d, item{key, job}, n, n, plan.None)
	return true
}

// ended is a run that has ended, as the policy is told of it: its sizes take as long as the job's menu
// says, or in proportion to its workers. What it asked for is what it is to have, whatever it had.
func (s *Scheduler) ended(v plan.View, b *schedule.Broken) *reaction.Run {
	setting, j, shape := s.parts.Reaction.Setting(), v.Job(b.Job), v.Shape(b.Job)
	most := max(shape.Gang, b.Workers)
	r := &reaction.Run{Now: reaction.Of(int(b.Workers)), Full: reaction.Of(int(most)), Since: b.Redo, Repair: setting.Repair, Start: setting.Start, Store: j.Checkpoint.Load}
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
	for n := most; n > 0; n = smaller(shape, n) {
		if v.Rate(b.Job, b.Model, n, b.Several) > 0 {
			r.Sizes = append(r.Sizes, reaction.Size{Workers: int(n), Step: steps(n)})
		}
	}
	return r
}

// repairedBy is until when a job waits for the node that it lost, and starts with no fewer workers than
// it had; 0 where it does not.
func (s *Scheduler) repairedBy(v plan.View, job plan.JobID) (until unit.Time, had int32) {
	if s.parts.Reaction == nil {
		return 0, 0
	}
	r, ok := v.Reaction(job)
	if !ok || r.Cause != plan.LostOne || r.Chosen != reaction.Wait || v.Job(job).Since > r.At {
		return 0, 0
	}
	return r.At.Add(s.parts.Reaction.Setting().Repair), r.Workers
}

// smaller is the next smaller size that a job may start with, or 0.
func (s *Scheduler) smaller(v plan.View, w *allocate.Wish, n int32) int32 {
	n = smaller(v.Shape(w.Job), n)
	if until, had := s.repairedBy(v, w.Job); n < had && until > v.Now() {
		return 0
	}
	return n
}
