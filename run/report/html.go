package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report/terminal"
)

// Page is what an HTML report shows: one run, or several side by side, the first
// of which the others are compared with.
type Page struct {
	Title string
	// When is shown as it is given.
	When string
	// Console is the address of the live console; empty where there is none.
	Console string
	Runs    []Run
	Lanes   []Lane // the names of the Gantt chart's rows; may be empty
}

// Run is one run of a page.
type Run struct {
	Row
	View View
}

// pageJobs is the most jobs that the table of a run lists.
const pageJobs = 500

//go:embed page.tmpl
var pageText string

//go:embed style.tmpl
var styleText string

var pageTemplate = styled("page", pageText)

// styled is a template that may use the style that all pages share.
func styled(name, text string) *template.Template {
	return template.Must(template.Must(template.New("style").Parse(styleText)).New(name).Parse(text))
}

// What the template reads: everything is text already.
type (
	pageData struct {
		Title, When string
		Console     string
		Facts       []string // what all runs share
		Tiles       []tile
		Head        []string
		Rows        []pageRow
		Charts      []pageChart
		Runs        []pageRun
	}
	tile    struct{ Name, Value, Below string }
	pageRow struct {
		Color    int
		Name     string
		Cells    []string
		Judgment string // class of the ratio: better, worse or neither
	}
	pageChart struct {
		Name, Text string
		Wide       bool
		SVG        template.HTML
		Legend     []legendItem
	}
	legendItem struct {
		Color int
		Name  string
	}
	pageRun struct {
		Name      string
		Facts     []tile
		Notes     []string
		Gantt     template.HTML
		GanttText string
		Jobs      []pageJob
		JobsText  string
		Open      bool
	}
	pageJob struct {
		Name, Tenant, Outcome                      string
		Devices, Submitted, Waited, Ran, JCT       string
		Preemptions, Restarts, FirstLoss, LastLoss string
		Deadline                                   string
	}
)

// HTML writes the report as one file that needs nothing else: it opens from disk
// and asks no one for anything.
func HTML(w io.Writer, p Page) error {
	data, err := p.data()
	if err != nil {
		return err
	}
	var b bytes.Buffer // so that an error leaves no half page
	if err := pageTemplate.Execute(&b, data); err != nil {
		return wrapped(err)
	}
	_, err = w.Write(b.Bytes())
	return wrapped(err)
}

func (p Page) data() (pageData, error) {
	d := pageData{Title: p.Title, When: p.When, Console: p.Console, Facts: sharedFacts(p.Runs)}
	if len(p.Runs) == 1 {
		d.Tiles = tiles(&p.Runs[0].Result)
	} else if len(p.Runs) > 1 {
		d.Head, d.Rows = compareTable(p.Runs)
	}
	charts, err := pageCharts(p.Runs)
	if err != nil {
		return d, err
	}
	d.Charts = charts
	for i := range p.Runs {
		d.Runs = append(d.Runs, p.run(i))
	}
	return d, nil
}

// sharedFacts are for the line below the title: what is the same in all runs.
func sharedFacts(runs []Run) []string {
	if len(runs) == 0 {
		return nil
	}
	first := runs[0].Result.Setting
	strategy, trace, seed := true, first.Trace != "", true
	for i := range runs {
		s := &runs[i].Result.Setting
		strategy = strategy && s.Strategy == first.Strategy
		trace = trace && s.Trace == first.Trace
		seed = seed && s.Seed == first.Seed
	}
	var out []string
	if strategy {
		out = append(out, first.Strategy)
	} else {
		out = append(out, fmt.Sprintf("%d strategies", len(runs)))
	}
	if trace {
		out = append(out, "trace "+first.Trace)
	}
	if seed && first.Seed != 0 { // 0 are the means over several
		out = append(out, fmt.Sprintf("seed %d", first.Seed))
	}
	return out
}

func tiles(r *Result) []tile {
	out := []tile{{"finished", count(r.Finished), fmt.Sprintf("of %s jobs", count(r.Jobs))}}
	if r.Finished > 0 {
		bound := ""
		if r.JCTBoundSec > 0 {
			bound = "at least " + timeText(r.JCTBoundSec)
		}
		out = append(out, tile{"average JCT", timeText(r.AvgJCTSec), bound},
			tile{"p95 JCT", timeText(r.P95JCTSec), "p99 " + timeText(r.P99JCTSec)},
			tile{"average wait", timeText(r.AvgWaitSec), "longest queue " + count(r.LongestQueue)})
	}
	useful := ""
	if r.DeviceSec > 0 {
		useful = "useful " + percent(r.UsefulDeviceSec/r.DeviceSec)
	}
	return append(out, tile{"utilization", percent(r.Utilization), useful},
		tile{"preemptions", count(r.Preemptions), count(r.Restarts) + " restarts"})
}

