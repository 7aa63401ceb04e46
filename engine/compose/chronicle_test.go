package compose_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// chronicle is what happened at a site and what was decided, as events and commits tell it;
// it asks nobody who decides.
type chronicle struct {
	tree    queue.Tree
	devices int64
	moments []moment
	jobs    []told // by job
	lives   []life
	open    map[attempted]int // by run: its life, while it has one
}

// moment is one step: what happened and what was decided.
type moment struct {
	at      unit.Time
	events  []engine.Event
	changes []plan.Change
	// A job that waits though it may have a device that is idle: -1 for none.
	idles plan.JobID
}

// told is what is known of a job.
type told struct {
	spec workload.Job
	came int // the moment in which it did
}

type attempted struct {
	job     plan.JobID
	attempt int32
}

// life is one run, from the decision to start it to its end.
type life struct {
	attempted
	start, end int // moments; end is -1 while it goes on
	began      unit.Time
	milli      int64 // of devices
	on         map[plan.NodeID]int32
	stop       *plan.Change // by which it ended, nil where it did by itself
	stopped    []int        // lives that were ended so that it could start
}

// record has a chronicle of a site written from now on.
func record(s *site, tree queue.Tree, idle func() plan.JobID) *chronicle {
	h := &chronicle{tree: tree, devices: int64(s.e.View().Devices()), open: map[attempted]int{}}
	var events []engine.Event
	s.hear = func(now []engine.Event) { events = append(events, now...) }
	before := s.look
	s.look = func(c *plan.Commit) {
		if before != nil {
			before(c)
		}
		m := moment{at: s.now, events: events, idles: idle()}
		if c != nil {
			m.changes = slices.Clone(c.Changes)
		}
		events = nil
		h.moments = append(h.moments, m)
		h.write(s.e.View(), &h.moments[len(h.moments)-1])
	}
	return h
}

// write takes in one moment; v is the state after it.
func (h *chronicle) write(v plan.View, m *moment) {
	now := len(h.moments) - 1
	for i := range m.events {
		switch ev := &m.events[i]; ev.Kind {
		case engine.Submit:
			h.jobs = append(h.jobs, told{spec: *ev.Spec, came: now})
		case engine.Started, engine.Exited, engine.Stopped:
			k, lives := h.open[attempted{ev.Job, ev.Attempt}]
			if !lives {
				continue
			}
			if l := &h.lives[k]; ev.Kind == engine.Started && l.end < 0 {
				l.began = m.at
			} else if l.end < 0 {
				l.end = now
			}
		case engine.NodeDown:
			for k := range h.lives {
				if l := &h.lives[k]; l.end < 0 && l.on[ev.Node] > 0 {
					l.end = now
				}
			}
		}
	}
	by := map[int64]int{} // by stop: the life that it ended
	for i := range m.changes {
		c := &m.changes[i]
		if k, lives := h.open[attempted{c.Job, c.Attempt}]; lives && h.lives[k].end < 0 && (c.Verb == plan.Stop || c.Verb == plan.Withdraw) {
			h.lives[k].end, h.lives[k].stop = now, c
			by[c.ID] = k
		}
	}
	for i := range m.changes {
		c := &m.changes[i]
		if c.Verb != plan.Start {
			continue
		}
		l := life{attempted: attempted{c.Job, c.Attempt}, start: now, end: -1, began: unit.Never, on: map[plan.NodeID]int32{}}
		v.GrantsOf(c.Run, func(g plan.Grant) {
			if g.Device != plan.None {
				l.milli += int64(g.Reserve)
			}
			l.on[g.Node]++
		})
		for id, k := range by {
			x := h.lives[k].stop
			if by := forJob(x); x.Job != c.Job && (by == c.Job || by == plan.None && slices.Contains(c.After, id)) {
				l.stopped = append(l.stopped, k)
			}
		}
		slices.Sort(l.stopped)
		h.open[l.attempted] = len(h.lives)
		h.lives = append(h.lives, l)
	}
}

