package view

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report/terminal"
)

// When says when a job starts and ends, as ranges that hold four times in five if past
// ones are a guide. What is left out of a range is later than was looked, or not asked.
type When struct {
	Job   string `json:"job"`
	Phase string `json:"phase"`
	State string `json:"state"` // the word that is said of it
	Queue string `json:"queue,omitempty"`
	NowUs int64  `json:"now_us"`
	// Words say why there is no range, where there can be none, as muster why does; Never
	// says that it is because the job can never start as things are.
	Words       string `json:"words,omitempty"`
	Never       bool   `json:"never,omitempty"`
	LowUs       *int64 `json:"low_us,omitempty"`
	MedianUs    *int64 `json:"median_us,omitempty"`
	HighUs      *int64 `json:"high_us,omitempty"`
	EndLowUs    *int64 `json:"end_low_us,omitempty"`
	EndMedianUs *int64 `json:"end_median_us,omitempty"`
	EndHighUs   *int64 `json:"end_high_us,omitempty"`
	// Basis is what the ranges rest on, Samples how many forward runs, LookedUs how far
	// these went.
	Basis       string       `json:"basis,omitempty"`
	Samples     int          `json:"samples"`
	LookedUs    int64        `json:"looked_us,omitempty"`
	Calibration *Calibration `json:"calibration,omitempty"`
}

// Calibration is how good past ranges were.
type Calibration struct {
	Queue    string   `json:"queue"`    // empty is all of them together
	Coverage *float64 `json:"coverage"` // the part that held; none without any
	Promises int      `json:"promises"` // how many that is of
}

// WhenOf says of a job what is to be said of it without looking ahead: all, where it has
// ended, is held or can never start, or where decisions are paused.
func WhenOf(v plan.View, info plane.JobInfo, id plan.JobID, site *explain.Site) When {
	j, why := v.Job(id), site.Cause(id)
	w := When{Job: v.Name(id), Phase: j.Phase.String(), State: v.Standing(id), Queue: queueName(v, id), NowUs: int64(v.Now())}
	if j.Phase.Over() || j.Phase == plan.Held || why.Never || v.Paused() && j.Run == plan.None {
		w.Words, w.Never = withFailure(v, info, id, why.Words), why.Never
	}
	return w
}

// SetStart and SetEnd fill in ranges.
func (w *When) SetStart(r forecast.Range) { w.LowUs, w.MedianUs, w.HighUs = instants(r) }

// SetEnd fills in when it ends.
func (w *When) SetEnd(r forecast.Range) { w.EndLowUs, w.EndMedianUs, w.EndHighUs = instants(r) }

func instants(r forecast.Range) (low, median, high *int64) {
	of := func(t unit.Time) *int64 {
		if t == unit.Never {
			return nil
		}
		us := int64(t)
		return &us
	}
	return of(r.Low), of(r.Median), of(r.High)
}

// Promises is how good the ranges were that were given, by queue; the first, without a
// name, is all queues together.
type Promises struct {
	Queues []PromiseScore `json:"queues"`
}

// PromiseScore is how good the ranges of one queue were. A share of nothing is none.
type PromiseScore struct {
	Queue    string `json:"queue"`
	Promises int    `json:"promises"`
	// Scored are the starts and ScoredEnds the ends of which one can tell whether they
	// were in their range, Coverage and EndCoverage the parts that were, and HitRate
	// that of both together.
	Scored      int      `json:"scored"`
	ScoredEnds  int      `json:"scored_ends"`
	HitRate     *float64 `json:"hit_rate"`
	Coverage    *float64 `json:"coverage"`
	EndCoverage *float64 `json:"end_coverage"`
	Censored    int      `json:"censored"`
	Pending     int      `json:"pending"`
	// MedianErrorSec is how far the start was from the promised median, in the median,
	// and MedianError that as a part of the wait.
	MedianErrorSec float64 `json:"median_error_s"`
	MedianError    float64 `json:"median_error"`
	MedianWidthSec float64 `json:"median_width_s"`
}

