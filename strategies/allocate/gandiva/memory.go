package gandiva

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// memory is what the State does not say.
type memory struct {
	slice int64
	next  unit.Time         // end of the slice
	last  []turned          // by job
	tried [][2]int32        // pairs that were packed once
	pairs []pair            // packed now
	idle  []unit.Time       // by node: since when it has devices that nobody is on, Never where it has none
	grown map[int32][]int32 // by job: the devices it has grown to
}

// turned is the slice that a job last computed in, and the rate at which it was last
// seen by itself; 0 is never.
type turned struct {
	job              int32
	slice, soloMicro int64
}

// pair is two packed jobs; until it is settled it is on trial since its baseline: what
// they had done by then, and at which rate each went by itself.
type pair struct {
	jobs      [2]plan.JobID
	work, ran [2]unit.Duration
	soloMicro [2]int64
	settled   bool
}

func newMemory() memory { return memory{grown: map[int32][]int32{}} }

// lastTurn is what is remembered of a job; nothing of one that is new.
func (m *memory) lastTurn(job int32) turned {
	at, found := slices.BinarySearchFunc(m.last, job, func(t turned, job int32) int { return int(t.job) - int(job) })
	if !found {
		return turned{job: job}
	}
	return m.last[at]
}

// Remember encodes what the State does not say.
func (g *Decider) Remember() []byte {
	m := &g.m
	b := figures.PutCount(figures.Put(make([]byte, 0, g.size+g.size/8), m.slice, int64(m.next)), len(m.last))
	for _, t := range m.last {
		b = figures.Put(b, int64(t.job), t.slice, t.soloMicro)
	}
	b = figures.PutCount(b, len(m.tried))
	for _, t := range m.tried {
		b = figures.Put(b, int64(t[0]), int64(t[1]))
	}
	b = figures.PutCount(b, len(m.pairs))
	for i := range m.pairs {
		o, settled := &m.pairs[i], int64(0)
		if o.settled {
			settled = 1
		}
		b = figures.Put(b, settled)
		for k := range o.jobs {
			b = figures.Put(b, int64(o.jobs[k]), int64(o.work[k]), int64(o.ran[k]), o.soloMicro[k])
		}
	}
	b = figures.PutCount(b, len(m.idle))
	for _, at := range m.idle {
		b = figures.Put(b, int64(at))
	}
	for _, job := range slices.Sorted(maps.Keys(m.grown)) {
		b = figures.PutCount(figures.Put(b, int64(job)), len(m.grown[job]))
		for _, d := range m.grown[job] {
			b = figures.Put(b, int64(d))
		}
	}
	g.size = len(b)
	return b
}

// Recall reads what Remember wrote.
func (g *Decider) Recall(b []byte) error {
	r, m := figures.Read(b), newMemory()
	m.slice, m.next = r.Next(), unit.Time(r.Next())
	for range r.Counted {
		m.last = append(m.last, turned{int32(r.Next()), r.Next(), r.Next()})
	}
	for range r.Counted {
		m.tried = append(m.tried, [2]int32{int32(r.Next()), int32(r.Next())})
	}
	for range r.Counted {
		o := pair{settled: r.Next() == 1}
		for k := range o.jobs {
			o.jobs[k], o.work[k], o.ran[k], o.soloMicro[k] = plan.JobID(r.Next()), unit.Duration(r.Next()), unit.Duration(r.Next()), r.Next()
		}
		m.pairs = append(m.pairs, o)
	}
	for range r.Counted {
		m.idle = append(m.idle, unit.Time(r.Next()))
	}
	for r.More() {
		job := int32(r.Next())
		for range r.Counted {
			m.grown[job] = append(m.grown[job], int32(r.Next()))
		}
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of gandiva: %w", err)
	}
	g.m = m
	return nil
}
