package taskgraph

import (
	"math"

	"github.com/musterdl/muster/model/unit"
)

// slack is the part of a microsecond that rounding may have left: it keeps a
// transfer whose end falls exactly on a microsecond from ending one later.
const slack = 1e-3

// link is a fluid resource at work. Equal shares mean that all transfers of a
// class gain the same number of bits in the same time; so a class needs one
// counter of bits given to each of its transfers, and a transfer is over when
// the counter has grown by its size. Nothing is updated per transfer.
type link struct {
	since   unit.Time // the counters are right for this instant
	wakeups int32     // generation of the wake-up that counts; older ones are stale
	classes []class   // by priority, lowest first
}

// class is the transfers of one priority on a link.
type class struct {
	priority int32
	given    float64 // bits given to each transfer since the class was last empty
	flows    heap[flow]
}

// flow is a transfer that is over when its class's counter reaches until.
type flow struct {
	until float64
	task  int32
}

// Before orders transfers by what is left of them.
func (f flow) Before(o flow) bool {
	return f.until < o.until || f.until == o.until && f.task < o.task
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

// add puts a transfer on the link, whose counters are right for now.
func (l *link) add(task, priority int32, bytes int64) {
	c := l.class(priority)
	if len(c.flows) == 0 {
		c.given = 0
	}
	c.flows.push(flow{until: c.given + 8*float64(bytes), task: task})
}

// next takes off a transfer that is over, if one is.
func (l *link) next(bandwidth unit.Mbps) (task int32, over bool) {
	c := l.active()
	if c == nil || c.left(bandwidth) > slack {
		return 0, false
	}
	return c.flows.pop().task, true
}

// wait is the time until the next transfer is over, rounded up, if nothing
// changes before.
func (l *link) wait(bandwidth unit.Mbps) (unit.Duration, bool) {
	c := l.active()
	if c == nil {
		return 0, false
	}
	return unit.Duration(math.Ceil(c.left(bandwidth) - slack)), true
}

// left is the time in microseconds that the first transfer still needs.
func (c *class) left(bandwidth unit.Mbps) float64 {
	if bandwidth == 0 {
		return 0
	}
	return (c.flows[0].until - c.given) * float64(len(c.flows)) / float64(bandwidth)
}
