package whatif

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
)

// shownJobs is the most jobs that a text lists.
const shownJobs = 20

// Write writes an answer as text: the figures side by side, and the jobs that the change
// matters most to.
func Write(w io.Writer, a *Answer) error {
	var b bytes.Buffer
	fmt.Fprintln(&b, a.Words)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\n\tAS IT IS\tWITH THE CHANGE")
	row := func(name string, f func(s *Side) string) {
		fmt.Fprintf(t, "%s\t%s\t%s\n", name, f(&a.Base), f(&a.Alternative))
	}
	row("strategy", func(s *Side) string { return s.Strategy })
	row("devices", func(s *Side) string { return fmt.Sprint(s.Devices) })
	row("mean wait", func(s *Side) string { return view.SpanSec(s.MeanWaitS) })
	row("mean completion", func(s *Side) string { return view.SpanSec(s.MeanJCTS) })
	row("utilisation", func(s *Side) string { return fmt.Sprintf("%.1f %%", s.Utilisation*100) })
	row("preemptions", func(s *Side) string { return fmt.Sprint(s.Preemptions) })
	row("finished", func(s *Side) string { return fmt.Sprint(s.Finished) })
	row("not finished", func(s *Side) string { return fmt.Sprint(s.Unfinished) })
	for i := range a.Submitted {
		if p := a.Submitted[i].Preempts; len(p) > 0 {
			fmt.Fprintf(t, "displaced by %s\t\t%s\n", a.Submitted[i].Job, strings.Join(p, " "))
		}
	}
	if len(a.Jobs) > 0 {
		fmt.Fprintln(t, "\nJOB\tSTARTS\tWITH THE CHANGE\tENDS\tWITH THE CHANGE")
	}
	for _, j := range a.Jobs[:min(len(a.Jobs), shownJobs)] {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", j.Job, a.when(j.BaseStartUs), a.when(j.AlternativeStartUs), a.when(j.BaseEndUs), a.when(j.AlternativeEndUs))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := len(a.Jobs) - shownJobs; more > 0 || a.JobsLeftOut > 0 {
		fmt.Fprintf(&b, "and %s\n", count(max(0, more)+a.JobsLeftOut, "other job"))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// when writes an instant, seen from the fork.
func (a *Answer) when(at unit.Time) string {
	switch {
	case at < 0:
		return "-"
	case at < a.FromUs:
		return span(a.FromUs.Sub(at)) + " ago"
	}
	return "+" + span(at.Sub(a.FromUs))
}

// WriteSwitched writes what a switch did, or would do.
func WriteSwitched(w io.Writer, s *Switched) error {
	if s.Ahead == nil {
		_, err := fmt.Fprintln(w, s.Words)
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s would now start %s and stop %s, and leave %d waiting; nothing was changed\n", s.To, names(s.Ahead.Now.Starts), names(s.Ahead.Now.Stops), s.Ahead.Now.Waiting)
	if _, err := w.Write(b.Bytes()); err != nil {
		return err
	}
	return Write(w, s.Ahead)
}

// names lists some of the jobs.
func names(jobs []string) string {
	const some = 5
	if len(jobs) == 0 {
		return "none"
	}
	text := strings.Join(jobs[:min(some, len(jobs))], ", ")
	if more := len(jobs) - some; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
