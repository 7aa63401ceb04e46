package pollux

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate/search"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/pollux/matrix"
)

// question is the problem in a form that can travel: jobs by who has had least.
type question struct {
	Now    unit.Time
	Config Config
	matrix.Situation
}

// reply is the matrix, by job, and which search found it.
type reply struct {
	Search string
	Rows   []matrix.Row
}

// ask describes the jobs that wait or run and the nodes that take runs.
func ask(v plan.View, jobs []plan.JobID, c *Config, had []had) *question {
	q := &question{Now: v.Now(), Config: *c}
	present := q.Look(v)
	order := slices.Clone(jobs)
	slices.SortStableFunc(order, func(a, b plan.JobID) int {
		return cmp.Or(cmp.Compare(v.Service(a), v.Service(b)), cmp.Compare(a, b))
	})
	for _, id := range order {
		shape := v.Shape(id)
		if shape.Devices == 0 {
			continue
		}
		most := shape.Most()
		if c.Double {
			most = reach(shape, had, id)
		}
		j := matrix.Describe(v, id, shape.Models&present, most)
		j.Factor = factor(v, id)
		q.Jobs = append(q.Jobs, j)
	}
	return q
}

// reach is twice what a job has had, or its least legal number.
func reach(shape *plan.Shape, all []had, id plan.JobID) int32 {
	most := int32(1)
	if at, ok := slices.BinarySearchFunc(all, id, func(h had, id plan.JobID) int { return int(h.Job) - int(id) }); ok {
		most = max(most, 2*all[at].Workers)
	}
	least := int32(1)
	for !shape.MayHave(least) {
		least++
	}
	return min(max(most, least), shape.Most())
}

// factor is what of a job's time one more restart would leave it, after those it had.
func factor(v plan.View, id plan.JobID) float64 {
	j := v.Job(id)
	restart := (j.Checkpoint.Save + j.Checkpoint.Load).Seconds()
	age := v.Now().Sub(j.Submit).Seconds()
	if whole := age + restart; j.Attempt > 0 && whole > 0 {
		return max(age-restart*float64(j.Attempt-1), 0) / whole
	}
	return 1
}

// solve searches. The genetic search begins with the matrix of today and that of the
// greedy one, so it is never worse.
func (q *question) solve() *reply {
	p := q.Problem(!q.Config.Avoid)
	r := &reply{Search: "greedy"}
	best := search.Greedy(p)
	if len(q.Jobs) <= q.Config.GreedyAbove {
		effort := search.Patient()
		effort.Population, effort.Generations = q.Config.Population, q.Config.Generations
		best, _ = search.Genetic(p, []search.Matrix{best}, effort, q.Config.Seed^uint64(q.Now))
		r.Search = "genetic"
	}
	r.Rows = q.Rows(best)
	return r
}

func truth(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// searches are what found a reply, by their figure.
var searches = [...]string{"", "greedy", "genetic"}

func (q *question) encode() []byte {
	c := &q.Config
	return q.Put(figures.Put(make([]byte, 0, 4*len(q.Nodes)+128*len(q.Jobs)), int64(q.Now), int64(c.Interval), int64(c.Population), int64(c.Generations),
		int64(c.GreedyAbove), truth(c.Avoid), int64(c.Seed)))
}

func decodeQuestion(b []byte) (*question, error) {
	r := figures.Read(b)
	q := &question{Now: unit.Time(r.Next())}
	q.Config = Config{Interval: unit.Duration(r.Next()), Population: int(r.Next()), Generations: int(r.Next()), GreedyAbove: int(r.Next()), Avoid: r.Next() == 1, Seed: uint64(r.Next())}
	q.Situation = matrix.Read(r)
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("a question to pollux: %w", err)
	}
	return q, nil
}

// encode appends the reply.
func (a *reply) encode(b []byte) []byte {
	search := int64(max(0, slices.Index(searches[:], a.Search)))
	return matrix.PutRows(figures.Put(b, search), a.Rows)
}

func decodeReply(r *figures.Reader) (a reply) {
	if search := r.Next(); search >= 0 && search < int64(len(searches)) {
		a.Search = searches[search]
	}
	a.Rows = matrix.ReadRows(r)
	return a
}

// Remember encodes the last reply and when it was asked for.
func (p *Policy) Remember() []byte {
	m := &p.memory
	b := m.Reply.encode(figures.Put(nil, truth(m.Asked), int64(m.At)))
	b = figures.PutCount(b, len(m.Had))
	for _, h := range m.Had {
		b = figures.Put(b, int64(h.Job), int64(h.Workers))
	}
	return b
}

// Recall reads what Remember wrote.
func (p *Policy) Recall(b []byte) error {
	p.memory = memory{}
	if len(b) == 0 {
		return nil
	}
	r := figures.Read(b)
	m := memory{Asked: r.Next() == 1, At: unit.Time(r.Next())}
	m.Reply = decodeReply(r)
	for range r.Counted {
		m.Had = append(m.Had, had{plan.JobID(r.Next()), int32(r.Next())})
	}
	if r.End() != nil {
		return fmt.Errorf("the memory of pollux: %w", r.End())
	}
	p.memory = m
	return nil
}
