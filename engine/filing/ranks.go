package filing

import (
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Expires is when the next rank runs out. Without a ranked run nobody can give way, and a new order of those who wait
// changes nothing.
func (f *Files) Expires() unit.Time {
	if _, ranked := f.lines.Lowest(); f.parts.Rules.Preempt && !f.parts.Rules.Strict && !ranked {
		return unit.Never
	}
	return f.lines.Expires()
}

// Expire ranks the jobs anew whose keys have run out.
func (f *Files) Expire(d *plan.Draft) {
	for {
		id, due := f.lines.TakeExpired(d.Now())
		if !due {
			return
		}
		if f.lines.Runs(id) {
			f.rerank(d.View, id)
			f.lines.ReopenAll() // it may have to give way now
			continue
		}
		if f.ager != nil {
			if memo, changed := f.ager.Age(d.View, id); changed {
				d.Memo(id, memo)
			}
		}
		f.again(d.View, id)
	}
}

// rerank ranks a job anew that is ranked among those that run, and returns its rank.
func (f *Files) rerank(v plan.View, id plan.JobID) lines.Item {
	key, until := f.parts.Order.Key(v, id)
	is := lines.Item{Key: key, Job: id}
	f.lines.Rerank(is)
	f.lines.Until(until, id)
	return is
}

// RankObserved ranks those anew who run and were observed: what they report may be what they are ranked by.
func (f *Files) RankObserved(v plan.View, observed []schedule.Observation) {
	for i := range observed {
		id := observed[i].Job
		was, ranked := f.lines.Ranked(id)
		if !ranked {
			continue
		}
		if is := f.rerank(v, id); was.Before(&is) {
			f.lines.ReopenAll() // it may have to give way now
		}
	}
}

// RankAnew ranks all jobs anew where so much has become known that ranks change before they were to.
func (f *Files) RankAnew(v plan.View) {
	if f.pupil == nil {
		return
	}
	since := f.pupil.Since(v)
	if since == f.since {
		return
	}
	f.since = since
	for id := range plan.JobID(v.Jobs()) {
		if _, ranked := f.lines.Ranked(id); ranked {
			f.rerank(v, id)
		} else if f.lines.ClassOf(id) != nil {
			f.again(v, id)
		}
	}
	f.lines.ReopenAll()
}
