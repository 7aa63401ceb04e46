package taskgraph

import (
	"math"

	"github.com/musterdl/muster/model/unit"
)

const (
	// slack is the part of a microsecond that rounding may have left: it keeps a
	// transfer whose end falls exactly on a microsecond from ending one later.
	slack = 1e-3
	// never is when what stands still is due.
	never = unit.Time(math.MaxInt64)
)

// link is a link at work all of whose transfers go over it alone. Equal shares mean
// that all transfers of a class gain the same number of bits in the same time; so a
// class needs one counter of bits given to each of its transfers, and a transfer is
// over when the counter has grown by its size. Nothing is updated per transfer.
type link struct {
	since   unit.Time // the counters are right for this instant
	due     unit.Time // when the first transfer is over
	moved   bool      // in clock.moved
	classes []class   // by priority, lowest first
}

// class is the transfers of one priority on a link: each is over when given reaches
// its key.
type class struct {
	priority int32
	given    float64 // bits given to each transfer since the class was last empty
	flows    heap[float64]
}

// active returns the class that is being served, or nil.
func (l *link) active() *class {
	for i := range l.classes {
		if len(l.classes[i].flows) > 0 {
			return &l.classes[i]
		}
	}
	return nil
}

// class returns the class of a priority, making it in its place.
func (l *link) class(priority int32) *class {
	i := 0
	for i < len(l.classes) && l.classes[i].priority < priority {
		i++
	}
	if i == len(l.classes) || l.classes[i].priority != priority {
		l.classes = append(l.classes, class{})
		copy(l.classes[i+1:], l.classes[i:])
		l.classes[i] = class{priority: priority}
	}
	return &l.classes[i]
}

// advance brings the counters to now and returns how long the link was busy.
func (l *link) advance(now unit.Time, bandwidth unit.Mbps) unit.Duration {
	elapsed := now.Sub(l.since)
	l.since = now
	c := l.active()
	if c == nil || elapsed == 0 {
		return 0
	}
	// A megabit per second is a bit per microsecond.
	c.given += float64(elapsed) * float64(bandwidth) / float64(len(c.flows))
	return elapsed
}

// left is the time in microseconds that the first transfer still needs.
func (c *class) left(bandwidth unit.Mbps) float64 {
	return (c.flows[0].key - c.given) * float64(len(c.flows)) / float64(bandwidth)
}

// send puts a transfer on a link.
func (c *clock) send(r, t int32) {
	l, task := &c.links[r], &c.g.Tasks[t]
	c.at[r].enter(c.now)
	c.line.Busy[r] += l.advance(c.now, c.g.Resources[r].Bandwidth)
	k := l.class(task.Priority)
	if len(k.flows) == 0 {
		k.given = 0
	}
	k.flows.push(item[float64]{key: k.given + 8*float64(task.Bytes), id: t})
	c.move(r, l)
}

// deliver lets go what is over on a link.
func (c *clock) deliver(r int32, l *link) {
	bandwidth := c.g.Resources[r].Bandwidth
	c.line.Busy[r] += l.advance(c.now, bandwidth)
	for k := l.active(); k != nil && k.left(bandwidth) <= slack; k = l.active() {
		c.at[r].last = c.now
		c.leave(k.flows.pop().id)
	}
	c.move(r, l)
}

func (c *clock) move(r int32, l *link) {
	if !l.moved {
		l.moved = true
		c.moved = append(c.moved, r)
	}
}

// setWakeups says when the next transfer is over, where that has changed: rounded up, if
// nothing changes before.
func (c *clock) setWakeups() {
	for _, r := range c.moved {
		l := &c.links[r]
		l.moved, l.due = false, never
		if k := l.active(); k != nil {
			l.due = c.now.Add(unit.Duration(math.Ceil(k.left(c.g.Resources[r].Bandwidth) - slack)))
			c.events.push(item[unit.Time]{l.due, r, wakes})
		}
	}
	c.moved = c.moved[:0]
}
