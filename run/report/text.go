package report

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/musterdl/muster/run/report/terminal"
)

// TextOptions are terminal's.
type TextOptions = terminal.Options

// pad fills text with spaces to width, in front of it when width is positive and
// behind it when it is negative.
func pad(text string, width int) string {
	fill := strings.Repeat(" ", max(0, max(width, -width)-terminal.Columns(text)))
	if width < 0 {
		return text + fill
	}
	return fill + text
}

// fact is one line of the table of a single result.
type fact struct{ name, value string }

// facts lists what there is to say about a result, in the order of reading. What
// was not measured is left out rather than shown as zero.
func facts(r *Result) []fact {
	var out []fact
	add := func(shown bool, name, format string, args ...any) {
		if shown {
			out = append(out, fact{name, fmt.Sprintf(format, args...)})
		}
	}
	exact := func(sec float64) string { return fmt.Sprintf("%s (%.1f s)", timeText(sec), sec) }
	add(true, "strategy", "%s", r.Strategy)
	add(r.Trace != "", "trace", "%s", r.Trace)
	add(true, "seed", "%d", r.Seed)
	add(r.Load != 0, "load", "%s", number(r.Load))
	add(r.OfferedLoad != 0, "offered load", "%s", percent(r.OfferedLoad))
	add(r.MeanDurationSec != 0, "mean duration", "%s", exact(r.MeanDurationSec))
	add(true, "jobs", "%s", jobsText(r))
	if r.Finished > 0 {
		add(true, "average JCT", "%s", exact(r.AvgJCTSec))
		add(true, "p50, p95, p99 JCT", "%s, %s, %s", timeText(r.P50JCTSec), timeText(r.P95JCTSec), timeText(r.P99JCTSec))
		add(true, "average wait", "%s", exact(r.AvgWaitSec))
		add(r.AvgSlowdown != 0, "average slowdown", "%.2f", r.AvgSlowdown)
		add(r.P99Slowdown != 0, "p99 slowdown", "%.2f", r.P99Slowdown)
		add(r.LargeGangs != 0, "gangs of 16 and more", "%s waited %s on average, %s at most", count(r.LargeGangs), timeText(r.AvgGangWaitSec), timeText(r.LongestGangWaitSec))
		add(r.JCTBoundSec != 0, "JCT lower bound", "%s", boundText(r))
	}
	add(true, "longest queue", "%s", count(r.LongestQueue))
	add(true, "makespan", "%s", exact(r.MakespanSec))
	add(true, "utilization", "%s", percent(r.Utilization))
	add(r.BusyUtilization != 0, "busy utilization", "%s", percent(r.BusyUtilization))
	add(r.DeviceSec > 0, "device time", "%s", ledgerText(r))
	add(r.FilledDeviceSec > 0, "bubbles", "%s of what plans left idle was used by guests, which kept their hosts %s longer",
		percent(r.FilledDeviceSec/max(1, r.BubbleDeviceSec)), percent(r.SlowedDeviceSec/max(1, r.PlannedDeviceSec-r.SlowedDeviceSec)))
	add(r.OwnedDeviceSec > 0, "owners' slowdown", "%s beside guests, for %s of device time", percent(r.OwnersSlowdown()), timeText(r.OwnedDeviceSec))
	add(true, "preemptions", "%s", count(r.Preemptions))
	add(true, "restarts", "%s", count(r.Restarts))
	add(r.Commits > 0, "commits", "%s", count(r.Commits))
	add(r.Events > 0, "events", "%s%s", count(r.Events), rateText(r))
	add(r.WallSec > 0 || r.CPUSec > 0, "computed in", "%s wall, %s CPU", timeText(r.WallSec), timeText(r.CPUSec))
	add(r.PeakRSSBytes > 0, "peak memory", "%s", bytesText(r.PeakRSSBytes))
	add(r.DecisionHash != "", "decision hash", "%s", r.DecisionHash)
	for _, name := range slices.Sorted(maps.Keys(r.Figures)) {
		add(true, name, "%s", number(r.Figures[name]))
	}
	return out
}

func jobsText(r *Result) string {
	s := fmt.Sprintf("%s, %s finished", count(r.Jobs), count(r.Finished))
	for _, p := range []struct {
		n    int64
		name string
	}{{r.Failed, "failed"}, {r.Cancelled, "cancelled"}, {r.Refused, "refused"}, {r.Censored, "censored"}} {
		if p.n > 0 {
			s += fmt.Sprintf(", %s %s", count(p.n), p.name)
		}
	}
	return s
}

