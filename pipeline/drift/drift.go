// Package drift plans a run anew when its stages take other times than its plan says: layers that
// have become slower, as where a mixture of experts sends more to some, or were measured wrongly.
// It says what pays and what has to be sent; nothing is carried out here.
package drift

import (
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Scaled are the layers of a profile, each of which takes so many times as long in all its passes.
type Scaled struct {
	parallel.Profile
	Times []float64
}

// Ways are those of the profile.
func (s Scaled) Ways(layer int, on *parallel.Device, tensor, samples int) ([]parallel.Layer, parallel.Why) {
	all, why := s.Profile.Ways(layer, on, tensor, samples)
	all = slices.Clone(all)
	for i := range all {
		l := &all[i]
		e := &l.Mixture
		for _, pass := range []*unit.Duration{&l.Forward, &l.Again, &l.Input, &l.Weight, &e.Forward, &e.Again, &e.Input, &e.Weight} {
			*pass = unit.Duration(math.Round(float64(*pass) * s.Times[layer]))
		}
	}
	return all, why
}

// Recut is a planner that keeps a shape and cuts its layers anew, so that the slowest stage is as
// fast as can be. It looks at nothing else, and so is made in no time.
type Recut struct{ Shape parallel.Shape }

var _ parallel.Planner = Recut{}

// Plans is the one cut.
func (r Recut) Plans(x *parallel.Simulator, _ parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	r.Shape.Cuts = make([]int32, r.Shape.Ranks-1)
	chain, why := x.Chain(&r.Shape)
	if why != "" {
		return nil, why
	}
	if cut := chain.Slowest(r.Shape.Ranks); cut.Cost < unit.Forever {
		r.Shape.Cuts = cut.First
	}
	return x.Candidates(r.Shape.Plan()) // which says what does not fit
}

// Run is one that is watched.
type Run struct {
	Plan    parallel.Candidate // by which it goes, and what that takes by what is believed
	Planner parallel.Planner
	Limits  parallel.Limits
	// Pause is how long a run stands still for another plan, besides the copies.
	Pause unit.Duration
	// Steps is over how many the measured times are averaged. Skew is by which part the mean of a
	// stage may differ from what is believed before a planner is asked.
	Steps int
	Skew  float64

	believed *parallel.Simulator
	scaled   Scaled // the believed layers
	seen     Sample
}

// Believe says by which simulator the plan was made.
func (r *Run) Believe(x *parallel.Simulator) {
	r.believed, r.scaled = x, Scaled{x.Model.Profile, slices.Repeat([]float64{1}, x.Model.Profile.Layers())}
}

// Times are how long a microbatch takes on each stage of each pipeline.
func Times(r *parallel.Result) [][]unit.Duration {
	all := make([][]unit.Duration, len(r.Parts))
	for i, part := range r.Parts {
		for _, s := range part.Costs.Stages {
			all[i] = append(all[i], s.Forward+s.Input+s.Weight)
		}
	}
	return all
}

// Step takes in the times of the stages that were measured in a step. It returns how the run goes
// on by another plan, and goes on by that, where the steps that are left gain more than it takes.
func (r *Run) Step(took [][]unit.Duration, left int) (how parallel.Recovery, changes bool) {
	if r.seen.Steps == 0 {
		r.seen.Stages = make([][]unit.Duration, len(took))
		for i := range took {
			r.seen.Stages[i] = make([]unit.Duration, len(took[i]))
		}
	}
	for i := range took {
		for s, d := range took[i] {
			r.seen.Stages[i][s] += d
		}
	}
	if r.seen.Steps++; r.seen.Steps < r.Steps {
		return how, false
	}
	times, differs := r.seen.Learn(&r.Plan, r.scaled.Times, r.Skew)
	r.seen.Steps = 0
	// What does not differ is not learned: the beliefs would follow chance, and the cut after them.
	if !differs {
		return how, false
	}
	r.scaled.Times = times
	m := *r.believed.Model
	m.Profile = r.scaled
	r.believed = r.believed.Like(&m, r.believed.On)
	now, why := r.believed.Simulate(&r.Plan.Plan)
	if why != "" {
		return how, false
	}
	r.Plan.Result = now
	all, why := r.Planner.Plans(r.believed, r.Limits)
	if why != "" {
		return how, false
	}
	// Nobody is lost: what a device lacks is sent by those that hold it.
	if how, why = r.believed.Recovery(&r.Plan.Plan, &all[0].Plan, nil); why != "" {
		return how, false
	}
	how.Takes += r.Pause
	if gain := now.Step - how.Result.Step; gain <= 0 || gain*unit.Duration(left) <= how.Takes {
		return how, false
	}
	r.Plan = how.Candidate
	return how, true
}

// Sample is how long microbatches took on each stage of each pipeline, summed up over some steps.
type Sample struct {
	Stages [][]unit.Duration
	Steps  int
}

// Learn is how many times as long as its profile says each layer takes, where it was believed to take
// so many times as long when a plan was made, and what that was to take; and whether a stage differs
// from that by more than a part. The layers of a stage take as many times as long as the stage, in the
// mean over the pipelines that have it. A slow device looks the same from there: it is found out when
// the layers that left it are as fast as ever.
func (m *Sample) Learn(by *parallel.Candidate, believed []float64, skew float64) (times []float64, differs bool) {
	n, pipelines := len(believed), float64(len(m.Stages))
	times = make([]float64, n)
	for i, stages := range Times(&by.Result) {
		first := int32(0)
		for s, end := range append(slices.Clone(by.Plan.Pipelines[i].Cuts), int32(n)) {
			factor := float64(m.Stages[i][s]) / float64(m.Steps) / float64(max(1, stages[s]))
			differs = differs || math.Abs(factor-1) > skew
			for l := first; l < end; l++ {
				times[l] += factor / pipelines
			}
			first = end
		}
	}
	// The belief may have been scaled before.
	for l := range times {
		times[l] *= believed[l]
	}
	return times, differs
}
