package jahani

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Large problems take longer than a decision may: they are solved outside, and until
// the answer comes the last plan stands. What goes out and comes back are figures: as
// text they would take longer than a decision may.

var _ allocate.Slow = (*Decider)(nil)

// question is a problem as it is put outside, beside the plan that the search begins
// with and whose the places in both are.
type question struct {
	*Problem
	now   Plan
	jobs  []plan.JobID
	kinds []machineKind
}

// answer is a plan, and whose the places in it are.
type answer struct {
	plan  Plan
	jobs  []plan.JobID
	kinds []machineKind
}

// large reports whether a problem of so many nodes is solved outside.
func (d *Decider) large(nodes int) bool { return len(d.jobs)*nodes > d.config.AskAbove }

// Question puts a large problem: when jobs or machines have come or gone since the last
// one, or the horizon has passed.
func (d *Decider) Question(v plan.View, jobs []plan.JobID) []byte {
	if len(jobs) == 0 {
		return nil
	}
	d.survey(v, jobs)
	now := d.now()
	nodes := d.nodes(now)
	if !d.large(nodes) {
		return nil
	}
	if slices.Equal(d.posed.jobs, jobs) && slices.Equal(d.posed.kinds, d.kinds) && v.Now() < d.posedAt.Add(unit.Seconds(d.config.HorizonSec)) {
		return nil
	}
	d.posed.jobs, d.posed.kinds, d.posedAt = append(d.posed.jobs[:0], jobs...), append(d.posed.kinds[:0], d.kinds...), v.Now()
	q := question{d.problem(v, nodes), now, d.jobs, d.kinds}
	return q.encode()
}

// Solve is the search.
func (d *Decider) Solve(asked []byte) ([]byte, error) {
	q, err := decodeQuestion(asked)
	if err != nil {
		return nil, err
	}
	a := answer{Search(q.Problem, q.now), q.jobs, q.kinds}
	return a.encode(), nil
}

// micro is the unit in which times and prices go out.
const micro = 1e6

func toMicro(x float64) int64 { return int64(math.Round(x * micro)) }

func (q *question) encode() []byte {
	b := putKinds(make([]byte, 0, 64*(1+len(q.jobs))), q.kinds)
	b = putPlan(b, q.now, q.jobs)
	b = figures.Put(b, int64(q.Nodes), toMicro(q.HorizonSec), toMicro(q.Rho))
	for i := range q.Machines {
		m := &q.Machines[i]
		b = figures.Put(b, toMicro(m.PricePerHour), int64(m.Devices), int64(m.Most))
	}
	for i := range q.Jobs {
		j := &q.Jobs[i]
		b = figures.Put(b, int64(math.Float64bits(j.Weight)), toMicro(j.DueSec))
		for _, times := range j.Seconds {
			for _, t := range times {
				b = figures.Put(b, toMicro(t))
			}
		}
	}
	return b
}

func decodeQuestion(b []byte) (q question, err error) {
	r := figures.Read(b)
	q.kinds = readKinds(r)
	q.now, q.jobs = readPlan(r)
	p := &Problem{Nodes: int(r.Next()), HorizonSec: float64(r.Next()) / micro, Rho: float64(r.Next()) / micro}
	for range q.kinds {
		p.Machines = append(p.Machines, Machine{PricePerHour: float64(r.Next()) / micro, Devices: int(r.Next()), Most: int(r.Next())})
	}
	p.Jobs = make([]Work, len(q.jobs))
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.Weight, j.DueSec = math.Float64frombits(uint64(r.Next())), float64(r.Next())/micro
		for _, m := range p.Machines {
			var times []float64
			for _, x := range r.List(m.Devices) {
				times = append(times, float64(x)/micro)
			}
			j.Seconds = append(j.Seconds, times)
		}
	}
	if err := r.End(); err != nil {
		return q, fmt.Errorf("a question of jahani: %w", err)
	}
	q.Problem = p
	return q, nil
}

func (a *answer) encode() []byte { return putPlan(putKinds(nil, a.kinds), a.plan, a.jobs) }

func decodeAnswer(b []byte) (*answer, error) {
	r := figures.Read(b)
	a := &answer{kinds: readKinds(r)}
	a.plan, a.jobs = readPlan(r)
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("an answer to jahani: %w", err)
	}
	for _, m := range a.plan.Rented {
		if m < none || m >= len(a.kinds) {
			return nil, errors.New("an answer to jahani rents what there is not")
		}
	}
	for _, c := range a.plan.Jobs {
		if c.Devices > 0 && (c.Node < 0 || c.Node >= len(a.plan.Rented) || a.plan.Rented[c.Node] == none) {
			return nil, errors.New("an answer to jahani has a job on no node")
		}
	}
	return a, nil
}

func putKinds(b []byte, kinds []machineKind) []byte {
	b = figures.PutCount(b, len(kinds))
	for _, k := range kinds {
		b = figures.Put(b, int64(k.model), int64(k.count), int64(k.price))
	}
	return b
}

func readKinds(r *figures.Reader) (kinds []machineKind) {
	for range r.Counted {
		kinds = append(kinds, machineKind{int32(r.Next()), int32(r.Next()), int32(r.Next())})
	}
	return kinds
}

// putPlan writes a plan down, and whose its places are.
func putPlan(b []byte, p Plan, jobs []plan.JobID) []byte {
	b = figures.PutCount(b, len(p.Rented))
	for _, m := range p.Rented {
		b = figures.Put(b, int64(m))
	}
	b = figures.PutCount(b, len(jobs))
	for i, c := range p.Jobs {
		b = figures.Put(b, int64(jobs[i]), int64(c.Node), int64(c.Devices))
	}
	return b
}

func readPlan(r *figures.Reader) (p Plan, jobs []plan.JobID) {
	for range r.Counted {
		p.Rented = append(p.Rented, int(r.Next()))
	}
	n := r.Count()
	p.Jobs, jobs = make([]Choice, 0, n), make([]plan.JobID, 0, n)
	for range n {
		jobs = append(jobs, plan.JobID(r.Next()))
		p.Jobs = append(p.Jobs, Choice{Node: int(r.Next()), Devices: int(r.Next())})
	}
	return p, jobs
}

// Learn keeps the plan for the decision to come. One that cannot be read is none: the
// last plan stands.
func (d *Decider) Learn(reply []byte) { d.answer, _ = decodeAnswer(reply) }

// answered is the plan that came from outside, as far as its jobs are still there; the
// last plan where none came or the machines are not those of the question any more.
func (d *Decider) answered(now Plan) Plan {
	a := d.answer
	d.answer = nil
	if a == nil || !slices.Equal(a.kinds, d.kinds) {
		return now
	}
	found := Plan{Rented: a.plan.Rented, Jobs: make([]Choice, len(d.jobs))}
	lives := make([]bool, len(found.Rented))
	for i, id := range a.jobs {
		if at, ok := slices.BinarySearch(d.jobs, id); ok {
			c := a.plan.Jobs[i]
			found.Jobs[at] = c
			if c.Devices > 0 {
				lives[c.Node] = true
			}
		}
	}
	for n := range found.Rented {
		if !lives[n] {
			found.Rented[n] = none
		}
	}
	return found
}
