package compose

import (
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// Where nodes close soon, a job that takes less time passes those of its shape that rank before it.

// nextShorter returns the next by rank of a class that takes less time than its best job, which
// was just tried, or none: where nodes close soon it may end before. Whom nothing was held
// back from would fit no better if it were shorter.
func (s *Scheduler) nextShorter(d *plan.Draft, c *lines.Class, why placing.Why) plan.JobID {
	if len(s.agenda.Windows()) == 0 || s.rules.Strict || !why.Held {
		return plan.None
	}
	n, first, found := d.ShapeOf(c.Shape).Least(), item{}, false
	length := calendar.Length(d.View, c.Best().Job, n)
	for _, o := range c.Items()[1:] {
		if (!found || o.Before(&first)) && calendar.Length(d.View, o.Job, n) < length {
			first, found = o, true
		}
	}
	if !found {
		return plan.None
	}
	return first.Job
}

// passOverUntil takes those of a class that rank before one of its jobs out of it, until nothing
// more fits: that job is tried when the queues and its rank put it next.
func (s *Scheduler) passOverUntil(c *lines.Class, shorter plan.JobID) {
	for shorter >= 0 && c.Best().Job != shorter {
		s.lines.PassOver(c, !s.agenda.Empty())
	}
}

// recallPassed files those again who were passed over: they were tried, or would fit no
// better than who was.
func (s *Scheduler) recallPassed(d *plan.Draft) {
	for _, it := range s.lines.RecallPassed() {
		s.file(d.View, it.Job)
		s.lines.Block(s.lines.ClassOf(it.Job))
	}
}
