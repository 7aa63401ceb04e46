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
	for _, held := range t.Peak {
		n.PeakKiB = max(n.PeakKiB, held.Total())
	}
	if limit := int64(c.Memory) << 10; limit > 0 {
		n.OverKiB = max(0, n.PeakKiB-limit)
	}
	return n, ""
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
