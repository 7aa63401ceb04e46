package circle

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
)

// Periodic is a job that computes, then communicates over its links, and again.
type Periodic struct {
	Compute, Communicate unit.Duration // at full speed
	Uses                 []maxmin.Use  // what it takes of each link at full speed
	Weight               float64       // where rates are shared; 0 counts as 1
	Class                int32
}

// Iteration is how long one takes undisturbed.
func (p *Periodic) Iteration() unit.Duration { return p.Compute + p.Communicate }

// sends reports whether the job ever disturbs or is disturbed.
func (p *Periodic) sends() bool { return p.Communicate > 0 && len(p.Uses) > 0 }

// Arrangement is one shift per job, and how well the jobs go together.
type Arrangement struct {
	// Shifts delay the jobs' iterations against one clock. Jobs that are connected
	// have the same Root, the first of them, whose shift is 0.
	Shifts []unit.Duration
	Root   []int32
	// Meetings are the contended links, those with the most traffic for their capacity
	// first. Links with the same jobs count once.
	Meetings []Meeting
}

// Meeting is a contended link: its jobs together would exceed it.
type Meeting struct {
	Link  int32
	Jobs  []int32
	Score float64 // with the best rotation
	// Cyclic says that this link closes a cycle of the affinity graph, so that the
	// shifts do not give it its rotation.
	Cyclic bool
}

// Score is the mean score of the contended links that a job is connected with, 1 where
// there are none, and whether the graph has a cycle there.
func (a *Arrangement) Score(job int) (mean float64, cyclic bool) {
	n := 0
	for i := range a.Meetings {
		if m := &a.Meetings[i]; a.Root[m.Jobs[0]] == a.Root[job] {
			n, mean, cyclic = n+1, mean+m.Score, cyclic || m.Cyclic
		}
	}
	if n == 0 {
		return 1, false
	}
	return mean / float64(n), cyclic
}

// Arranger arranges jobs and remembers how well those of a link went together.
type Arranger struct {
	known map[string]Fit
	key   []byte
}

// mostKnown bounds what an Arranger remembers.
const mostKnown = 1 << 14

// meeting is a Meeting with what it is judged by.
type meeting struct {
	Meeting
	capacity float64
	rates    []float64 // of the jobs
	load     float64   // mean traffic over capacity
	fit      Fit
}

// Arrange finds the rotations on every contended link and the shifts that follow
// from them.
func (r *Arranger) Arrange(jobs []Periodic, capacities []float64) Arrangement {
	a := Arrangement{Shifts: make([]unit.Duration, len(jobs)), Root: make([]int32, len(jobs))}
	for j := range jobs {
		a.Root[j] = int32(j)
	}
	links := meetings(jobs, capacities)
	// Links with the most traffic first: they keep their rotation where not all can.
	slices.SortFunc(links, func(x, y meeting) int {
		return cmp.Or(cmp.Compare(y.load, x.load), cmp.Compare(x.Link, y.Link))
	})
	for i := range links {
		m := &links[i]
		m.fit = r.best(m, jobs)
		m.Score, m.Cyclic = m.fit.Score, !a.join(m, jobs)
		a.Meetings = append(a.Meetings, m.Meeting)
	}
	settled := make([]bool, len(jobs))
	for i := range a.Meetings {
		if root := a.Root[a.Meetings[i].Jobs[0]]; a.Meetings[i].Cyclic && !settled[root] {
			settled[root] = true
			a.turnInCycle(root, links, jobs)
		}
	}
	return a
}

// meetings are the contended links; of those with the same jobs, the one with the
// most traffic for its capacity, because what is good for it is good for all.
func meetings(jobs []Periodic, capacities []float64) []meeting {
	type use struct {
		link, job int32
		rate      float64
	}
	var uses []use
	for j := range jobs {
		if !jobs[j].sends() {
			continue
		}
		for _, u := range jobs[j].Uses {
			uses = append(uses, use{u.Link, int32(j), u.Per})
		}
	}
	slices.SortFunc(uses, func(a, b use) int { return cmp.Or(cmp.Compare(a.link, b.link), cmp.Compare(a.job, b.job)) })
	var all []meeting
	for i := 0; i < len(uses); {
		m := meeting{Meeting: Meeting{Link: uses[i].link}, capacity: capacities[uses[i].link]}
		peak := 0.0
		for ; i < len(uses) && uses[i].link == m.Link; i++ {
			p := &jobs[uses[i].job]
			m.Jobs, m.rates = append(m.Jobs, uses[i].job), append(m.rates, uses[i].rate)
			m.load += uses[i].rate * float64(p.Communicate) / float64(p.Iteration()) / m.capacity
			peak += uses[i].rate
		}
		if len(m.Jobs) > 1 && m.capacity > 0 && peak > m.capacity*(1+slight) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b meeting) int {
		return cmp.Or(slices.Compare(a.Jobs, b.Jobs), cmp.Compare(b.load, a.load), cmp.Compare(a.Link, b.Link))
	})
	return slices.CompactFunc(all, func(a, b meeting) bool { return slices.Equal(a.Jobs, b.Jobs) })
}

// best is Best, remembered.
func (r *Arranger) best(m *meeting, jobs []Periodic) Fit {
	arcs := make([]Arc, len(m.Jobs))
	r.key = figures.Put(r.key[:0], int64(math.Float64bits(m.capacity)))
	for i, j := range m.Jobs {
		arcs[i] = Arc{jobs[j].Compute, jobs[j].Communicate, m.rates[i]}
		r.key = figures.Put(r.key, int64(arcs[i].Compute), int64(arcs[i].Communicate), int64(math.Float64bits(arcs[i].Rate)))
	}
	if f, ok := r.known[string(r.key)]; ok {
		return f
	}
	if r.known == nil || len(r.known) >= mostKnown {
		r.known = map[string]Fit{}
	}
	f := Best(m.capacity, arcs)
	r.known[string(r.key)] = f
	return f
}

// join adds a link to the graph: it turns the jobs that are connected with each of its
// jobs so that the link has its rotation, as walking the graph from the root does,
// t_k = t_j - t_j(link) + t_k(link). The part with the lowest root stays. A job that
// was connected before closes a cycle, and keeps its shift.
func (a *Arrangement) join(m *meeting, jobs []Periodic) (acyclic bool) {
	stay := 0
	for i, j := range m.Jobs {
		if a.Root[j] < a.Root[m.Jobs[stay]] {
			stay = i
		}
	}
	root := a.Root[m.Jobs[stay]]
	origin := a.Shifts[m.Jobs[stay]] - m.fit.Shifts[stay]
	acyclic = true
	for i, j := range m.Jobs {
		if i == stay {
			continue
		}
		old, turn := a.Root[j], origin+m.fit.Shifts[i]-a.Shifts[j]
		if old == root {
			acyclic = false
			continue
		}
		for k := range a.Root {
			if a.Root[k] == old {
				a.Root[k] = root
				a.Shifts[k] = Within(a.Shifts[k]+turn, jobs[k].Iteration())
			}
		}
	}
	return acyclic
}

// Within is a shift modulo an iteration, at least 0.
func Within(shift, iteration unit.Duration) unit.Duration {
	return (shift%iteration + iteration) % iteration
}
