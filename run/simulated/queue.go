package simulated

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// entryKind is what will happen. Of one instant what is lost goes first: a run does not
// end in the very instant in which its node is lost.
type entryKind uint8

const (
	nodeBreaks entryKind = iota
	nodeMends
	deviceBreaks
	deviceMends
	linkBreaks
	linkMends
	slowBegins
	slowEnds
	deviceReshaped
	rentalComes
	answered
	runStarts
	runStopped
	runFinishes
	runFails
	runOverLimit
	runSuspended
	runPaid
	lawSettles
	runStands
	runObserved
	runDrifts
)

// entry is something that will happen, unless it is overtaken.
type entry struct {
	at      unit.Time
	seq     int64
	kind    entryKind
	version int32
	run     plan.RunID
	job     plan.JobID // of the run
	device  plan.DeviceID
	node    plan.NodeID
	link    int32
	change  int64 // or which of Config.World.Slow
}

// queue is a heap of entries by instant. Those of one instant go by kind and by what
// they are about, not by when they were made: a simulation that goes on from a State
// does not know when they were.
type queue struct {
	heap []entry
	seq  int64
	news int // entries that may change what a strategy can do for the jobs there are
}

// isNews reports whether an entry of a kind may get a job on: things break and mend, and
// runs report, for ever.
func (k entryKind) isNews() bool { return k > slowEnds && k != runObserved }

func (a *entry) before(b *entry) bool {
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.kind != b.kind:
		return a.kind < b.kind
	case a.job != b.job:
		return a.job < b.job
	case a.node != b.node:
		return a.node < b.node
	case a.device != b.device:
		return a.device < b.device
	case a.link != b.link:
		return a.link < b.link
	}
	return a.seq < b.seq
}

func (s *Simulation) queueUp(at unit.Time, e entry) {
	q := &s.queue
	q.seq++
	e.at, e.seq = at, q.seq
	if e.kind.isNews() {
		q.news++
	}
	q.heap = append(q.heap, e)
	for i := len(q.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.heap[i].before(&q.heap[parent]) {
			break
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *queue) next() unit.Time {
	if len(q.heap) == 0 {
		return unit.Never
	}
	return q.heap[0].at
}

func (q *queue) popDue(at unit.Time) (entry, bool) {
	if q.next() > at {
		return entry{}, false
	}
	top, last := q.heap[0], len(q.heap)-1
	q.heap[0] = q.heap[last]
	q.heap = q.heap[:last]
	if top.kind.isNews() {
		q.news--
	}
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if q.heap[c].before(&q.heap[least]) {
				least = c
			}
		}
		if least == i {
			return top, true
		}
		q.heap[i], q.heap[least] = q.heap[least], q.heap[i]
		i = least
	}
}
