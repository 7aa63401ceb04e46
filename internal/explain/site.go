package explain

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// Site is a view of which several jobs may be asked about: what was counted for one of
// them is not counted again.
type Site struct {
	v    plan.View
	live iter.Seq[plan.JobID]

	// ledger is what queues hold and deserve, worked out when it is first asked for. It is not changed.
	ledger func() *queue.Ledger

	ends  []ending
	ended bool // ends is known
	rooms map[int32]counted
	tops  []plan.JobID // by queue
	looks int          // at nodes, devices and runs, that causes were worth so far
}

// mostLooks bounds what the causes of a list may cost: some milliseconds.
const mostLooks = 1 << 17

// counted is the room for a shape, with how many workers of it there is room for.
type counted struct {
	room *room
	fits int64
}

// ending is a run with when it is expected to end.
type ending struct {
	run   plan.RunID
	at    unit.Time
	since unit.Time // when its job came to have it
}

// Of lets jobs be asked about. Live are those that have not ended, in any order; nil is
// for who does not know, and costs a look at every job there ever was.
func Of(v plan.View, live iter.Seq[plan.JobID]) *Site {
	if live == nil {
		live = func(yield func(plan.JobID) bool) {
			for id := range plan.JobID(v.Jobs()) {
				if !yield(id) {
					return
				}
			}
		}
	}
	return &Site{v: v, live: live, rooms: map[int32]counted{}, ledger: sync.OnceValue(func() *queue.Ledger {
		l := v.Ledgers().Deserved(live)
		return &l
	})}
}

// Live are the jobs that have not ended, in any order.
func (s *Site) Live() iter.Seq[plan.JobID] { return s.live }

// room is what is free for a shape, with how many workers there is room for.
func (s *Site) room(shape int32) (*room, int64) {
	c, known := s.rooms[shape]
	if !known {
		c.room = newRoom(s.v, s.v.ShapeOf(shape))
		c.fits = c.room.total()
		s.rooms[shape] = c
	}
	return c.room, c.fits
}

// endings lists the runs that somebody could wait for, in the order of their ends.
func (s *Site) endings() []ending {
	if s.ended {
		return s.ends
	}
	for id := range plan.RunID(s.v.RunSlots()) {
		if r := s.v.Run(id); r.Status != plan.Gone && r.Status != plan.Stopping {
			s.ends = append(s.ends, ending{id, calendar.Told(s.v, id), s.v.Job(r.Job).Since})
		}
	}
	slices.SortFunc(s.ends, func(a, b ending) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.run, b.run)) })
	s.ended = true
	return s.ends
}

// top is the waiting job of a queue, and of none below it, that goes first as far as can
// be told without its order; plan.None is an empty queue.
func (s *Site) top(of int32) plan.JobID {
	if s.tops == nil {
		s.tops = slices.Repeat([]plan.JobID{plan.None}, max(1, len(s.v.Queues().Queues)))
		for id := range s.live {
			if s.v.Job(id).Phase != plan.Waiting || s.Never(id) != "" {
				continue
			}
			if best := &s.tops[s.v.QueueOf(s.v.Job(id).Tenant)]; *best == plan.None || s.before(id, *best) {
				*best = id
			}
		}
	}
	return s.tops[of]
}

// before reports whether a waiting job goes before another as far as can be told without
// its order: by priority, then by submission.
func (s *Site) before(id, other plan.JobID) bool {
	a, b := s.v.Job(id).Priority, s.v.Job(other).Priority
	return a > b || a == b && id < other
}