func boundText(r *Result) string {
	if r.Finished < r.Jobs {
		return timeText(r.JCTBoundSec) + " if all jobs finished"
	}
	return fmt.Sprintf("%s; the average is %.2f times that", timeText(r.JCTBoundSec), r.AvgJCTSec/r.JCTBoundSec)
}

func ledgerText(r *Result) string {
	part := func(sec float64) string { return percent(sec / r.DeviceSec) }
	balance := "balanced"
	if !r.Balanced {
		balance = "NOT BALANCED"
	}
	return fmt.Sprintf("%s useful, %s overhead, %s lost, %s idle of %s device-hours; %s",
		part(r.UsefulDeviceSec), part(r.OverheadDeviceSec), part(r.LostDeviceSec), part(r.IdleDeviceSec),
		count(int64(math.Round(r.DeviceSec/3600))), balance)
}

func rateText(r *Result) string {
	if r.WallSec <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s per second)", count(int64(float64(r.Events)/r.WallSec)))
}

// WriteText writes one result as a table of two columns.
func WriteText(w io.Writer, r Result, opts TextOptions) error {
	out := bufio.NewWriter(w)
	list := facts(&r)
	for i := range r.Notes {
		list = append(list, fact{"note", r.Notes[i]})
	}
	indent := 0
	for _, f := range list {
		indent = max(indent, terminal.Columns(f.name)+2)
	}
	room := 0
	if opts.Width > 0 {
		room = max(opts.Width-indent, 16)
	}
	for _, f := range list {
		name := opts.Paint(terminal.Bold, f.name) + strings.Repeat(" ", indent-terminal.Columns(f.name))
		for _, line := range wrap(f.value, room) {
			fmt.Fprintf(out, "%s%s\n", name, terminal.Cut(line, room))
			name = strings.Repeat(" ", indent)
		}
	}
	return wrapped(out.Flush())
}

