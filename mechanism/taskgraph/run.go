package taskgraph

import "github.com/musterdl/muster/model/unit"

// event is the end of a task, or, for a link, the instant at which a transfer
// leaves it.
type event struct {
	at   unit.Time
	id   int32 // the task, or the link's resource
	wake int32 // 0 for a task, else the generation of a link's wake-up
}

// Before orders ends by instant, then by what they are, then by id.
func (e event) Before(o event) bool {
	switch {
	case e.at != o.at:
		return e.at < o.at
	case e.wake != o.wake:
		return e.wake < o.wake
	}
	return e.id < o.id
}

// ready is a task that waits for nothing but its turn.
type ready struct{ priority, task int32 }

// Before orders by priority, then by id.
func (r ready) Before(o ready) bool {
	return r.priority < o.priority || r.priority == o.priority && r.task < o.task
}

// clock is one run in progress.
type clock struct {
	g      *Graph
	rel    relation
	now    unit.Time
	events heap[event]
	queues []heap[ready] // per resource: ready and not started
	taken  []bool        // per serial resource
	fluid  []link        // per resource
	dirty  []int32       // resources to look at before time moves on
	marked []bool        // per resource: in dirty
	held   []int64       // per memory pool, KiB
	done   int
	line   Timeline
}

// Run times the graph. It fails where the graph is malformed or its tasks wait
// for one another in a circle, which the error names.
func Run(g *Graph) (Timeline, error) {
	if err := g.check(); err != nil {
		return Timeline{}, err
	}
	c := newClock(g)
	for t := range g.Tasks {
		if c.rel.left[t] == 0 {
			c.enqueue(int32(t))
		}
	}
	c.serve()
	for len(c.events) > 0 {
		c.now = c.events[0].at
		// All that ends now ends before anything starts now: memory is given back
		// first, and a resource chooses among all that has become ready.
		for len(c.events) > 0 && c.events[0].at == c.now {
			c.apply(c.events.pop())
		}
		c.serve()
	}
	if c.done < len(g.Tasks) {
		return Timeline{}, g.cycle(c.rel)
	}
	return c.line, nil
}

func newClock(g *Graph) *clock {
	pools := int32(0)
	for i := range g.Tasks {
		pools = max(pools, g.Tasks[i].Pool+1)
	}
	n, r := len(g.Tasks), len(g.Resources)
	return &clock{
		g: g, rel: g.relate(), queues: make([]heap[ready], r), taken: make([]bool, r), fluid: make([]link, r),
		marked: make([]bool, r), held: make([]int64, pools),
		line: Timeline{Start: make([]unit.Time, n), End: make([]unit.Time, n), Busy: make([]unit.Duration, r), PeakKiB: make([]int64, pools)},
	}
}

func (c *clock) apply(e event) {
	if e.wake == 0 {
		c.end(e.id)
		return
	}
	if c.fluid[e.id].wakeups == e.wake {
		c.touch(e.id)
	}
}

// end closes a task, frees its memory and its device, and releases those that
// waited for it.
func (c *clock) end(t int32) {
	task := &c.g.Tasks[t]
	c.line.End[t] = c.now
	c.line.Makespan = max(c.line.Makespan, unit.Duration(c.now))
	c.held[task.Pool] -= task.FreeKiB
	c.done++
	if c.g.Resources[task.Resource].Kind != Fluid {
		c.taken[task.Resource] = false
		c.line.Busy[task.Resource] += c.now.Sub(c.line.Start[t])
		c.touch(task.Resource)
	}
	for _, next := range c.rel.next[c.rel.first[t]:c.rel.first[t+1]] {
		if c.rel.left[next]--; c.rel.left[next] == 0 {
			c.enqueue(next)
		}
	}
}

func (c *clock) enqueue(t int32) {
	r := c.g.Tasks[t].Resource
	c.queues[r].push(ready{c.g.Tasks[t].Priority, t})
	c.touch(r)
}

func (c *clock) touch(r int32) {
	if !c.marked[r] {
		c.marked[r] = true
		c.dirty = append(c.dirty, r)
	}
}

// serve lets every touched resource go on.
func (c *clock) serve() {
	for _, r := range c.dirty {
		c.marked[r] = false
		if c.g.Resources[r].Kind == Fluid {
			c.serveLink(r)
		} else if !c.taken[r] && len(c.queues[r]) > 0 {
			t := c.queues[r].pop().task
			c.taken[r] = true
			c.start(t)
			c.events.push(event{at: c.now.Add(c.g.Tasks[t].Duration), id: t})
		}
	}
	c.dirty = c.dirty[:0]
}

func (c *clock) start(t int32) {
	task := &c.g.Tasks[t]
	c.line.Start[t] = c.now
	c.held[task.Pool] += task.AllocKiB
	c.line.PeakKiB[task.Pool] = max(c.line.PeakKiB[task.Pool], c.held[task.Pool])
}

// serveLink lets go what is over, takes in what has arrived and sets the next
// wake-up, which makes earlier ones stale.
func (c *clock) serveLink(r int32) {
	l, res := &c.fluid[r], &c.g.Resources[r]
	c.line.Busy[r] += l.advance(c.now, res.Bandwidth)
	c.deliver(l, res) // first: an arrival of a lower priority would hold up what is over
	for len(c.queues[r]) > 0 {
		t := c.queues[r].pop().task
		c.start(t)
		l.add(t, c.g.Tasks[t].Priority, c.g.Tasks[t].Bytes)
	}
	c.deliver(l, res) // transfers of nothing
	l.wakeups++
	if d, ok := l.wait(res.Bandwidth); ok {
		c.events.push(event{at: c.now.Add(d), id: r, wake: l.wakeups})
	}
}

// deliver takes off the link what is over; it arrives a latency later.
func (c *clock) deliver(l *link, res *Resource) {
	for t, over := l.next(res.Bandwidth); over; t, over = l.next(res.Bandwidth) {
		c.events.push(event{at: c.now.Add(res.Latency), id: t})
	}
}