// forJob is the job that a change says it is made for, none where it says none.
func forJob(c *plan.Change) plan.JobID {
	switch c.Reason.Code {
	case plan.MadeWayFor, plan.Reclaimed, plan.Outranked:
		return plan.JobID(c.Reason.A)
	}
	return plan.None
}

// preempts reports whether a change ends a run against its job's will.
func preempts(c *plan.Change) bool {
	if c.Verb != plan.Stop && c.Verb != plan.Withdraw {
		return false
	}
	switch c.Reason.Code {
	case plan.MadeWayFor, plan.Reclaimed, plan.Outranked, plan.SliceOver, plan.LeaseOver, plan.RoundPlan, plan.Packed, plan.Unpacked, plan.Merged, plan.TookRoomOf, plan.Answered, plan.Moved, plan.Rebalanced:
		return true
	}
	return false
}

// goesOn reports whether the job of a life that was stopped starts again in the same moment.
func (h *chronicle) goesOn(l *life) bool {
	return slices.ContainsFunc(h.moments[l.end].changes, func(c plan.Change) bool { return c.Verb == plan.Start && c.Job == l.job })
}

// preempted lists the lives that were ended against their jobs' will, and not only resized or moved.
func (h *chronicle) preempted() (lives []*life) {
	for k := range h.lives {
		if l := &h.lives[k]; l.stop != nil && preempts(l.stop) && !h.goesOn(l) {
			lives = append(lives, l)
		}
	}
	return lives
}

// at is when a moment was.
func (h *chronicle) at(moment int) unit.Time { return h.moments[moment].at }

// ran is for how long a run had computed when it ended.
func (h *chronicle) ran(l *life) unit.Duration {
	return max(0, h.at(l.end).Sub(min(l.began, h.at(l.end))))
}

// loses is what it costs a job that its run was stopped, besides the time until it runs again:
// what is not saved, the save and the restore.
func (h *chronicle) loses(l *life) unit.Duration {
	c, ran := h.jobs[l.job].spec.Checkpoint, h.ran(l)
	switch {
	case l.began == unit.Never:
		return 0
	case c.OnRequest:
		return c.Save + c.Load
	case c.Every > 0:
		return ran%c.Every + c.Load
	}
	return ran + c.Load
}

// cost is what a start cost in device-microseconds: its load, and what those lost who were stopped for it.
func (h *chronicle) cost(l *life) (cost int64) {
	cost = int64(h.jobs[l.job].spec.Checkpoint.Load) * l.milli / 1000
	for _, k := range l.stopped {
		v := &h.lives[k]
		cost += int64(h.loses(v)) * v.milli / 1000
	}
	return cost
}

// String tells the chronicle.
func (h *chronicle) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d devices, tree %+v\n", h.devices, h.tree)
	for i := range h.moments {
		m := &h.moments[i]
		for k := range m.events {
			switch ev := &m.events[k]; ev.Kind {
			case engine.Submit:
				j := ev.Spec
				fmt.Fprintf(&b, "%gs: %s comes: tenant %q user %s priority %d gang %d sizes %v share %d estimate %s %+v\n", m.at.Sub(0).Seconds(), j.Name, j.Tenant, j.User, j.Priority, j.Gang, j.Sizes, j.Share, j.Estimate, j.Checkpoint)
			case engine.Started, engine.Exited, engine.Cancel:
				fmt.Fprintf(&b, "%gs: j%d %s\n", m.at.Sub(0).Seconds(), ev.Job+1, ev.Kind)
			case engine.NodeDown, engine.NodeUp:
				fmt.Fprintf(&b, "%gs: node %d %s\n", m.at.Sub(0).Seconds(), ev.Node, ev.Kind)
			}
		}
		for k := range m.changes {
			c := &m.changes[k]
			on := ""
			if i, lives := h.open[attempted{c.Job, c.Attempt}]; lives && c.Verb == plan.Start {
				on = fmt.Sprint(" on ", h.lives[i].on)
			}
			fmt.Fprintf(&b, "%gs:     %s j%d (%s %d)%s after %v\n", m.at.Sub(0).Seconds(), c.Verb, c.Job+1, c.Reason.Code, c.Reason.A, on, c.After)
		}
	}
	return b.String()
}