func wrapped(err error) error {
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Row is one line of a comparison.
type Row struct {
	Result Result
	// Ratio is the average JCT over that of the first row with its interval; nil
	// shows the plain ratio.
	Ratio *Interval
}

// column is one column of a comparison; columns of higher rank give way first
// when the line is too narrow, and those of rank 0 stay.
type column struct {
	head string
	rank int
	cell func(*Row) string
}

// compareColumns are the columns of a comparison in text and HTML.
func compareColumns(rows []Row) []column {
	first := &rows[0].Result
	// A figure that nothing was measured for is a dash.
	of := func(has func(*Result) bool, text func(*Result) string) func(*Row) string {
		return func(r *Row) string {
			if !has(&r.Result) {
				return "–"
			}
			return text(&r.Result)
		}
	}
	jct := func(get func(*Result) float64) func(*Row) string {
		return of(func(r *Result) bool { return r.Finished != 0 }, func(r *Result) string { return timeText(get(r)) })
	}
	columns := []column{
		{"avg JCT", 0, jct(func(r *Result) float64 { return r.AvgJCTSec })},
		{"vs first", 0, func(r *Row) string { return ratioText(ratioOf(first, r)) }},
		{"p50 JCT", 6, jct(func(r *Result) float64 { return r.P50JCTSec })},
		{"p95 JCT", 5, jct(func(r *Result) float64 { return r.P95JCTSec })},
		{"p99 JCT", 4, jct(func(r *Result) float64 { return r.P99JCTSec })},
		{"p99 slowdown", 2, of(func(r *Result) bool { return r.P99Slowdown != 0 }, func(r *Result) string { return fmt.Sprintf("%.1f", r.P99Slowdown) })},
		{"avg wait", 1, jct(func(r *Result) float64 { return r.AvgWaitSec })},
		{"longest queue", 8, func(r *Row) string { return count(r.Result.LongestQueue) }},
		{"makespan", 7, func(r *Row) string { return timeText(r.Result.MakespanSec) }},
		{"util", 5, func(r *Row) string { return percent(r.Result.Utilization) }},
		{"preempted", 3, func(r *Row) string { return count(r.Result.Preemptions) }},
		{"finished", 9, func(r *Row) string { return count(r.Result.Finished) }},
	}
	hasGangs := func(r *Result) bool { return r.LargeGangs != 0 }
	if slices.ContainsFunc(rows, func(r Row) bool { return hasGangs(&r.Result) }) {
		columns = append(columns,
			column{"gangs' wait", 3, of(hasGangs, func(r *Result) string { return timeText(r.AvgGangWaitSec) })},
			column{"their longest", 4, of(hasGangs, func(r *Result) string { return timeText(r.LongestGangWaitSec) })})
	}
	for i := range rows {
		if rows[i].Result.Censored > 0 { // a mean over fewer jobs must not pass unseen
			return append(columns, column{"censored", 0, func(r *Row) string { return count(r.Result.Censored) }})
		}
	}
	return columns
}

// ratioOf is the row's ratio as given, or the plain one; nil where there is none.
func ratioOf(first *Result, r *Row) *Interval {
	switch {
	case r.Ratio != nil:
		return r.Ratio
	case first.AvgJCTSec <= 0 || r.Result.AvgJCTSec <= 0:
		return nil
	}
	plain := unknown(r.Result.AvgJCTSec/first.AvgJCTSec, 1)
	return &plain
}

// WriteComparison writes one row per result. Columns that the width has no room
// for are left out and named below the table.
func WriteComparison(w io.Writer, rows []Row, opts TextOptions) error {
	if len(rows) == 0 {
		return nil
	}
	out := bufio.NewWriter(w)
	name := terminal.Columns("strategy")
	for i := range rows {
		name = max(name, terminal.Columns(rows[i].Result.Strategy))
	}
	columns, hidden := fitColumns(compareColumns(rows), rows, name, opts.Width)
	if opts.Width > 0 {
		taken := 0
		for _, c := range columns {
			taken += 2 + columnWidth(c, rows)
		}
		name = min(name, max(8, opts.Width-taken))
	}
	head := pad("strategy", -name)
	for _, c := range columns {
		head += "  " + pad(c.head, columnWidth(c, rows))
	}
	fmt.Fprintln(out, opts.Paint(terminal.Bold, head))
	for i := range rows {
		fmt.Fprint(out, pad(terminal.Cut(rows[i].Result.Strategy, name), -name))
		for _, c := range columns {
			cell := pad(c.cell(&rows[i]), columnWidth(c, rows))
			fmt.Fprint(out, "  ", opts.Paint(cellStyle(c, rows, i), cell))
		}
		fmt.Fprintln(out)
	}
	under := knowing(rows)
	if len(hidden) > 0 {
		under = append(under, "not shown at this width: "+strings.Join(hidden, ", "))
	}
	for _, text := range under {
		for _, line := range wrap(text, opts.Width) {
			fmt.Fprintln(out, opts.Paint(terminal.Dim, line))
		}
	}
	return wrapped(out.Flush())
}

// knowing says what each strategy went by, those together that went by the same.
func knowing(rows []Row) (lines []string) {
	var all []string
	who := map[string][]string{}
	for i := range rows {
		r := &rows[i].Result
		if r.Knows == "" {
			continue
		}
		if len(who[r.Knows]) == 0 {
			all = append(all, r.Knows)
		}
		who[r.Knows] = append(who[r.Knows], r.Strategy)
	}
	for _, what := range all {
		lines = append(lines, "knows "+what+": "+strings.Join(who[what], ", "))
	}
	return lines
}

// cellStyle paints a ratio whose whole interval lies on one side of 1.
func cellStyle(c column, rows []Row, i int) terminal.Style {
	ratio := rows[i].Ratio
	switch {
	case c.head != "vs first" || i == 0 || ratio == nil:
		return ""
	case ratio.Known() && ratio.High < 1:
		return terminal.Green
	case ratio.Known() && ratio.Low > 1:
		return terminal.Red
	}
	return ""
}

func columnWidth(c column, rows []Row) int {
	width := terminal.Columns(c.head)
	for i := range rows {
		width = max(width, terminal.Columns(c.cell(&rows[i])))
	}
	return width
}

// fitColumns drops the columns that can be spared until the table fits.
func fitColumns(columns []column, rows []Row, name, width int) (kept []column, hidden []string) {
	total, worst := name, 0
	for _, c := range columns {
		total, worst = total+2+columnWidth(c, rows), max(worst, c.rank)
	}
	limit := worst
	for ; width > 0 && total > width && limit > 0; limit-- {
		for _, c := range columns {
			if c.rank == limit {
				total -= 2 + columnWidth(c, rows)
			}
		}
	}
	for _, c := range columns {
		if c.rank <= limit {
			kept = append(kept, c)
		} else {
			hidden = append(hidden, c.head)
		}
	}
	return kept, hidden
}
