package compose

import (
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// Where nodes close soon, a job that takes less time passes those of its shape that rank before it.

// nextShorter returns the next by rank of a class that takes less time than its best job, which
// was just tried, or none: where nodes close soon it may end before. Whom nothing was held
// back from would fit no better if it were shorter.
func (s *Scheduler) nextShorter(d *plan.Draft, class int) plan.JobID {
	if len(s.agenda.Windows()) == 0 || s.rules.Strict || !s.making.held {
		return plan.None
	}
	c := &s.lines.classes[class]
	n, first, found := d.ShapeOf(c.shape).Least(), item{}, false
	length := calendar.Length(d.View, c.waiting.items[0].job, n)
	for _, o := range c.waiting.items[1:] {
		if (!found || o.before(&first)) && calendar.Length(d.View, o.job, n) < length {
			first, found = o, true
		}
	}
	if !found {
		return plan.None
	}
	return first.job
}

// passOverUntil takes those of a class that rank before one of its jobs out of it, until nothing
// more fits: that job is tried when the queues and its rank put it next.
func (s *Scheduler) passOverUntil(d *plan.Draft, class int, shorter plan.JobID) {
	for c := &s.lines.classes[class]; shorter >= 0 && c.waiting.items[0].job != shorter; {
		it := c.waiting.items[0]
		s.drop(d.View, it.job)
		s.lines.active++
		s.making.passed = append(s.making.passed, it)
	}
}

// recallPassed files those again who were passed over: they were tried, or would fit no
// better than who was.
func (s *Scheduler) recallPassed(d *plan.Draft) {
	for _, it := range s.making.passed {
		s.lines.active--
		s.file(d.View, it.job)
		s.block(&s.lines.classes[s.lines.home[it.job]])
	}
	s.making.passed = s.making.passed[:0]
}
