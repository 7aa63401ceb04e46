// Package explain says why a job waits: one dominant cause in words first, then how
// many nodes stand in its way and how, what would have to change, who holds what it
// wants, and what was tried last. It only reads: the same view gives the same answer.
//
// A cause is dominant if nothing else needs asking while it lasts: what a person or
// the job itself stands for goes before what the queues allow, that before what is
// reserved, and room, of which there is nearly always too little, comes last. The
// order is that of the list causes. Nothing recorded is repeated unless it still
// holds: whether there is room is counted anew, node by node, as placers do it.
package explain

import (
	"slices"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/obstacle"
)

// Answer is why a job is where it is.
type Answer struct {
	// Code is the kind of the dominant cause, and Words the cause in a sentence. Never says
	// that it can never start as things are.
	Code  plan.ReasonCode
	Words string
	Never bool
	// Reason is what the scheduler records of the same state (schedule/obstacle): it is
	// Code, but where there is no room and Code says to whom or what that is owed.
	Reason plan.ReasonCode
	// Obstacles count the nodes by the first thing on each that keeps the job's workers
	// off it, the most frequent first.
	Obstacles []Obstacle
	// Needs say what would have to change.
	Needs []string
	// Holders are whom it waits for, in the order in which they are expected to end.
	Holders []Holder
	Tried   Tried
}

// Obstacle is what keeps a job off a number of nodes.
type Obstacle struct {
	Obstacle string `json:"obstacle"`
	Nodes    int    `json:"nodes"`
}

// Holder is a job that has, or has a claim on, what another wants.
type Holder struct {
	Job, Queue string
	Devices    float64
	Until      unit.Time // as far as anybody believes; Never if nobody knows
}

// Tried is what came of the job last: what was noted of it, and since when it has been
// in its present phase.
type Tried struct {
	At    unit.Time
	Words string
}

// cause is what one of the causes says if it is the one.
type cause struct {
	code    plan.ReasonCode
	words   string
	never   bool
	needs   []string
	holders []Holder
}

// causes are in order of dominance. The last always applies.
var causes = [...]func(q *question) (cause, bool){
	(*question).ownPhase, (*question).paused, (*question).impossible, (*question).limited,
	(*question).closedForGood, (*question).maintenance, (*question).reserved, (*question).decided, (*question).unhindered, (*question).overtaken,
	(*question).closedNow, (*question).lacking, (*question).fragmented, (*question).noRoom,
}

// Why explains a job.
func (s *Site) Why(job plan.JobID) Answer {
	j := s.v.Job(job)
	if !j.Phase.Waits() {
		return settled(s.v, &j)
	}
	q := s.ask(job)
	a := q.answer()
	a.Obstacles, a.Tried, a.Reason = q.obstacles(), q.tried(), q.reason.Code
	return a
}

// Cause is the first of what Why says, without what is behind it. Of many jobs of a large
// cluster only the first are looked into; of the others is told what was noted of them.
func (s *Site) Cause(job plan.JobID) Answer {
	j := s.v.Job(job)
	if !j.Phase.Waits() {
		return settled(s.v, &j)
	}
	if s.looks > mostLooks {
		return s.noted(job)
	}
	s.looks += s.v.Nodes() + s.v.Devices() + s.v.RunSlots()
	q := s.ask(job)
	q.brief = true
	return q.answer()
}

// noted is what was noted of a job that waits, as far as it is not old: only one job of
// each shape is tried, so the others have no record.
func (s *Site) noted(id plan.JobID) Answer {
	r := s.v.Job(id).Reason
	if words := s.Never(id); words != "" {
		return Answer{Code: plan.Unsatisfiable, Words: words, Never: true}
	}
	switch now := obstacle.Room(s.v, id); r.Code {
	case plan.NoRoom, plan.Fragmented, plan.Unsatisfiable:
		r = now
	case plan.New, plan.MadeWayFor, plan.RunFailed, plan.SliceOver, plan.RoundPlan:
		if now.Code != plan.Fragmented {
			r = now // there are too few devices, whatever else may be in the way
		}
	}
	return Answer{Code: r.Code, Words: r.Words(s.v)}
}

// answer is the first cause that applies.
func (q *question) answer() (a Answer) {
	for _, f := range causes {
		if c, ok := f(q); ok {
			a = Answer{Code: c.code, Words: c.words, Never: c.never, Needs: c.needs, Holders: c.holders}
			break
		}
	}
	if q.job.Leaving != plan.None {
		a.Words += "; its last run is still stopping"
	}
	return a
}

// settled is the answer about a job that does not wait.
func settled(v plan.View, j *plan.Job) Answer {
	a := Answer{Code: j.Reason.Code, Words: j.Reason.Words(v), Tried: Tried{At: j.Since}}
	if j.Phase == plan.Active {
		if names := inWay(v, j); len(names) > 0 {
			a.Words += "; it starts after the runs that are stopping there: " + strings.Join(names, ", ")
		}
		if id := v.Run(j.Run).Terms.Plan.ID; id != plan.None {
			if made := v.Pipeline(id); made.Lacks != "" {
				a.Words += "; its pipeline goes in the plain order, since " + made.Schedule + " has no plan for it: " + made.Lacks
			}
		}
	}
	if j.Phase != plan.Active && j.Leaving != plan.None {
		a.Words += "; its run is still stopping"
	}
	a.Tried.Words = a.Words
	return a
}

// inWay are the jobs whose runs are still stopping where a job's run is promised to start,
// each once and in the order of its devices.
func inWay(v plan.View, j *plan.Job) (names []string) {
	if v.Run(j.Run).Status != plan.Promised {
		return nil
	}
	v.GrantsOf(j.Run, func(g plan.Grant) {
		if g.Device == plan.None {
			return
		}
		v.GrantsOn(g.Device, func(o plan.Grant) {
			if r := v.Run(o.Run); r.Status == plan.Stopping && !slices.Contains(names, v.Name(r.Job)) {
				names = append(names, v.Name(r.Job))
			}
		})
	})
	return names
}

// tried is what was noted of a waiting job. Of the jobs of one shape only the best is
// tried, so that of the others nothing is noted.
func (q *question) tried() Tried {
	words := q.job.Reason.Words(q.v)
	if q.job.Reason.Code == plan.New || q.job.Reason.Code == plan.NoReason {
		words = "queued; nothing has changed for it since"
	}
	return Tried{At: q.job.Since, Words: words}
}
