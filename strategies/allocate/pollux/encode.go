package pollux

import (
	"fmt"
	"math"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Questions, replies and the memory are figures: as text those of thousands of jobs
// would hold the engine up for longer than a decision may.

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
	b := figures.Put(make([]byte, 0, 4*len(q.Nodes)+128*len(q.Jobs)), int64(q.Now), int64(c.Interval), int64(c.Population), int64(c.Generations),
		int64(c.GreedyAbove), truth(c.Avoid), int64(c.Seed))
	b = figures.PutCount(b, len(q.Nodes))
	for _, n := range q.Nodes {
		b = figures.Put(b, int64(n.Devices), int64(n.Model))
	}
	b = figures.PutCount(b, len(q.Jobs))
	for i := range q.Jobs {
		j := &q.Jobs[i]
		b = figures.PutCount(figures.Put(b, int64(j.ID), int64(j.PerWorker), int64(j.Models), int64(math.Float64bits(j.Factor))), len(j.Legal))
		for n, legal := range j.Legal {
			b = figures.Put(b, int64(legal), j.One[n], j.Several[n])
		}
		b = putCells(b, j.Base)
	}
	return b
}

func decodeQuestion(b []byte) (*question, error) {
	r := figures.Read(b)
	q := &question{Now: unit.Time(r.Next())}
	q.Config = Config{Interval: unit.Duration(r.Next()), Population: int(r.Next()), Generations: int(r.Next()), GreedyAbove: int(r.Next()), Avoid: r.Next() == 1, Seed: uint64(r.Next())}
	for range r.Counted {
		q.Nodes = append(q.Nodes, node{int(r.Next()), int32(r.Next())})
	}
	for range r.Counted {
		j := job{ID: plan.JobID(r.Next()), PerWorker: int(r.Next()), Models: uint64(r.Next()), Factor: math.Float64frombits(uint64(r.Next()))}
		for range r.Counted {
			j.Legal, j.One, j.Several = append(j.Legal, int32(r.Next())), append(j.One, r.Next()), append(j.Several, r.Next())
		}
		j.Base = readCells(r)
		q.Jobs = append(q.Jobs, j)
	}
	if err := r.End(); err != nil {
		return nil, fmt.Errorf("a question to pollux: %w", err)
	}
	return q, nil
}

// encode appends the reply.
func (a *reply) encode(b []byte) []byte {
	search := int64(0)
	for i, name := range searches {
		if name == a.Search {
			search = int64(i)
		}
	}
	b = figures.PutCount(figures.Put(b, search), len(a.Rows))
	for i := range a.Rows {
		b = putCells(figures.Put(b, int64(a.Rows[i].Job)), a.Rows[i].Cells)
	}
	return b
}

func decodeReply(r *figures.Reader) (a reply) {
	if search := r.Next(); search >= 0 && search < int64(len(searches)) {
		a.Search = searches[search]
	}
	for range r.Counted {
		a.Rows = append(a.Rows, row{plan.JobID(r.Next()), readCells(r)})
	}
	return a
}

func putCells(b []byte, cells []cell) []byte {
	b = figures.PutCount(b, len(cells))
	for _, c := range cells {
		b = figures.Put(b, int64(c.Node), int64(c.Workers))
	}
	return b
}

func readCells(r *figures.Reader) (cells []cell) {
	if n := r.Count(); n > 0 {
		cells = make([]cell, n)
	}
	for i := range cells {
		cells[i] = cell{plan.NodeID(r.Next()), int32(r.Next())}
	}
	return cells
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
