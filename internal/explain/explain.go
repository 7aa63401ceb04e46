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
	"iter"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Answer is why a job is where it is.
type Answer struct {
	// Code is the kind of the dominant cause, and Words the cause in a sentence.
	Code  plan.ReasonCode
	Words string
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
	needs   []string
	holders []Holder
}

// causes are in order of dominance. The last always applies.
var causes = [...]func(q *question) (cause, bool){
	(*question).ownPhase, (*question).paused, (*question).impossible, (*question).limited,
	(*question).closedForGood, (*question).maintenance, (*question).reserved, (*question).decided, (*question).unhindered, (*question).overtaken,
	(*question).closedNow, (*question).lacking, (*question).fragmented, (*question).noRoom,
}

// Why explains a job. Live are the jobs that have not ended, in any order; nil is for
// who does not know, and costs a look at every job there ever was.
func Why(v plan.View, job plan.JobID, live iter.Seq[plan.JobID]) Answer {
	if live == nil {
		live = everybody(v)
	}
	j := v.Job(job)
	if !j.Phase.Waits() {
		return settled(v, &j)
	}
	q := ask(v, job, live)
	a := Answer{Obstacles: q.obstacles(), Tried: q.tried(), Reason: q.reason.Code}
	for _, f := range causes {
		if c, ok := f(q); ok {
			a.Code, a.Words, a.Needs, a.Holders = c.code, c.words, c.needs, c.holders
			break
		}
	}
	if j.Leaving != plan.None {
		a.Words += "; its last run is still stopping"
	}
	return a
}

// settled is the answer about a job that does not wait.
func settled(v plan.View, j *plan.Job) Answer {
	a := Answer{Code: j.Reason.Code, Words: j.Reason.Words(v), Tried: Tried{At: j.Since}}
	switch {
	case j.Phase == plan.Active:
		a.Words = v.Run(j.Run).Status.String() + ": " + a.Words
		if names := inWay(v, j); len(names) > 0 {
			a.Words += "; it starts after the runs that are stopping there: " + strings.Join(names, ", ")
		}
	case j.Phase == plan.Finished:
		a.Words = "finished"
	default:
		a.Words = j.Phase.String() + ": " + a.Words
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

func everybody(v plan.View) iter.Seq[plan.JobID] {
	return func(yield func(plan.JobID) bool) {
		for id := range plan.JobID(v.Jobs()) {
			if !yield(id) {
				return
			}
		}
	}
}

// tried is what was noted of a waiting job. Of the jobs of one shape only the best is
// tried, so that of the others nothing is noted.
func (q *question) tried() Tried {
	words := q.job.Reason.Words(q.v)
	if q.job.Reason.Code == plan.New || q.job.Reason.Code == plan.NoReason {
		words = "put in the queue; nothing was noted of it since, or of a job like it that goes before it"
	}
	return Tried{At: q.job.Since, Words: words}
}
