package taskgraph

import "github.com/musterdl/muster/model/unit"

// What an event is about: a task, a link or a transfer of the mesh.
const (
	leaves  = iota // a task leaves what it holds
	arrives        // a transfer is there, its latency after it has left
	wakes          // the first transfer leaves a link, unless that has changed
	due            // a transfer leaves the mesh, unless its rate has changed
)

// clock is one run in progress.
type clock struct {
	g      *Graph
	routes []route  // per resource
	tasks  []status // per task
	edges  []follower

	now    unit.Time
	events heap[unit.Time]
	at     []station // per resource
	turns  []turn
	dirty  []int32     // serial resources to look at before time moves on
	calls  heap[int64] // tasks that may hold several resources, to be tried by turn
	links  []link      // per resource
	moved  []int32     // links to look at before time moves on
	mesh   mesh
	memory []pool
	done   int
	line   Timeline
}

// status is a task at work.
type status struct {
	left   int32 // how many tasks it still waits for, or started
	first  int32 // the first that waits for it, in clock.edges; 0 is none
	waited int32 // what let it start; see clock.start
}

// started marks a task in status.left.
const started = -1

// follower is a task that waits for another, and the next one in clock.edges.
type follower struct{ task, next int32 }

// Run times the graph. It fails where the graph is malformed or its tasks wait
// for one another in a circle, which the error names.
func Run(g *Graph) (Timeline, error) {
	c, err := newClock(g)
	if err != nil {
		return Timeline{}, err
	}
	for t := range g.Tasks {
		if c.tasks[t].left == 0 {
			c.ready(int32(t))
		}
	}
	for c.pass(); len(c.events) > 0; c.pass() {
		c.now = c.events[0].key
		// All that ends now ends before anything starts now: memory is given back
		// first, and a resource chooses among all that has become ready.
		for len(c.events) > 0 && c.events[0].key == c.now {
			c.apply(c.events.pop())
		}
	}
	if c.done < len(g.Tasks) {
		return Timeline{}, c.circle()
	}
	c.close()
	return c.line, nil
}

func newClock(g *Graph) (*clock, error) {
	routes, err := g.routes()
	if err != nil {
		return nil, err
	}
	pools, err := g.check(routes)
	if err != nil {
		return nil, err
	}
	n, r := len(g.Tasks), len(g.Resources)
	c := &clock{
		g: g, routes: routes, tasks: make([]status, n), edges: make([]follower, len(g.Edges)+1),
		at: make([]station, r), links: make([]link, r), mesh: newMesh(g, routes), memory: make([]pool, pools),
		line: Timeline{Start: make([]unit.Time, n), End: make([]unit.Time, n), Busy: make([]unit.Duration, r),
			Idle: make([]unit.Duration, r), PeakKiB: make([]int64, pools)},
	}
	for i, e := range g.Edges {
		before := &c.tasks[e.Before]
		c.edges[i+1] = follower{e.After, before.first}
		before.first = int32(i + 1)
		c.tasks[e.After].left++
	}
	c.open()
	return c, c.declare()
}

// pass starts what can start now, and says when what is on the links will be over.
func (c *clock) pass() {
	c.serve()
	c.setWakeups()
	c.mesh.setRates(c)
}

// apply does what is due at an instant.
func (c *clock) apply(e item[unit.Time]) {
	switch e.what {
	case leaves:
		c.leave(e.id)
	case arrives:
		c.end(e.id)
	case wakes:
		if l := &c.links[e.id]; l.due == e.key {
			c.deliver(e.id, l)
		}
	case due:
		if f := &c.mesh.flows[e.id]; f.due == e.key {
			c.mesh.remove(e.id, c)
			c.leave(f.task)
		}
	}
}

// leave takes a task off what it holds; it ends when it has arrived.
func (c *clock) leave(t int32) {
	r := &c.routes[c.g.Tasks[t].Resource]
	for _, s := range r.serial {
		c.leaveSlot(s, t)
	}
	if r.latency > 0 {
		c.events.push(item[unit.Time]{c.now.Add(r.latency), t, arrives})
		return
	}
	c.end(t)
}

// end closes a task, frees its memory and releases those that waited for it.
func (c *clock) end(t int32) {
	c.line.End[t] = c.now
	c.done++
	c.free(&c.g.Tasks[t])
	for e := c.tasks[t].first; e != 0; e = c.edges[e].next {
		after := c.edges[e].task
		x := &c.tasks[after]
		if x.left--; x.left == 0 {
			x.waited = t + 1
			c.ready(after)
		}
	}
}

// start lets a task go, which nothing holds up any more. What it waited for is the
// task that ended last before it, as its id plus 1, or, where that was earlier than
// now, the one that left room on what it needs, negative; 0 is nothing.
func (c *clock) start(t int32) {
	task := &c.g.Tasks[t]
	r, x := &c.routes[task.Resource], &c.tasks[t]
	if c.now > 0 && (x.waited == 0 || c.line.End[x.waited-1] < c.now) {
		x.waited = c.heldUp(r, x.waited)
	}
	c.line.Start[t] = c.now
	x.left = started
	c.alloc(task, t)
	for _, s := range r.serial {
		c.takeSlot(s)
	}
	switch {
	case !r.fluid:
		c.events.push(item[unit.Time]{c.now.Add(task.Duration), t, leaves})
	case task.Bytes == 0 || len(r.links) == 0:
		c.events.push(item[unit.Time]{c.now, t, leaves})
	case c.mesh.links[r.links[0].Link].in:
		c.mesh.add(t, c)
	default:
		c.send(r.links[0].Link, t)
	}
}

// close adds up what remains to be told.
func (c *clock) close() {
	for _, end := range c.line.End {
		c.line.Makespan = max(c.line.Makespan, unit.Duration(end))
	}
	for r := range c.at {
		if s := &c.at[r]; s.seen {
			c.line.Idle[r] = s.last.Sub(s.first) - c.line.Busy[r]
		}
	}
	for p := range c.memory {
		c.line.PeakKiB[p] = c.memory[p].peak
	}
	c.line.Critical = c.critical()
}
