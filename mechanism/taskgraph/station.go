package taskgraph

import "github.com/musterdl/muster/model/unit"

// station is a resource at work. Of a link it keeps only the window.
type station struct {
	kind           Kind
	joined, marked bool // part of a Joint resource; in clock.dirty
	seen           bool // something has run here
	slots, used    int32
	turn           int32       // Ordered: whose turn it is, in clock.turns; 0 is nobody's
	freed          int32       // the task that left last
	waiting        heap[int64] // Prioritised: ready, by priority and id
	since          unit.Time   // when used was last 0
	first, last    unit.Time
}

// turn is a task in the order of a resource.
type turn struct{ task, next int32 }

// rank puts priority and id of a task in one number, in which they are compared.
func rank(priority, task int32) int64 { return int64(priority)<<32 | int64(task) }

// open sets the stations up and lines the tasks up on those that have an order.
func (c *clock) open() {
	tail := make([]int32, len(c.at))
	most := 1
	for i := range c.g.Resources {
		r := &c.g.Resources[i]
		c.at[i].kind, c.at[i].slots = r.Kind, max(1, r.Slots)
		if r.Kind == Joint {
			for _, p := range r.Parts {
				c.at[p].joined = true
			}
		}
	}
	for i := range c.g.Tasks {
		most += len(c.routes[c.g.Tasks[i].Resource].serial)
	}
	c.turns = make([]turn, 1, most)
	for t := range c.g.Tasks {
		for _, s := range c.routes[c.g.Tasks[t].Resource].serial {
			if c.at[s].kind != Ordered {
				continue
			}
			at := int32(len(c.turns))
			c.turns = append(c.turns, turn{task: int32(t)})
			if tail[s] == 0 {
				c.at[s].turn = at
			} else {
				c.turns[tail[s]].next = at
			}
			tail[s] = at
		}
	}
}

// ready is a task whose predecessors have ended: what it needs shall be looked at.
func (c *clock) ready(t int32) {
	task := &c.g.Tasks[t]
	switch s := &c.at[task.Resource]; s.kind {
	case Ordered:
		c.touch(task.Resource)
	case Prioritised:
		s.waiting.push(item[int64]{key: rank(task.Priority, t)})
		c.touch(task.Resource)
	default: // goes at once, if nothing serial is in its way
		c.calls.push(item[int64]{rank(task.Priority, t), nobody, 0})
	}
}

// nobody is where a call comes from that was in no queue.
const nobody = -1

func (c *clock) touch(r int32) {
	if s := &c.at[r]; !s.marked && s.used < s.slots {
		s.marked = true
		c.dirty = append(c.dirty, r)
	}
}

// serve starts what can start. Where tasks hold several resources, all that may start
// are tried in their order, whichever resource they wait for: each takes all that it
// needs or nothing, so that none holds what another waits for in vain.
func (c *clock) serve() {
	for _, r := range c.dirty {
		s := &c.at[r]
		if s.marked = false; s.joined {
			c.call(r, s)
			continue
		}
		for t, ok := c.head(s); ok; t, ok = c.head(s) {
			c.start(t)
		}
	}
	c.dirty = c.dirty[:0]
	for len(c.calls) > 0 {
		x := c.calls.pop()
		if t := int32(x.key); c.tasks[t].left != started { // it may have been called by several resources
			c.try(t)
		}
		if x.id != nobody {
			c.call(x.id, &c.at[x.id])
		}
	}
}

// head returns the task whose turn it is on a resource that has room, off its queue.
func (c *clock) head(s *station) (int32, bool) {
	if s.used == s.slots {
		return 0, false
	}
	if s.kind == Ordered {
		t := c.turns[s.turn].task
		return t, s.turn != 0 && c.tasks[t].left == 0
	}
	if len(s.waiting) == 0 {
		return 0, false
	}
	return int32(s.waiting.pop().key), true
}

// call has the next task of a resource tried, and those behind it after that.
func (c *clock) call(r int32, s *station) {
	t, ok := c.head(s)
	if !ok {
		return
	}
	if s.kind == Ordered {
		r = nobody
	}
	c.calls.push(item[int64]{rank(c.g.Tasks[t].Priority, t), r, 0})
}

// try starts a task if all that it needs has room. If not, it waits at the first
// resource in its way; one with an order calls it when its turn has come.
func (c *clock) try(t int32) {
	serial := c.routes[c.g.Tasks[t].Resource].serial
	for _, r := range serial {
		if s := &c.at[r]; s.kind == Ordered && (s.used > 0 || c.turns[s.turn].task != t) {
			return
		}
	}
	for _, r := range serial {
		if s := &c.at[r]; s.used == s.slots {
			s.waiting.push(item[int64]{key: rank(c.g.Tasks[t].Priority, t)})
			return
		}
	}
	c.start(t)
}

// takeSlot gives a task a slot.
func (c *clock) takeSlot(r int32) {
	s := &c.at[r]
	if s.used == 0 {
		s.since = c.now
		s.enter(c.now)
	}
	if s.used++; s.kind == Ordered {
		s.turn = c.turns[s.turn].next
	}
}

// enter begins the window.
func (s *station) enter(now unit.Time) {
	if !s.seen {
		s.seen, s.first = true, now
	}
}

// leaveSlot takes the slot back.
func (c *clock) leaveSlot(r, t int32) {
	s := &c.at[r]
	if s.used--; s.used == 0 {
		c.line.Busy[r] += c.now.Sub(s.since)
	}
	s.last, s.freed = c.now, t
	c.touch(r)
}

// heldUp says what a task that was ready earlier waited for: the task that has now
// left one of the resources it needs.
func (c *clock) heldUp(r *route, otherwise int32) int32 {
	for _, p := range r.serial {
		if s := &c.at[p]; s.seen && s.last == c.now {
			return -1 - s.freed
		}
	}
	return otherwise
}
