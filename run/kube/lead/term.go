package lead

import (
	"sync"
	"time"
)

// Term is a time of leadership, as those see it who work during it.
type Term struct {
	// Fence goes into every record that is written during the term.
	Fence Fence
	hold  *hold // nil where nobody else can lead
}

// Alone is the term of one who runs without an election: nobody else may run. The
// fence has to be newer than those of the records, or a later election would be lost
// to them.
func Alone(f Fence) Term { return Term{Fence: f} }

// Valid reports whether nobody else can lead at that moment: it is false well before
// another may take the lease, and once false it stays so. It is asked before every
// write that binds. What is on its way by then has the margin (Timing) to arrive, if
// it was sent with the context that Run gave, which ends together with the term.
func (t Term) Valid(now time.Time) bool { return t.hold == nil || t.hold.left(now) > 0 }

// hold is how long the lease is known to be ours.
type hold struct {
	mu sync.Mutex
	// since is a moment before the last renewal was sent: others saw it later.
	since time.Time
	valid time.Duration
	over  bool
}

// extend counts from a renewal that was sent at since and is known at now to have
// succeeded. A renewal known too late changes nothing: the term was over in between.
func (h *hold) extend(since, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over = h.over || age(h.since, now) >= h.valid; !h.over {
		h.since = since
	}
}

// age is the time between two readings, by that of the two clocks which says more:
// the monotonic one does not turn back, and the wall clock goes on while a machine
// sleeps.
func age(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// left is how long the term remains valid if it is not renewed; 0 when it is over.
func (h *hold) left(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return 0
	}
	return max(0, h.valid-age(h.since, now))
}

// end ends the term for good.
func (h *hold) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
}