func compareTable(runs []Run) (head []string, table []pageRow) {
	rows := make([]Row, len(runs))
	for i := range runs {
		rows[i] = runs[i].Row
	}
	columns := compareColumns(rows)
	for _, c := range columns {
		head = append(head, c.head)
	}
	for i := range rows {
		row := pageRow{Color: i % palette, Name: rows[i].Result.Strategy, Judgment: "even"}
		for _, c := range columns {
			row.Cells = append(row.Cells, c.cell(&rows[i]))
			switch cellStyle(c, rows, i) {
			case terminal.Green:
				row.Judgment = "better"
			case terminal.Red:
				row.Judgment = "worse"
			}
		}
		table = append(table, row)
	}
	return head, table
}

func pageCharts(runs []Run) ([]pageChart, error) {
	var legend []legendItem
	for i := range runs {
		if len(runs) > 1 {
			legend = append(legend, legendItem{i % palette, runs[i].Result.Strategy})
		}
	}
	var out []pageChart
	for _, c := range chartsOf(runs) {
		svg, err := c.svg()
		if err != nil {
			return nil, err
		}
		out = append(out, pageChart{c.title, c.text, c.width == wideChart, template.HTML(svg), legend})
	}
	return out, nil
}

// chartsOf are those for which the runs have something to draw.
func chartsOf(runs []Run) (all []chart) {
	for _, c := range []struct {
		make func([]Run) (chart, bool)
		text string
	}{
		{cdfChart, "Part of the finished jobs that were done within this time after they were submitted (logarithmic)."},
		{shareChart, "Part of the devices that was granted to jobs."},
		{queueChart, "Jobs that waited for devices."},
	} {
		if drawing, ok := c.make(runs); ok {
			drawing.text = c.text
			all = append(all, drawing)
		}
	}
	return all
}

func (p Page) run(i int) pageRun {
	r, v := &p.Runs[i].Result, &p.Runs[i].View
	out := pageRun{Name: r.Strategy, Notes: r.Notes, Open: i == 0}
	for _, f := range facts(r) {
		out.Facts = append(out.Facts, tile{Name: f.name, Value: f.value})
	}
	svg, lanesLeftOut := ganttSVG(v.Spans, p.Lanes)
	out.Gantt = template.HTML(svg)
	out.GanttText = "A colour per job; point at a bar to read what it is. Pale bars are starting, saving or restoring; outlined ones are work that was lost."
	if left := v.LeftOut; left.Spans > 0 {
		out.GanttText += fmt.Sprintf(" Of %s bars the %s longest are shown; the others are %s or shorter, together %s of the time that all bars take.",
			count(left.Spans+int64(len(v.Spans))), count(int64(len(v.Spans))), timeText(left.Longest.Seconds()), percent(left.Part))
	}
	if lanesLeftOut > 0 {
		out.GanttText += fmt.Sprintf(" %s more rows are not shown.", count(int64(lanesLeftOut)))
	}
	shown := min(len(v.Jobs), pageJobs)
	if left := v.JobsLeftOut + int64(len(v.Jobs)-shown); left > 0 {
		out.JobsText = fmt.Sprintf("The first %s jobs to end are listed; %s others are not.", count(int64(shown)), count(left))
	}
	start := unit.Never
	for k := range v.Jobs {
		start = min(start, v.Jobs[k].Submit)
	}
	for k := range v.Jobs[:shown] {
		out.Jobs = append(out.Jobs, jobLine(&v.Jobs[k], start))
	}
	return out
}

// kept says what became of the job's deadline: one that did not finish missed it, as muster ls says of it too.
func (j *JobRecord) kept() string {
	late := j.JCT() - j.Deadline
	switch {
	case j.Deadline == 0, j.Outcome == Unfinished && late <= 0:
		return "–"
	case j.Outcome != Finished:
		return "missed"
	case late > 0:
		return timeText(late.Seconds()) + " late"
	}
	return "kept"
}

func jobLine(j *JobRecord, start unit.Time) pageJob {
	line := pageJob{Name: j.Name, Tenant: j.Tenant, Outcome: j.Outcome.String(), Devices: j.Devices.String(),
		Submitted: timeText(j.Submit.Sub(start).Seconds()), Waited: timeText(j.Waited.Seconds()), Ran: timeText(j.Run.Seconds()),
		JCT: "–", Preemptions: count(int64(j.Preemptions)), Restarts: count(int64(j.Restarts)), FirstLoss: "–", LastLoss: "–", Deadline: j.kept()}
	if j.Outcome == Finished {
		line.JCT = timeText(j.JCT().Seconds())
	}
	if j.FirstLoss != 0 || j.LastLoss != 0 {
		line.FirstLoss, line.LastLoss = number(float64(j.FirstLoss)), number(float64(j.LastLoss))
	}
	return line
}
