package plane

import (
	"context"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/plan"
)

// Report feeds an event of the driver; it never blocks for long and never fails:
// what comes after the end is dropped, and found again by the next Recover.
func (p *Plane) Report(e engine.Event) {
	select {
	case p.inbox <- message{events: []engine.Event{e}}:
	case <-p.done:
	}
}

// Request asks for an event to happen; it returns once that is durable, or refused.
// A key makes it idempotent: the same key within a day is answered the same.
func (p *Plane) Request(ctx context.Context, e engine.Event, key string) (plan.JobID, error) {
	return p.Together(ctx, []engine.Event{e}, key)
}

// Together asks for several events to happen, in this order and in one durable append:
// all of them, or none. It returns the job of the first.
func (p *Plane) Together(ctx context.Context, events []engine.Event, key string) (plan.JobID, error) {
	r, err := p.send(ctx, message{events: events, key: key, reply: make(chan Reply, 1)})
	return r.Job, err
}

// Each is Together without those events that are refused; it fails where all are.
func (p *Plane) Each(ctx context.Context, events []engine.Event) error {
	_, err := p.send(ctx, message{events: events, each: true, reply: make(chan Reply, 1)})
	return err
}

// Requests asks for several events to happen, in this order among themselves, and
// returns once all are durable or refused.
func (p *Plane) Requests(ctx context.Context, events []engine.Event) []Reply {
	replies := make([]Reply, len(events))
	waits := make([]chan Reply, len(events))
	for i := range events {
		waits[i] = make(chan Reply, 1)
		select {
		case p.inbox <- message{events: events[i : i+1], reply: waits[i]}:
		case <-ctx.Done():
			replies[i].Err, waits[i] = ctx.Err(), nil
		case <-p.done:
			replies[i].Err, waits[i] = ErrClosed, nil
		}
	}
	for i, wait := range waits {
		if wait == nil {
			continue
		}
		select {
		case replies[i] = <-wait:
		case <-ctx.Done():
			replies[i].Err = ctx.Err()
		case <-p.done:
			replies[i].Err = ErrClosed
		}
	}
	return replies
}

// Query calls f with the state, between two steps.
func (p *Plane) Query(ctx context.Context, f func(v plan.View)) error {
	_, err := p.send(ctx, message{query: f, reply: make(chan Reply, 1)})
	return err
}

func (p *Plane) send(ctx context.Context, m message) (Reply, error) {
	select {
	case p.inbox <- m:
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	case <-p.done:
		return Reply{}, ErrClosed
	}
	select {
	case r := <-m.reply:
		return r, r.Err
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	case <-p.done:
		return Reply{}, ErrClosed
	}
}

// Watch returns a channel that receives after every step that changed anything, and
// a function that ends the watch.
func (p *Plane) Watch() (<-chan struct{}, func()) { return p.stepped.Watch() }

// Info returns what the plane keeps of a job; call it inside Query.
func (p *Plane) Info(id plan.JobID) JobInfo { return p.jobs[id] }

// Known is what the strategy says that it ranks a job by; call it inside Query.
func (p *Plane) Known(id plan.JobID) []string { return p.engine.Known(id) }

// FindArray returns the array of a name; call it inside Query.
func (p *Plane) FindArray(name string) (Array, bool) {
	a, ok := p.arrays[name]
	return a, ok
}

// Find returns the job of a name; call it inside Query.
func (p *Plane) Find(name string) (plan.JobID, bool) { return p.engine.Find(name) }

// Strategy is the composition that decides; call it inside Query.
func (p *Plane) Strategy() string { return p.decide.strategy.Name }

// First is the composition that decides from this start on; call it before Run.
func (p *Plane) First() (catalogue.Composition, error) {
	return p.config.chosen(p.decide.strategy.Text)
}

// StrategyText is what that composition was read from; call it inside Query.
func (p *Plane) StrategyText() string { return p.decide.strategy.Text }

// Balance proves that the books of device time balance, and says what is wrong with
// them where they do not; call it inside Query.
func (p *Plane) Balance() error { return p.engine.State().Balance() }

// Stats returns what the plane did since it started; call it inside Query.
func (p *Plane) Stats() Stats { return p.stats }
