package compose

import (
	"cmp"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/pipelines"
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/moves"
	"github.com/musterdl/muster/schedule/victims"
)

// PartsOf takes the parts of a Scheduler from a composition. Pipelines are compared with
// those of the composition null.
func PartsOf(c, null strategy.Filled) Parts {
	return Parts{
		Estimator: strategy.In[profile.Estimator](c, profile.EstimatePart),
		Gate:      strategy.In[schedule.Gate](c, schedule.GatePart),
		Order:     strategy.In[schedule.Order](c, schedule.OrderPart),
		Sizer:     strategy.In[allocate.Sizer](c, allocate.SizePart),
		Placer:    strategy.In[allocate.Placer](c, allocate.PlacePart),
		Flow:      strategy.In[flow.Policy](c, flow.PolicyPart),
		Victims:   strategy.In[victims.Chooser](c, victims.VictimsPart),
		Reserve:   strategy.In[calendar.Policy](c, calendar.ReservePart),
		Rater:     strategy.In[allocate.Rater](c, allocate.RatePart),
		Switcher:  strategy.In[allocate.Switcher](c, allocate.SwitchPart),
		Joint:     strategy.In[allocate.Joint](c, allocate.JointPart),
		Planner: &pipelines.Planner{
			Cut: strategy.In[pipeline.Partitioner](c, pipeline.CutPart), NullCut: strategy.In[pipeline.Partitioner](null, pipeline.CutPart),
			Sequence: strategy.In[pipeline.Ordering](c, pipeline.SequencePart), NullSequence: strategy.In[pipeline.Ordering](null, pipeline.SequencePart),
			Spread: strategy.In[parallel.Planner](c, parallel.PlannerPart),
			Name:   cmp.Or(c[parallel.PlannerPart].Name, c[pipeline.CutPart].Name) + "+" + c[pipeline.SequencePart].Name},
		Reaction: strategy.In[reaction.Policy](c, reaction.Part),
		Sharer:   strategy.In[allocate.Sharer](c, allocate.SharePart),
		Moves:    strategy.In[moves.Policy](c, moves.Part),
	}
}

// abilities are what parts can do beside their contracts; nil where none can.
type abilities struct {
	weigher  schedule.Weigher
	learner  schedule.Learner
	sees     schedule.Learner // the foresight of who reserves, if it learns
	shaper   flow.Shaper
	mover    allocate.Mover
	patient  bool                   // the placer, or a link of it, may let jobs wait for a better place
	watchers []allocate.Watcher     // of the placer's links
	memories []strategy.Remembering // of the parts
	learned  []bool                 // by job: the estimator was told of its end
}

// abilities finds what the parts can do beside their contracts.
func (p *Parts) abilities() abilities {
	var a abilities
	a.learner, _ = strategy.Can[schedule.Learner](p.Order)
	a.weigher, _ = strategy.Can[schedule.Weigher](p.Order)
	a.sees, _ = strategy.Can[schedule.Learner](p.Reserve.Foresight)
	a.mover, _ = strategy.Can[allocate.Mover](p.Sizer)
	var shapes bool
	if a.shaper, shapes = strategy.Can[flow.Shaper](p.Rater); !shapes {
		a.shaper, _ = strategy.Can[flow.Shaper](p.Flow)
	}
	for _, link := range allocate.Links(p.Placer) {
		_, waits := strategy.Can[allocate.Patient](link)
		a.patient = a.patient || waits
		if w, ok := strategy.Can[allocate.Watcher](link); ok {
			a.watchers = append(a.watchers, w)
		}
	}
	if p.Sharer != nil && p.Joint == nil {
		a.watchers = append(a.watchers, p.Sharer)
	}
	a.memories = p.memories()
	return a
}

// Known is what the order says that it ranks a job by; nil where it does not say.
func (s *Scheduler) Known(v plan.View, job plan.JobID) []string {
	if k, ok := strategy.Can[schedule.Knower](s.parts.Order); ok {
		return k.Known(v, job)
	}
	return nil
}

// learn tells the parts that learn of a finished job, once.
func (s *Scheduler) learn(v plan.View, id plan.JobID) {
	if s.able.learned[id] {
		return
	}
	s.able.learned[id] = true
	s.room.Loops.Forget(id)
	s.parts.Estimator.Learn(v, id)
	if s.able.learner != nil {
		s.able.learner.Learn(v, id)
	}
	if s.able.sees != nil {
		s.able.sees.Learn(v, id)
	}
}
