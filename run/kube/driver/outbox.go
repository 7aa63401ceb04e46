package driver

import (
	"slices"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// outbox is what goes out: to the engine, and to the API server.
type outbox struct {
	events []engine.Event
	tasks  []Task
	bound  []time.Duration // from creation to binding
	broken string          // why the state has to be put together anew
}

func (b *outbox) report(e engine.Event) { b.events = append(b.events, e) }

func (b *outbox) do(t Task) { b.tasks = append(b.tasks, t) }

// fail says why the state has to be put together anew.
func (b *outbox) fail(why string) { b.broken = why }

// count notes how long a pod had been there when it was bound.
func (b *outbox) count(waited time.Duration) { b.bound = append(b.bound, waited) }

// takeEvents hands out the events.
func (b *outbox) takeEvents() []engine.Event {
	events := b.events
	b.events = nil
	return events
}

// takeTasks hands out the tasks.
func (b *outbox) takeTasks() []Task {
	tasks := b.tasks
	b.tasks = nil
	return tasks
}

// takeBound hands out how long pods had been there when they were bound.
func (b *outbox) takeBound() []time.Duration {
	bound := b.bound
	b.bound = nil
	return bound
}

// again is who is to be looked at again.
type again struct {
	dirty map[*entry]bool // at once
	later []*entry        // after a while
}

func (a *again) stir(e *entry) { a.dirty[e] = true }

func (a *again) delay(e *entry) { a.later = append(a.later, e) }

// next hands out those that are to be looked at at once, in order.
func (a *again) next() []*entry {
	list := make([]*entry, 0, len(a.dirty))
	for e := range a.dirty {
		list = append(list, e)
	}
	clear(a.dirty)
	for _, e := range list {
		e.age()
	}
	slices.SortFunc(list, inOrder)
	return list
}

// pass lets the while pass.
func (a *again) pass() {
	for _, e := range a.later {
		a.stir(e)
	}
	a.later = a.later[:0]
}

// around makes what is known of the world beside the engine's work part of the state,
// so that nothing is decided before it.
func (b *outbox) around(s *plan.State) *plan.State {
	var now, later []engine.Event
	for _, e := range b.events {
		switch e.Kind {
		case engine.Occupied, engine.Confined, engine.Cordon, engine.Uncordon:
			now = append(now, e)
		default:
			later = append(later, e)
		}
	}
	b.events = later
	if len(now) == 0 {
		return s
	}
	x := engine.Restore(s, idle{}, engine.DefaultPolicy())
	x.Step(s.Now, now)
	return x.State()
}

// idle decides nothing.
type idle struct{}

// Decide changes nothing and asks for no other time.
func (idle) Decide(*plan.Draft, schedule.Trigger) unit.Time { return unit.Never }
