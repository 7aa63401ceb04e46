package pipeline

import (
	"cmp"

	"github.com/musterdl/muster/model/unit"
)

// Score is by what schedules of the same work are compared: first what fits, then what is
// soonest done, then what needs least.
type Score struct {
	OverKiB  int64 // what the fullest rank needs beyond the memory that it has
	Makespan unit.Duration
	PeakKiB  int64 // of the fullest rank
}

// Score times a schedule, or says why it cannot run.
func (s *Schedule) Score(c *Costs) (Score, Why) {
	t, why := s.Time(*c)
	if why != "" {
		return Score{}, why
	}
	n := Score{Makespan: t.Makespan}
	n.memory(t.Peak, c)
	return n, ""
}

// memory takes in what the ranks hold.
func (n *Score) memory(peaks []Memory, c *Costs) {
	for _, held := range peaks {
		n.PeakKiB = max(n.PeakKiB, held.Total())
	}
	if limit := int64(c.Memory) << 10; limit > 0 {
		n.OverKiB = max(0, n.PeakKiB-limit)
	}
}

// Better reports whether a schedule of this score is to be preferred.
func (n Score) Better(m Score) bool {
	return cmp.Or(cmp.Compare(n.OverKiB, m.OverKiB), cmp.Compare(n.Makespan, m.Makespan), cmp.Compare(n.PeakKiB, m.PeakKiB)) < 0
}

// Search is the best of some schedules of the same work, and its score.
type Search struct {
	Costs *Costs
	Best  Schedule
	Score Score
}

// List looks at one more, whose orders are still to be written by a rule, as Schedule.List writes them.
// What is written takes no less time than the writing of it, which knows of no transfers that share a
// link: where even that is no better the schedule need not be timed, or be written to its end.
func (x *Search) List(s Schedule, split bool, rule Rule) Why {
	l := newLister(&s, x.Costs, split, rule)
	end, within := l.run(x.Limit())
	if !within {
		return ""
	}
	if why := l.left(); why != "" {
		return why
	}
	return x.TryFrom(s, end.Sub(0))
}

// bounded reports whether there is a schedule to be better than, and what is known of passes is true.
func (x *Search) bounded() bool { return x.Best.Orders != nil && x.Costs.Varies == nil }

// Limit is how long a schedule may take at most that is to be better.
func (x *Search) Limit() unit.Duration {
	if x.bounded() && x.Score.OverKiB == 0 {
		return x.Score.Makespan
	}
	return unit.Forever
}

// TryFrom looks at one more, which takes so long at least: it is not timed where that is no better.
func (x *Search) TryFrom(s Schedule, least unit.Duration) Why {
	if x.bounded() {
		n := Score{Makespan: least}
		if n.memory(s.Peaks(x.Costs), x.Costs); !n.Better(x.Score) {
			return ""
		}
	}
	return x.Try(s, "")
}

// Try looks at one more, the first of equals stays; or says why it cannot run.
func (x *Search) Try(s Schedule, why Why) Why {
	if why != "" {
		return why
	}
	n, why := s.Score(x.Costs)
	if why == "" && (x.Best.Orders == nil || n.Better(x.Score)) {
		x.Best, x.Score = s, n
	}
	return why
}
