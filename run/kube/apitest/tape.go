package apitest

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/run/kube/api"
)

// Tape is what happened in a World, from Record on: what was told to the scheduler
// under test, what it called, and all objects in between.
type Tape struct {
	options Options
	start   time.Time
	now     time.Time
	base    []api.Change
	jobs    []*api.Job
	ledgers []*api.Ledger
	version int64
	made    int64
	steps   []step
}

// step is one thing that happened: an object changed, changes were told, a call was
// made, a record was written or deleted.
type step struct {
	at     time.Time
	change api.Change
	isTold bool
	told   []api.Change
	call   *Call
	job    *api.Job
	gone   bool
	ledger *api.Ledger
}

// Event is what one Next told, nothing included, as a scheduler may act on the time
// alone.
type Event struct {
	At      time.Time
	Changes []api.Change
	Calls   []Call // made between this event and the next
}

// Record begins a tape of the World, which goes on for as long as the World does. What
// was told before is not on it.
func (w *World) Record() *Tape {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &Tape{options: *w.options, start: w.clock.start, now: w.clock.now, base: w.store.all(), version: w.store.version, made: w.store.made}
	for _, r := range w.records.jobs {
		t.jobs = append(t.jobs, r.value)
	}
	for _, r := range w.records.ledgers {
		t.ledgers = append(t.ledgers, r.value)
	}
	w.feed.tape = t
	return t
}

// Events are the events on the tape.
func (t *Tape) Events() (events []Event) {
	for i := range t.steps {
		s := &t.steps[i]
		switch {
		case s.isTold:
			events = append(events, Event{At: s.at, Changes: s.told})
		case s.call != nil && len(events) > 0:
			last := &events[len(events)-1]
			last.Calls = append(last.Calls, *s.call)
		}
	}
	return events
}

// World returns a World with all objects and records as they were just before event
// at+1 was told: after the calls that followed event at; -1 is the beginning. It plays
// the rest of the tape: Next tells first all there is, then each event from at+1 on,
// whose time becomes that of the World, and nil at the end. Calls take effect there and
// are recorded, but nothing reacts: reactions are on the tape.
func (t *Tape) World(at int) *World {
	w := New(t.options)
	w.clock.start, w.clock.now, w.store.version, w.store.made = t.start, t.now, t.version, t.made
	w.play, w.clock.frozen = &player{w: w}, true
	for _, c := range t.base {
		w.play.apply(c)
	}
	for _, j := range t.jobs {
		w.records.jobs[types.NamespacedName{Namespace: j.Namespace, Name: j.Name}] = &record[*api.Job]{value: j}
	}
	for _, l := range t.ledgers {
		w.records.ledgers[l.Name] = &record[*api.Ledger]{value: l}
	}
	rest := t.steps
	for told := -1; len(rest) > 0; rest = rest[1:] {
		s := &rest[0]
		if s.isTold {
			if told++; told > at {
				break
			}
		}
		w.play.redo(s)
	}
	for i := range rest {
		if rest[i].isTold {
			w.play.events = append(w.play.events, &rest[i])
		}
	}
	w.feed.calls, w.records.words, w.onlooker.history = nil, nil, nil
	return w
}

// redo has a step of a tape take effect.
func (p *player) redo(s *step) {
	p.w.clock.now = s.at
	switch {
	case s.change.Object != nil:
		p.apply(s.change)
	case s.job != nil:
		name := types.NamespacedName{Namespace: s.job.Namespace, Name: s.job.Name}
		if s.gone {
			delete(p.w.records.jobs, name)
			return
		}
		p.w.records.jobs[name] = &record[*api.Job]{value: s.job}
		p.w.store.reach(s.job.ResourceVersion)
	case s.ledger != nil:
		p.w.records.ledgers[s.ledger.Name] = &record[*api.Ledger]{value: s.ledger}
		p.w.store.reach(s.ledger.ResourceVersion)
	}
}

// apply has a change of a tape take effect.
func (p *player) apply(c api.Change) {
	o := c.Object.(object)
	p.w.store.reach(o.GetResourceVersion())
	if c.Gone {
		p.w.store.drop(o)
		return
	}
	p.w.store.set(o)
}

// reach has later writes get later versions than one on a tape.
func (st *store) reach(version string) {
	if n, err := strconv.ParseInt(version, 10, 64); err == nil {
		st.version = max(st.version, n)
	}
}

// player has what is on a tape happen in a World.
type player struct {
	w      *World
	events []*step // that are still to be told
}

func (p *player) next() []api.Change {
	if len(p.events) == 0 {
		return nil
	}
	e := p.events[0]
	p.events = p.events[1:]
	if e.at.After(p.w.clock.now) {
		p.w.clock.now = e.at
	}
	for _, c := range e.told {
		p.apply(c)
	}
	return e.told
}

// Left is how many events of its tape a World has yet to tell.
func (w *World) Left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.play == nil {
		return 0
	}
	return len(w.play.events)
}

// List returns all objects of a World, nodes first and pods last.
func (w *World) List() []api.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.store.all()
}

// Pods returns all pods, in the order in which they were made.
func (w *World) Pods() (pods []*corev1.Pod) {
	for _, c := range w.List() {
		if p, ok := c.Object.(*corev1.Pod); ok {
			pods = append(pods, p)
		}
	}
	return slices.Clip(pods)
}

// Pod returns a pod.
func (w *World) Pod(namespace, name string) (*corev1.Pod, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return get[*corev1.Pod](w.store, id{kindPod, namespace, name})
}
