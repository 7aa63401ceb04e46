package apitest

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/run/kube/api"
)

// feed is what clients asked for and are told.
type feed struct {
	clock   *clock
	log     []logged
	trimmed int // entries of the log that all have been told
	clients []*Client
	calls   []Call
	tape    *Tape
}

// connect has one more client be told.
func (fd *feed) connect(c *Client) { fd.clients = append(fd.clients, c) }

// called notes a call.
func (fd *feed) called(made Call) {
	fd.calls = append(fd.calls, made)
	fd.keep(step{call: &made})
}

// Next returns what the client has not been told yet, in the order in which it
// happened; at first, and after Restart, all there is. It is nil while nothing is to
// be told, or nothing can be.
func (c *Client) Next() []api.Change {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	changes := c.next()
	if c == c.w.Client {
		c.w.feed.keep(step{isTold: true, told: changes})
	}
	return changes
}

// Restart has Next tell all there is again, as the scheduler behind the client has
// forgotten everything.
func (c *Client) Restart() {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.listed = false
}

func (c *Client) next() []api.Change {
	w := c.w
	over, holds := w.troubles.Faults.overGaps(w.clock.since())
	if holds {
		return nil
	}
	end := w.feed.trimmed + len(w.feed.log)
	gapped := over > c.gaps
	from := c.told
	c.told, c.gaps = end, over
	if !c.listed {
		c.listed = true
		return w.store.all()
	}
	if w.clock.frozen && c == w.Client {
		return w.play.next()
	}
	pending := w.feed.log[from-w.feed.trimmed:]
	var changes []api.Change
	if gapped {
		changes = difference(pending)
	} else if len(pending) > 0 {
		changes = make([]api.Change, len(pending))
		for i := range pending {
			changes[i] = pending[i].Change
		}
	}
	w.feed.trim()
	return changes
}

// difference is what is left of changes that were not told one by one.
func difference(pending []logged) (changes []api.Change) {
	last, fresh := map[types.UID]int{}, map[types.UID]bool{}
	uid := func(l *logged) types.UID { return l.Object.(object).GetUID() }
	for i := range pending {
		l := &pending[i]
		last[uid(l)] = i
		if l.added {
			fresh[uid(l)] = true
		}
	}
	for i := range pending {
		l := &pending[i]
		if last[uid(l)] == i && !(l.Gone && fresh[uid(l)]) {
			changes = append(changes, l.Change)
		}
	}
	return changes
}

// trim forgets changes that every client has been told.
func (fd *feed) trim() {
	const some = 4096
	least := fd.trimmed + len(fd.log)
	for _, c := range fd.clients {
		if c.listed {
			least = min(least, c.told)
		}
	}
	if least-fd.trimmed >= some {
		fd.log = slices.Clone(fd.log[least-fd.trimmed:])
		fd.trimmed = least
	}
}

// Watch implements api.Watcher. It tells nothing by itself: Pump does, or Live.
func (c *Client) Watch(ctx context.Context, tell func([]api.Change)) (<-chan struct{}, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.listed, c.synced = false, make(chan struct{})
	c.watch = func(changes []api.Change) {
		if ctx.Err() == nil {
			tell(changes)
		}
	}
	return c.synced, nil
}

// Pump tells everybody who watches what there is to tell, in the goroutine that calls
// it, and returns how many changes that were. Only one goroutine may pump.
func (w *World) Pump() (told int) {
	w.mu.Lock()
	clients := slices.Clone(w.feed.clients)
	w.mu.Unlock()
	for _, c := range clients {
		w.mu.Lock()
		watch, synced, first := c.watch, c.synced, !c.listed
		w.mu.Unlock()
		if watch == nil {
			continue
		}
		changes := c.Next()
		w.mu.Lock()
		first = first && c.listed
		w.mu.Unlock()
		if len(changes) > 0 || first {
			watch(changes)
			told += len(changes)
		}
		if first {
			close(synced)
		}
	}
	return told
}

// Live has the World go with the real clock and tell who watches, every so often,
// until the context ends.
func (w *World) Live(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			w.Advance(now.Sub(last))
			last = now
			w.Pump()
		}
	}
}

// tell has clients be told of a change.
func (fd *feed) tell(l logged) {
	l.at = fd.clock.since()
	fd.log = append(fd.log, l)
	fd.keep(step{change: l.Change})
}

// keep notes something on the tape.
func (fd *feed) keep(s step) {
	if fd.tape != nil {
		s.at = fd.clock.now
		fd.tape.steps = append(fd.tape.steps, s)
	}
}
