// Package taskgraph is the clockwork under everything that happens within one
// iteration: pipelines, gradient blocks, transfers. A graph is tasks that wait for
// one another and for what they run on, a serial device or a shared link; Run
// says when each starts and ends, how busy each resource is and how much memory
// is held at most. It is exact arithmetic on events: the same graph gives the
// same timeline.
package taskgraph

import (
	"fmt"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// Kind is how a resource treats the tasks that want it.
type Kind uint8

// The kinds of resource.
const (
	// Ordered runs one task at a time, in the order in which the tasks were added.
	Ordered Kind = iota
	// Prioritised runs one task at a time, without preemption: of those ready the
	// lowest Priority, then the lowest id.
	Prioritised
	// Fluid is a link: the transfers of the lowest Priority present share its
	// bandwidth equally, the others stand still meanwhile.
	Fluid
)

// Resource is what tasks run on.
type Resource struct {
	Name string
	Kind Kind
	// Bandwidth is what a Fluid resource carries; 0 is unlimited.
	Bandwidth unit.Mbps
	// Latency passes after the last byte has left a Fluid resource until the
	// transfer has arrived; it does not occupy the link.
	Latency unit.Duration
}

// Task is one piece of work on one resource.
type Task struct {
	Name     string
	Resource int32
	Priority int32 // lower goes first
	// Duration is the time on a serial resource, Bytes the amount on a Fluid one.
	Duration unit.Duration
	Bytes    int64
	// AllocKiB is taken from memory Pool when the task starts, FreeKiB given back
	// when it ends. What ends at an instant frees before what starts then allocates.
	Pool              int32
	AllocKiB, FreeKiB int64
}

// Edge says that task After may start once task Before has ended.
type Edge struct{ Before, After int32 }

// Graph is the work to be timed. Ids are positions in its slices.
type Graph struct {
	Resources []Resource
	Tasks     []Task
	Edges     []Edge
}

// AddResource appends a resource and returns its id.
func (g *Graph) AddResource(r Resource) int32 {
	g.Resources = append(g.Resources, r)
	return int32(len(g.Resources) - 1)
}

// AddTask appends a task that waits for the given tasks and returns its id.
func (g *Graph) AddTask(t Task, after ...int32) int32 {
	id := int32(len(g.Tasks))
	g.Tasks = append(g.Tasks, t)
	for _, before := range after {
		g.Edges = append(g.Edges, Edge{before, id})
	}
	return id
}

// Timeline is when everything happened.
type Timeline struct {
	// Start and End are per task. A transfer starts when it reaches its link, and
	// ends when it has arrived.
	Start, End []unit.Time
	// Busy is per resource: the time with a task running or bytes on the link.
	Busy []unit.Duration
	// PeakKiB is per memory pool.
	PeakKiB  []int64
	Makespan unit.Duration
}

// longest bounds what a graph may take in all, so that no sum of spans overflows.
const longest = 1 << 62

// check refuses what Run could not index or time.
func (g *Graph) check() error {
	total := 0.0 // µs: nothing waits without something else going on
	for i, r := range g.Resources {
		if r.Kind > Fluid || r.Bandwidth < 0 || r.Latency < 0 {
			return fmt.Errorf("resource %d (%s): kind %d, bandwidth %d, latency %d: expected a known kind and nothing negative",
				i, r.Name, r.Kind, int64(r.Bandwidth), int64(r.Latency))
		}
	}
	for i, t := range g.Tasks {
		switch {
		case t.Resource < 0 || int(t.Resource) >= len(g.Resources):
			return fmt.Errorf("task %d (%s): resource %d does not exist, there are %d", i, t.Name, t.Resource, len(g.Resources))
		case t.Duration < 0 || t.Bytes < 0:
			return fmt.Errorf("task %d (%s): duration %d and bytes %d must not be negative", i, t.Name, int64(t.Duration), t.Bytes)
		case t.Pool < 0 || int(t.Pool) > len(g.Tasks):
			return fmt.Errorf("task %d (%s): memory pool %d is not in 0..%d", i, t.Name, t.Pool, len(g.Tasks))
		}
		r := &g.Resources[t.Resource]
		total += float64(t.Duration) + float64(r.Latency) + 8*float64(t.Bytes)/float64(max(1, r.Bandwidth)) + 1
	}
	if total >= longest {
		return fmt.Errorf("the tasks would take %.0f years: expected less than a hundred thousand", total/(365*float64(unit.Day)))
	}
	for i, e := range g.Edges {
		if min(e.Before, e.After) < 0 || int(max(e.Before, e.After)) >= len(g.Tasks) {
			return fmt.Errorf("edge %d: %d before %d, but there are %d tasks", i, e.Before, e.After, len(g.Tasks))
		}
	}
	return nil
}

// relation is who waits for whom in flat form: the tasks that wait for t are
// next[first[t]:first[t+1]], and left[t] counts what t still waits for.
type relation struct {
	first, next, left []int32
	edges             []Edge
}

// relate gathers the edges by their first task. The order of an Ordered resource
// is a wait like any other, so it becomes edges too: one mechanism, and an order
// that contradicts the edges is found as a cycle.
func (g *Graph) relate() relation {
	n := len(g.Tasks)
	edges := append(make([]Edge, 0, len(g.Edges)+n), g.Edges...)
	last := make([]int32, len(g.Resources))
	for i := range last {
		last[i] = -1
	}
	for t := range int32(n) {
		r := g.Tasks[t].Resource
		if g.Resources[r].Kind != Ordered {
			continue
		}
		if last[r] >= 0 {
			edges = append(edges, Edge{last[r], t})
		}
		last[r] = t
	}
	l := relation{first: make([]int32, n+1), next: make([]int32, len(edges)), left: make([]int32, n), edges: edges}
	for _, e := range edges {
		l.first[e.Before+1]++
		l.left[e.After]++
	}
	for t := range n {
		l.first[t+1] += l.first[t]
	}
	fill := append([]int32(nil), l.first...)
	for _, e := range edges {
		l.next[fill[e.Before]] = e.After
		fill[e.Before]++
	}
	return l
}

// cycle names a ring of tasks that wait for one another. Every task that
// still waits does so for another such task, so following any one of those returns.
func (g *Graph) cycle(l relation) error {
	for i := range g.Tasks {
		if l.left[i] > 0 {
			return fmt.Errorf("tasks wait for one another in a circle: %s", strings.Join(g.ring(l, int32(i)), " <- "))
		}
	}
	return nil
}

// ring walks from a stuck task to what it waits for until it meets itself.
func (g *Graph) ring(l relation, t int32) []string {
	blocker := make([]int32, len(g.Tasks))
	for _, e := range l.edges {
		if l.left[e.Before] > 0 {
			blocker[e.After] = e.Before
		}
	}
	seen := make([]bool, len(g.Tasks))
	for !seen[t] {
		seen[t] = true
		t = blocker[t]
	}
	var names []string
	for stop := t; ; {
		names = append(names, g.label(t))
		if t = blocker[t]; t == stop {
			return append(names, g.label(t))
		}
	}
}

// label is the task's name, or its id where it has none.
func (g *Graph) label(t int32) string {
	if g.Tasks[t].Name != "" {
		return g.Tasks[t].Name
	}
	return fmt.Sprintf("task %d", t)
}
