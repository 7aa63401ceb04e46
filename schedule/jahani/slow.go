package jahani

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
		Problem *Problem // its jobs are in Work
		Work    []byte
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

// large reports whether a problem of so many nodes is solved outside.
func (d *Decider) large(nodes int) bool { return len(d.jobs)*nodes > d.config.AskAbove }

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
	d.look(v, jobs)
	now := d.now()
	nodes := d.nodes(now)
	if !d.large(nodes) {
		return nil
	}
	if slices.Equal(d.posed.Jobs, jobs) && slices.Equal(d.posed.Kinds, d.names()) && v.Now() < d.posedAt.Add(unit.Seconds(d.config.HorizonSec)) {
		return nil
	}
	d.posed, d.posedAt = question{Jobs: slices.Clone(jobs), Kinds: d.names()}, v.Now()
	p := d.problem(v, nodes)
	work := pack(p.Jobs)
	p.Jobs = nil
	q, err := json.Marshal(question{p, work, now, d.jobs, d.names()})
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
	if q.Problem == nil {
		return nil, errors.New("a question of jahani without a problem")
	}
	if err := q.Problem.unpack(q.Work, len(q.Jobs)); err != nil {
		return nil, err
	}
	return json.Marshal(answer{Search(q.Problem, q.Now), q.Jobs, q.Kinds})
}

// pack writes jobs down in whole microseconds: as figures in JSON they would take longer
// than a decision may.
func pack(jobs []Work) (b []byte) {
	const micro = 1e6
	for i := range jobs {
		j := &jobs[i]
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(j.Weight))
		b = binary.AppendVarint(b, int64(math.Round(j.DueSec*micro)))
		for _, times := range j.Seconds {
			for _, t := range times {
				b = binary.AppendVarint(b, int64(math.Round(t*micro)))
			}
		}
	}
	return b
}

// unpack reads so many jobs.
func (p *Problem) unpack(b []byte, jobs int) error {
	broken := false
	next := func() float64 {
		x, n := binary.Varint(b)
		broken = broken || n <= 0
		b = b[max(0, n):]
		return float64(x) / 1e6
	}
	p.Jobs = make([]Work, jobs)
	for i := range p.Jobs {
		if len(b) < 8 {
			return errors.New("a question of jahani is cut off")
		}
		j := &p.Jobs[i]
		j.Weight, b = math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
		j.DueSec = next()
		for _, m := range p.Machines {
			times := make([]float64, m.Devices)
			for g := range times {
				times[g] = next()
			}
			j.Seconds = append(j.Seconds, times)
		}
	}
	if broken || len(b) > 0 {
		return errors.New("a question of jahani is not as long as its jobs")
	}
	return nil
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
func (d *Decider) answered(now Plan) Plan {
	a := d.answer
	d.answer = nil
	if a == nil || !slices.Equal(a.Kinds, d.names()) {
		return now
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
