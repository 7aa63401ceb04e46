package chronus

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/schedule/chronus/lease"
)

// selector admits jobs to the calendar of leases and says who runs. It knows jobs by
// what they need and not what a State is, so that a page of text can drive it.
type selector struct {
	config Config
	cal    *lease.Calendar

	stay, rest []live // of choose, kept for their memory
}

// live is a job that waits or runs: what it takes, what is believed to be left, and
// whether it goes on for now unless a holder needs its room.
type live struct {
	job   plan.JobID
	size  int64
	left  unit.Duration
	stays bool
}

func newSelector(c Config, capacity int64) *selector {
	return &selector{config: c, cal: lease.New(c.Lease, capacity)}
}

// need is how much lease time a job of so many devices asks for, when so much of it is
// believed to be left: the estimate with a margin, and a switch in every lease, which
// takes longer the wider the job is.
func (c Config) need(left unit.Duration, size int64) unit.Duration {
	perLease := float64(c.Switch) * (1 + math.Log2(float64(max(1, size)))) / float64(c.Lease)
	return unit.Duration(float64(left) * c.Margin * (1 + perLease))
}

// tick is the next instant at which it is decided who runs.
func (c Config) tick(now unit.Time) unit.Time {
	return (now + unit.Time(c.Fill) - 1) / unit.Time(c.Fill) * unit.Time(c.Fill)
}

// ask is what a job has to be promised to end in time.
func (s *selector) ask(l live, by unit.Time) lease.Ask {
	size := max(l.size, min(rounded(l.size), s.cal.Capacity()))
	return lease.Ask{Job: l.job, Size: size, Need: s.config.need(l.left, size), By: by}
}

// rounded is the power of two up to a node, or the number of nodes, that a job of so
// many devices counts as: such gangs always pack.
func rounded(devices int64) int64 {
	const node = 8
	if devices > node {
		return (devices + node - 1) / node * node
	}
	size := int64(1)
	for size < devices {
		size *= 2
	}
	return size
}

// admit promises a job its end in time if the calendar has room for it, or if that is no earlier than the earliest end
// for which all promises can be packed anew with it. Otherwise it returns the earliest end that could be promised; Never
// if none could. Neither depends on the end that is asked for, but that more room is before a later one: whoever could be
// promised an earlier end can be promised the later. left is what is believed to be left of those admitted before.
func (s *selector) admit(now unit.Time, a lease.Ask, left func(plan.JobID) unit.Duration) (ok bool, earliest unit.Time) {
	s.cal.Pass(now)
	now = s.config.tick(now)
	if s.cal.Reserve(now, a) {
		return true, a.By
	}
	alone := s.cal.Earliest(now, a)
	if !s.config.Repack || alone == unit.Never {
		return false, alone
	}
	asks := make([]lease.Ask, 0, len(s.cal.Holdings())+1)
	for _, h := range s.cal.Holdings() {
		asks = append(asks, lease.Ask{Job: h.Job, Size: h.Size, Need: s.config.need(left(h.Job), h.Size), By: h.By})
	}
	asks = append(asks, a)
	earliest = s.offer(now, asks, alone)
	if earliest > a.By {
		return false, earliest
	}
	// Greedy packing may fail for a later end than one for which it does not: then the earlier is promised.
	last := &asks[len(asks)-1]
	if last.By = a.By; !s.pack(s.cal, now, asks) {
		last.By = earliest
		s.pack(s.cal, now, asks)
	}
	return true, a.By
}

// pack packs all promises anew.
func (s *selector) pack(cal *lease.Calendar, now unit.Time, asks []lease.Ask) bool {
	return !cal.Overfull(now, asks) && (cal.Pack(now, asks) || len(asks) <= s.config.ExactJobs && cal.PackExactly(now, asks))
}

// offer searches for the earliest end that all promises packed anew leave for the last
// of the jobs, by halving the time to the one that is to be had without packing, down to
// a lease or, where that is far off, a small part of the time.
func (s *selector) offer(now unit.Time, asks []lease.Ask, alone unit.Time) unit.Time {
	last := &asks[len(asks)-1]
	low, high := now.Add(last.Need), alone // high can be kept
	for fine := max(s.config.Lease, high.Sub(low)/64); high.Sub(low) > fine; {
		last.By = low + (high-low)/2
		if trial := *s.cal; s.pack(&trial, now, asks) {
			high = last.By
		} else {
			low = last.By
		}
	}
	return high
}

// choose lets leases go that are not needed any more, finds new ones for jobs that take
// longer than was believed, and appends who runs: those who hold the lease that runs,
// and in the room they leave the jobs with the least left to do.
func (s *selector) choose(now unit.Time, jobs []live, into []plan.JobID) (chosen []plan.JobID, holders int) {
	s.cal.Pass(now)
	room, current := s.cal.Capacity(), s.cal.At(now)
	s.stay, s.rest = s.stay[:0], s.rest[:0]
	for _, l := range jobs {
		h := s.cal.Find(l.job)
		if h != nil {
			need := s.config.need(l.left, h.Size)
			if worth := s.cal.Promised(now, h); worth < need && s.cal.At(h.By) > current {
				s.cal.Reserve(now, lease.Ask{Job: l.job, Size: h.Size, Need: need, By: h.By})
				h = s.cal.Find(l.job)
			}
			s.cal.Trim(now, l.job, need)
		}
		switch {
		case h.Holds(current) && room >= l.size:
			into = append(into, l.job)
			room -= l.size
		case l.stays:
			s.stay = append(s.stay, l)
		default:
			s.rest = append(s.rest, l)
		}
	}
	holders = len(into)
	into, room = shortest(s.stay, room, into)
	into, _ = shortest(s.rest, room, into)
	return into, holders
}

// shortest appends the jobs with the least left to do for which there is room. Those for
// which there is none to begin with need no place in the order.
func shortest(jobs []live, room int64, into []plan.JobID) ([]plan.JobID, int64) {
	jobs = slices.DeleteFunc(jobs, func(l live) bool { return l.size > room })
	slices.SortFunc(jobs, func(a, b live) int {
		if x, y := int64(a.left)*a.size, int64(b.left)*b.size; x != y {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a.job, b.job)
	})
	for _, l := range jobs {
		if l.size <= room {
			into = append(into, l.job)
			room -= l.size
		}
	}
	return into, room
}
