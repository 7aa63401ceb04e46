package jahani

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/unit"
)

// Large problems take longer than a decision may: they are solved outside, and until
// the answer comes the last plan stands.

var _ allocate.Slow = (*Decider)(nil)

// question is a problem as it is put outside, and answer what comes back. Kinds says
// what the machines of the plan are.
type (
	question struct {
		Problem *Problem
		Now     Plan
		Jobs    []plan.JobID
		Kinds   []string
	}
	answer struct {
		Plan  Plan
		Jobs  []plan.JobID
		Kinds []string
	}
)

// large reports whether a problem is solved outside.
func (d *Decider) large(p *Problem) bool { return len(p.Jobs)*p.Nodes > d.config.AskAbove }

// names are the kinds as text.
func (d *Decider) names() (names []string) {
	for _, k := range d.kinds {
		names = append(names, fmt.Sprint(k.model, " ", k.count, " ", k.price))
	}
	return names
}

// Question puts a large problem: when jobs or machines have come or gone since the last
// one, or the horizon has passed.
func (d *Decider) Question(v plan.View, jobs []plan.JobID) []byte {
	if len(jobs) == 0 {
		return nil
	}
	p := d.problem(v, jobs)
	now := d.now()
	if p.Nodes = max(p.Nodes, len(now.Rented)); !d.large(p) {
		return nil
	}
	if slices.Equal(d.posed.Jobs, jobs) && slices.Equal(d.posed.Kinds, d.names()) && v.Now() < d.posedAt.Add(unit.Seconds(d.config.HorizonSec)) {
		return nil
	}
	d.posed, d.posedAt = question{Jobs: slices.Clone(jobs), Kinds: d.names()}, v.Now()
	q, err := json.Marshal(question{p, now, d.jobs, d.names()})
	if err != nil {
		panic("jahani: a problem that is no JSON: " + err.Error())
	}
	return q
}

// Solve is the search.
func (d *Decider) Solve(asked []byte) ([]byte, error) {
	var q question
	if err := json.Unmarshal(asked, &q); err != nil {
		return nil, fmt.Errorf("reading a question of jahani: %w", err)
	}
	return json.Marshal(answer{Search(q.Problem, q.Now), q.Jobs, q.Kinds})
}

// Learn keeps the plan for the decision to come.
func (d *Decider) Learn(reply []byte) {
	d.answer = new(answer)
	if json.Unmarshal(reply, d.answer) != nil {
		d.answer = nil // no plan of ours: the last one stands
	}
}

// answered is the plan that came from outside, as far as its jobs are still there; the
// last plan where none came or the machines are not those of the question any more.
func (d *Decider) answered() Plan {
	a := d.answer
	d.answer = nil
	if a == nil || !slices.Equal(a.Kinds, d.names()) {
		return d.now()
	}
	found := Plan{Rented: a.Plan.Rented, Jobs: make([]Choice, len(d.jobs))}
	lives := make([]bool, len(found.Rented))
	for i, id := range a.Jobs {
		if at, ok := slices.BinarySearch(d.jobs, id); ok {
			c := a.Plan.Jobs[i]
			found.Jobs[at] = c
			lives[c.Node] = lives[c.Node] || c.Devices > 0
		}
	}
	for n := range found.Rented {
		if !lives[n] {
			found.Rented[n] = none
		}
	}
	return found
}
