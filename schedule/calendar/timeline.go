package calendar

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// step is what a node has free for something new from an instant to that of the next
// step, beside the entries that count. It may be less than nothing.
type step struct {
	at        unit.Time
	full      int64 // devices wholly free now, or taken to the last thousandth till then
	partly    int64 // devices that shares may be taken of till then
	cpu, host int64
	falls     bool // less of something than before
}

func (s *step) devices() int64 { return s.full + s.partly }

// shut reports whether the node is in a window.
func (s *step) shut() bool { return s.full < -all/2 }

func (s *step) add(o step) {
	s.full += o.full
	s.partly += o.partly
	s.cpu += o.cpu
	s.host += o.host
}

// release adds what a node gets back, of which it does not matter whether shares could be taken
// of it before.
func (s *step) release(r *release) {
	s.full += int64(r.full + r.partly)
	s.cpu += int64(r.cpu)
	s.host += int64(r.host)
}

// beside says which claims count: those ranked before a limit, one and some more left out; and which windows: those that
// begin before an instant.
type beside struct {
	limit, except int
	without       []int
	windows       unit.Time
}

// besideOf is what stands beside a job and its claim.
func besideOf(c *Calendar, job plan.JobID, limit, except int, without []int) beside {
	if c.Avoid {
		return beside{limit, except, without, unit.Never}
	}
	return beside{limit, except, without, runsInto(c.v, c.windows, job)}
}

func (b beside) counts(e *entry) bool {
	if e.rank == window {
		return e.from < b.windows
	}
	return int(e.rank) < b.limit && int(e.rank) != b.except && !slices.Contains(b.without, int(e.rank))
}

// timeline lists what a node has free from now on. It is valid until the next call.
func (c *Calendar) timeline(id plan.NodeID, b beside) []step {
	c.index()
	if !c.countsAll(id, b) {
		c.steps = c.list(id, b, c.steps[:0])
		return c.steps
	}
	n := &c.nodes[id]
	if l := &n.line; l.steps == nil || l.version != n.version || l.at != c.now {
		l.steps, l.version, l.at = c.list(id, b, l.steps[:0]), n.version, c.now
	}
	return n.line.steps
}

// line is the timeline of a node beside all that stands there, which most who ask share.
type line struct {
	steps   []step
	version int64 // of the node
	at      unit.Time
}

// countsAll reports whether all entries of a node count.
func (c *Calendar) countsAll(id plan.NodeID, b beside) bool {
	on := c.on(id)
	for i := range on {
		if !b.counts(&on[i]) {
			return false
		}
	}
	return true
}

// list appends what a node has free from now on.
func (c *Calendar) list(id plan.NodeID, b beside, s []step) []step {
	n := &c.nodes[id]
	s = append(s, step{at: c.now, full: int64(n.whole), cpu: int64(n.cpu), host: int64(n.host)})
	for _, r := range n.releases {
		if r.at == unit.Never {
			break
		}
		s = append(s, step{r.at, int64(r.full), int64(r.partly), int64(r.cpu), int64(r.host), false})
	}
	for _, e := range c.on(id) {
		if !b.counts(&e) {
			continue
		}
		s = inTime(append(s, step{e.from, -e.devices, 0, -e.cpu, -e.host, true}))
		if e.to != unit.Never {
			s = inTime(append(s, step{e.to, e.devices, 0, e.cpu, e.host, false}))
		}
	}
	kept := s[:1]
	for _, next := range s[1:] {
		last := &kept[len(kept)-1]
		if next.at == last.at {
			last.add(next)
			last.falls = last.falls || next.falls
			continue
		}
		next.add(*last)
		kept = append(kept, next)
	}
	return kept
}

// inTime moves the last step to where it belongs among the others, of which there are few.
func inTime(s []step) []step {
	last := s[len(s)-1]
	i := len(s) - 1
	for ; i > 0 && s[i-1].at > last.at; i-- {
		s[i] = s[i-1]
	}
	s[i] = last
	return s
}

// least is the least that a timeline has in [from, to).
func least(steps []step, from, to unit.Time) step {
	low := step{full: all, cpu: all, host: all}
	for i := range steps {
		if steps[i].at >= to {
			break
		}
		if i+1 < len(steps) && steps[i+1].at <= from {
			continue
		}
		// Devices count together: the two kinds may be at their least at different times.
		if steps[i].devices() < low.devices() {
			low.full, low.partly = steps[i].full, steps[i].partly
		}
		low.cpu, low.host = min(low.cpu, steps[i].cpu), min(low.host, steps[i].host)
	}
	return low
}

// when is the earliest instant from a given one on at which a part fits for a
// length, or Never.
func when(steps []step, p Part, from unit.Time, length unit.Duration) unit.Time {
	fits := func(at unit.Time) bool {
		low := least(steps, at, at.Add(length))
		return !low.shut() && (p.Devices == 0 || low.devices() >= int64(p.Devices)) && (p.CPU == 0 || low.cpu >= int64(p.CPU)) && (p.Host == 0 || low.host >= int64(p.Host))
	}
	if fits(from) {
		return from
	}
	for i := range steps {
		if steps[i].at > from && fits(steps[i].at) {
			return steps[i].at
		}
	}
	return unit.Never
}
