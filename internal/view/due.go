package view

import (
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// Due is what becomes of a job's deadline.
type Due struct {
	Deadline time.Time `json:"deadline"`
	// Expected is when the job ended or is expected to; of one that does not run, when it would if it started now. Zero is unknown.
	Expected time.Time `json:"expected,omitzero"`
	// LateSec is by how much that is behind the deadline, negative before it; where it is unknown, by how much the deadline is past.
	LateSec float64 `json:"late_s,omitempty"`
	// Missed says that the job has ended, and had not finished by its deadline.
	Missed bool   `json:"missed,omitempty"`
	Words  string `json:"words"`
}

// dueOf is nil for a job without a deadline.
func dueOf(v plan.View, id plan.JobID) *Due {
	j := v.Job(id)
	if j.Deadline <= 0 {
		return nil
	}
	at := j.Submit.Add(j.Deadline)
	if j.Phase.Over() && j.Phase != plan.Finished {
		return &Due{Deadline: instant(at), Missed: true, Words: "did not finish"}
	}
	end := expectedEnd(v, id)
	d := &Due{Deadline: instant(at), Expected: instant(end), Missed: j.Phase == plan.Finished && end > at}
	if end == unit.Never {
		end = max(at, v.Now())
	}
	d.LateSec = end.Sub(at).Seconds()
	d.Words = d.words(j.Phase)
	return d
}

// expectedEnd is when a job finished or is expected to, at the earliest where it does not run; Never is unknown.
func expectedEnd(v plan.View, id plan.JobID) unit.Time {
	j := v.Job(id)
	switch {
	case j.Phase == plan.Finished:
		return j.Ended
	case j.Phase == plan.Active:
		if end := calendar.Told(v, j.Run); end != unit.Never {
			return max(end, v.Now())
		}
		return unit.Never
	}
	if left, known := v.Left(id); known {
		return v.Now().Add(left)
	}
	return unit.Never
}

func (d *Due) words(phase plan.Phase) string {
	behind := SpanSec(-d.LateSec) + " before it"
	if d.LateSec > 0 {
		behind = SpanSec(d.LateSec) + " after it"
	}
	switch {
	case phase == plan.Finished:
		return "finished " + behind
	case d.Expected.IsZero() && d.LateSec > 0:
		return "it is past by " + SpanSec(d.LateSec)
	case d.Expected.IsZero():
		return "nobody knows how long the job runs"
	case phase == plan.Active:
		return "expected to end " + behind
	}
	return "would end " + behind + " if it started now"
}

// brief is what a table has room for.
func (d *Due) brief() string {
	switch {
	case d == nil:
		return "-"
	case d.Missed && d.Expected.IsZero():
		return "missed"
	case d.LateSec > 0 && !d.Expected.IsZero():
		return SpanSec(d.LateSec) + " late"
	case d.LateSec > 0:
		return "past"
	case d.Expected.IsZero():
		return d.Deadline.Local().Format("01-02 15:04")
	}
	return SpanSec(-d.LateSec) + " early"
}
