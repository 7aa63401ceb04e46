package view

import (
	"fmt"
	"time"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Steps is a job's dossier: what was decided about it and which attempts failed, the
// latest last.
type Steps struct {
	Job       string     `json:"job"`
	Decisions []Decision `json:"decisions"`
}

// Decision is one change, with what each step had to say about it.
type Decision struct {
	At      time.Time `json:"at"`
	Verb    string    `json:"verb"`
	Attempt int32     `json:"attempt"`
	Reason  string    `json:"reason"`
	Steps   []Step    `json:"steps,omitempty"`
}

// Step is what one of the six steps decided.
type Step struct {
	Number   int    `json:"number"`
	Name     string `json:"name"`
	Chose    string `json:"chose"`
	Rejected string `json:"rejected"`
	Because  string `json:"because"` // the number that decided
}

// StepsOf tells a job's dossier in words.
func StepsOf(v plan.View, info plane.JobInfo, id plan.JobID) Steps {
	s := Steps{Job: v.Name(id), Decisions: []Decision{}}
	for i := range info.Dossier {
		e := &info.Dossier[i]
		d := Decision{At: instant(e.At), Verb: e.Verb, Attempt: e.Attempt, Reason: e.Words}
		for step := plan.Profiling; step <= plan.Execution; step++ {
			for _, n := range e.Notes {
				if n.Step == step {
					d.Steps = append(d.Steps, stepOf(v, n))
				}
			}
		}
		s.Decisions = append(s.Decisions, d)
	}
	return s
}

// stepOf puts a note in words. What its numbers mean is each step's own affair, as
// engine/compose writes them.
func stepOf(v plan.View, n plan.Note) Step {
	s := Step{Number: int(n.Step), Name: n.Step.String()}
	switch n.Step {
	case plan.Profiling:
		s.Chose, s.Rejected = expectation(n.Chosen), "nothing declared"
		switch {
		case n.Rejected > 0 && n.Rejected == n.Chosen:
			s.Rejected, s.Because = "nothing", "as declared"
		case n.Rejected > 0:
			s.Rejected = "the declared " + Span(unit.Duration(n.Rejected))
			s.Because = fmt.Sprintf("estimated %s, declared %s", Span(unit.Duration(n.Won)), Span(unit.Duration(n.Lost)))
		default:
			s.Because = "the estimator's word alone"
		}
	case plan.Allocation:
		s.Chose, s.Rejected, s.Because = nodeName(v, n.Chosen), "no other place found", fmt.Sprintf("score %d", n.Won)
		if n.Rejected != plan.None {
			s.Rejected, s.Because = nodeName(v, n.Rejected), fmt.Sprintf("score %d against %d", n.Won, n.Lost)
		}
	case plan.Scheduling:
		s.Chose, s.Rejected, s.Because = jobName(v, n.Chosen), "nobody else was worth a try", fmt.Sprintf("rank %d", n.Won)
		if n.Rejected != plan.None {
			s.Rejected, s.Because = jobName(v, n.Rejected), fmt.Sprintf("rank %d against %d, lower goes first", n.Won, n.Lost)
		}
	case plan.Pipelining:
		s.Chose, s.Rejected, s.Because = "no pipeline asked for", "nothing", "nothing to compare"
		if n.Chosen == plan.None || v.Pipeline(int32(n.Chosen)).Schedule == "" {
			break
		}
		made := v.Pipeline(int32(n.Chosen))
		s.Chose, s.Because = made.Title(), fmt.Sprintf("%s an iteration", unit.Duration(n.Won))
		if n.Lost > 0 { // which a plan of a menu was not compared to
			s.Rejected, s.Because = "equal layers, gpipe", fmt.Sprintf("%s against %s", s.Because, unit.Duration(n.Lost))
		}
	case plan.Flows:
		s.Chose, s.Rejected = fmt.Sprintf("class %d", n.Chosen), fmt.Sprintf("class %d", n.Rejected)
		s.Because = fmt.Sprintf("weight %s, %s where nothing is decided", unit.Milli(weight(n.Won)), unit.Milli(n.Lost))
	case plan.Execution:
		s.Chose, s.Rejected = fmt.Sprintf("attempt %d", n.Chosen), "nothing"
		s.Because = "it saves nothing by itself"
		if n.Won > 0 {
			s.Because = fmt.Sprintf("it saves every %s", Span(unit.Duration(n.Won)))
		}
		if n.Lost > 0 {
			s.Because += fmt.Sprintf(", a restart takes %s", Span(unit.Duration(n.Lost)))
		}
	}
	return s
}

// weight is a network weight; 0 counts as 1000.
func weight(w int64) int64 {
	if w == 0 {
		return 1000
	}
	return w
}

func expectation(us int64) string {
	if us <= 0 {
		return "no estimate"
	}
	return "expects " + Span(unit.Duration(us))
}

func nodeName(v plan.View, id int64) string {
	if id < 0 || id >= int64(v.Nodes()) {
		return "a node"
	}
	return v.Cluster().Nodes[id].Name
}

func jobName(v plan.View, id int64) string {
	if id < 0 || id >= int64(v.Jobs()) {
		return "a job"
	}
	return v.Name(plan.JobID(id))
}