// PromiseScoreOf shows a score.
func PromiseScoreOf(s forecast.Score) PromiseScore {
	both := forecast.Tally{Hits: s.Start.Hits + s.End.Hits, Early: s.Start.Early + s.End.Early, Late: s.Start.Late + s.End.Late}
	return PromiseScore{Queue: s.Queue, Promises: s.End.Promises, Scored: s.Start.Judged(), ScoredEnds: s.End.Judged(), HitRate: Rate(both), Coverage: Rate(s.Start),
		EndCoverage: Rate(s.End), Censored: s.Start.Censored + s.End.Censored, Pending: s.Start.Pending + s.End.Pending,
		MedianErrorSec: s.MedianErrorSec, MedianError: s.MedianError, MedianWidthSec: s.MedianWidthSec}
}

// Rate is the part of the judged that held; nil of none.
func Rate(t forecast.Tally) *float64 {
	if t.Judged() == 0 {
		return nil
	}
	rate := t.HitRate()
	return &rate
}

// WriteWhen writes it in a sentence or two.
func WriteWhen(w io.Writer, y *When, o TextOptions) error {
	text := o.Paint(terminal.Bold, y.Job) + " "
	switch {
	case y.Words != "":
		text += "is " + o.Paint(styleOf(y.State), y.State) + ": " + y.Words
	default:
		if y.LowUs != nil {
			text += "starts " + between(y.NowUs, y.LowUs, y.MedianUs, y.HighUs)
		}
		if y.EndLowUs != nil {
			if y.LowUs != nil {
				text += ",\nand "
			}
			text += "ends " + between(y.NowUs, y.EndLowUs, y.EndMedianUs, y.EndHighUs)
		}
		if y.LowUs == nil && y.EndLowUs == nil {
			text += "waits: nothing is known of when it starts"
		}
		text += "\n(80 % range, from " + y.Basis + "; " + y.Calibration.words() + ")"
	}
	_, err := io.WriteString(w, text+"\n")
	return err
}

func (c *Calibration) words() string {
	where := ""
	if c != nil && c.Queue != "" {
		where = " in queue " + c.Queue
	}
	if c == nil || c.Coverage == nil {
		return "no such range has been scored yet" + where
	}
	return fmt.Sprintf("%.0f %% of %s%s held", *c.Coverage*100, count(c.Promises, "such range", "such ranges"), where)
}

// between writes a range in the reader's own time.
func between(nowUs int64, low, median, high *int64) string {
	fine := high != nil && *high-*low < int64(5*unit.Minute)
	at := func(us *int64) string { return clock(nowUs, *us, fine) }
	begins, tail := "after "+at(low), ""
	if *low <= nowUs {
		begins = "any moment"
	}
	if median != nil && *median > nowUs {
		tail = ", most likely " + at(median)
	}
	switch {
	case high == nil && *low <= nowUs:
		return "now or much later" + tail
	case high == nil:
		return begins + tail
	case *high <= nowUs:
		return "any moment now"
	case *low <= nowUs:
		return "before " + at(high) + tail
	}
	return "between " + at(low) + " and " + at(high) + tail
}

// clock is the time of day, with the day where that is another than now's.
func clock(nowUs, us int64, fine bool) string {
	layout := "15:04"
	if fine {
		layout = "15:04:05"
	}
	now, at := time.UnixMicro(nowUs).Local(), time.UnixMicro(us).Local()
	if now.Year() != at.Year() || now.YearDay() != at.YearDay() {
		layout = "Mon 2 Jan " + layout
	}
	return at.Format(layout)
}

// WritePromises writes a table.
func WritePromises(w io.Writer, p *Promises, o TextOptions) error {
	t := table{head: []string{"QUEUE", "PROMISES", "STARTS", "HELD", "ENDS", "HELD", "OFF BY", "OF THE WAIT", "WIDTH"}}
	for _, q := range p.Queues {
		name := q.Queue
		if name == "" {
			name = "(all)"
		}
		off, ofWait := "-", "-"
		if q.Scored > 0 {
			off, ofWait = SpanSec(math.Round(q.MedianErrorSec)), percent(q.MedianError)
		}
		t.add(name, fmt.Sprint(q.Promises), fmt.Sprint(q.Scored), part(q.Coverage), fmt.Sprint(q.ScoredEnds), part(q.EndCoverage), off, ofWait, SpanSec(math.Round(q.MedianWidthSec)))
	}
	if len(t.rows) == 0 {
		_, err := fmt.Fprintln(w, "nothing was promised yet")
		return err
	}
	return t.write(w, o)
}

func part(rate *float64) string {
	if rate == nil {
		return "-"
	}
	return percent(*rate)
}
