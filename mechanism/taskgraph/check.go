package taskgraph

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/unit"
)

const (
	// longest bounds what a graph may take in all, so that no sum of spans overflows.
	longest = 1 << 62
	// latest bounds the latency of a link, so that no sum of links overflows.
	latest = 365 * unit.Day
)

// route is a resource as its tasks see it, its parts resolved.
type route struct {
	serial  []int32
	links   []maxmin.Use // those whose bandwidth is limited
	latency unit.Duration
	slowest unit.Mbps // of the links; 0 is unlimited
	fluid   bool      // it has links, limited or not
}

// routes refuses malformed resources and resolves the others.
func (g *Graph) routes() ([]route, error) {
	all := make([]route, len(g.Resources))
	self := make([]int32, len(all))
	for i := range g.Resources {
		self[i] = int32(i)
		r := &g.Resources[i]
		parts := self[i : i+1]
		if r.Kind == Joint {
			parts = r.Parts
		}
		if what := g.wrong(r); what != "" {
			return nil, fmt.Errorf("resource %d (%s): %s", i, r.Name, what)
		}
		all[i].resolve(g, parts)
	}
	return all, nil
}

// wrong says what a resource must not be.
func (g *Graph) wrong(r *Resource) string {
	switch {
	case r.Kind > Joint || r.Bandwidth < 0 || r.Latency < 0 || r.Latency > latest || r.Slots < 0:
		return fmt.Sprintf("kind %d, bandwidth %d, latency %d, slots %d: expected a known kind, nothing negative and at most a year",
			r.Kind, int64(r.Bandwidth), int64(r.Latency), r.Slots)
	case r.Kind != Fluid && r.Bandwidth+unit.Mbps(r.Latency) > 0:
		return "a bandwidth or a latency: expected of a Fluid resource only"
	case r.Slots > 1 && r.Kind != Prioritised:
		return fmt.Sprintf("%d slots: expected 1, or Prioritised: only that runs several tasks at once", r.Slots)
	case (r.Kind == Joint) != (len(r.Parts) > 0):
		return fmt.Sprintf("%d parts: expected some of a Joint resource and none of another", len(r.Parts))
	}
	for k, p := range r.Parts {
		if p < 0 || int(p) >= len(g.Resources) || g.Resources[p].Kind == Joint || slices.Contains(r.Parts[:k], p) {
			return fmt.Sprintf("part %d: expected a resource that exists, is not Joint itself and is named once", p)
		}
	}
	return ""
}

// resolve sorts the parts into what is held and what is shared.
func (r *route) resolve(g *Graph, parts []int32) {
	if len(parts) == 1 && g.Resources[parts[0]].Kind != Fluid {
		r.serial = parts
		return
	}
	for _, p := range parts {
		part := &g.Resources[p]
		if part.Kind != Fluid {
			r.serial = append(r.serial, p)
			continue
		}
		r.fluid, r.latency = true, r.latency+part.Latency
		if part.Bandwidth > 0 {
			r.links = append(r.links, maxmin.Use{Link: p, Per: 1})
			if r.slowest == 0 || part.Bandwidth < r.slowest {
				r.slowest = part.Bandwidth
			}
		}
	}
}

// check refuses what Run could not index or time, and returns how many pools there are.
func (g *Graph) check(routes []route) (pools int32, err error) {
	total := 0.0 // µs: nothing waits without something else going on
	pools = int32(len(g.Pools))
	for i := range g.Tasks {
		t := &g.Tasks[i]
		if what := g.wrongTask(t, routes); what != "" {
			return 0, fmt.Errorf("%s: %s", g.label(int32(i)), what)
		}
		r := &routes[t.Resource]
		total += float64(t.Duration) + float64(r.latency) + 8*float64(t.Bytes)/float64(max(1, r.slowest)) + 1
		pools = max(pools, t.Pool+1)
	}
	if total >= longest {
		return 0, fmt.Errorf("the tasks would take %.0f years: expected less than a hundred thousand", total/(365*float64(unit.Day)))
	}
	for i, e := range g.Edges {
		if min(e.Before, e.After) < 0 || int(max(e.Before, e.After)) >= len(g.Tasks) {
			return 0, fmt.Errorf("edge %d: %d before %d, but there are %d tasks", i, e.Before, e.After, len(g.Tasks))
		}
	}
	for i, all := range g.Memory {
		for _, m := range all {
			if !g.pool(m.Pool) || min(m.AllocKiB, m.FreeKiB) < 0 {
				return 0, fmt.Errorf("memory row %d: pool %d, %d and %d KiB: expected a pool in 0..%d and nothing negative",
					i, m.Pool, m.AllocKiB, m.FreeKiB, g.mostPools())
			}
			pools = max(pools, m.Pool+1)
		}
	}
	return pools, nil
}

// mostPools bounds the id of a pool, so that a mistyped one is answered and not allocated.
func (g *Graph) mostPools() int { return len(g.Tasks) + len(g.Pools) }

func (g *Graph) pool(p int32) bool { return p >= 0 && int(p) <= g.mostPools() }

// wrongTask says what a task must not be.
func (g *Graph) wrongTask(t *Task, routes []route) string {
	switch {
	case t.Resource < 0 || int(t.Resource) >= len(routes):
		return fmt.Sprintf("resource %d does not exist, there are %d", t.Resource, len(routes))
	case t.Duration < 0 || t.Bytes < 0 || t.AllocKiB < 0 || t.FreeKiB < 0:
		return fmt.Sprintf("duration %d, bytes %d and memory %d and %d must not be negative", int64(t.Duration), t.Bytes, t.AllocKiB, t.FreeKiB)
	case t.Bytes > 0 && !routes[t.Resource].fluid:
		return fmt.Sprintf("%d bytes on a resource without links: expected a duration", t.Bytes)
	case t.Duration > 0 && routes[t.Resource].fluid:
		return fmt.Sprintf("a duration of %d over links: expected bytes, whose time follows", int64(t.Duration))
	case !g.pool(t.Pool):
		return fmt.Sprintf("memory pool %d is not in 0..%d", t.Pool, g.mostPools())
	case t.Memory < 0 || int(t.Memory) >= max(1, len(g.Memory)):
		return fmt.Sprintf("memory %d: expected one of the %d rows", t.Memory, len(g.Memory))
	}
	return ""
}

// circle names a ring of tasks that wait for one another, by edges or by the order of
// a resource. What has not started waits for another such task, so that following any
// one of them returns.
func (c *clock) circle() error {
	blocker := make([]int32, len(c.g.Tasks))
	for _, e := range c.g.Edges {
		if c.tasks[e.Before].left != started {
			blocker[e.After] = e.Before
		}
	}
	for i := range c.at { // only what is next in an order still has its turn kept here
		for turn := c.at[i].turn; turn != 0; turn = c.turns[turn].next {
			if next := c.turns[turn].next; next != 0 {
				blocker[c.turns[next].task] = c.turns[turn].task
			}
		}
	}
	t := int32(slices.IndexFunc(c.tasks, func(x status) bool { return x.left != started }))
	seen := make([]bool, len(blocker))
	for !seen[t] {
		seen[t] = true
		t = blocker[t]
	}
	names := []string{c.g.label(t)}
	for next := blocker[t]; ; next = blocker[next] {
		if names = append(names, c.g.label(next)); next == t {
			return fmt.Errorf("tasks wait for one another in a circle: %s", strings.Join(names, " <- "))
		}
	}
}

// label is the task's name, or its id where it has none.
func (g *Graph) label(t int32) string {
	if g.Label != nil {
		return g.Label(t)
	}
	return "task " + strconv.Itoa(int(t))
}
