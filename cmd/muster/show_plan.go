package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/trainer/progress"
)

// showPlan shows by which plan a job runs, and writes the page of it where one is asked for.
func showPlan(cmd *cobra.Command, l *live, job, html string) error {
	p, err := l.client().Plan(cmd.Context(), job)
	if err != nil {
		return err
	}
	if html != "" {
		if err := toFile(html, func(w io.Writer) error { return report.HTMLPlan(w, planPage(&p)) }); err != nil {
			return err
		}
	}
	return l.show(cmd.OutOrStdout(), p, func(w io.Writer, o view.TextOptions) error { return view.WritePlan(w, &p, o) })
}

// planPage is a page with what is predicted of a job's plan above what was measured, and its menu.
func planPage(p *view.Plan) report.PlanPage {
	span := func(sec float64) string { return unit.Seconds(sec).String() }
	page := report.PlanPage{Title: "The plan of " + p.Job, Facts: []string{fmt.Sprintf("attempt %d", p.Attempt)}}
	if p.Schedule == "" {
		page.Facts = append(page.Facts, p.Words)
	} else {
		page.Tiles = append(page.Tiles, report.Tile{Name: "step", Value: span(p.IterationSec), Below: p.Schedule + ", as predicted"})
	}
	if p.MeasuredSec > 0 {
		page.Tiles = append(page.Tiles, report.Tile{Name: "passes", Value: span(p.MeasuredSec), Below: fmt.Sprintf("of step %d, as measured", p.Measured.Step)})
	}
	if len(p.Menu) > 0 {
		menu := report.Table{Name: "The menu", Text: "The plans among which the job's size and devices choose.", Head: []string{"plan", "device", "workers", "nodes", "step", ""}}
		for _, o := range p.Menu {
			runs := ""
			if o.Chosen {
				runs = "runs"
			}
			menu.Rows = append(menu.Rows, []string{o.Schedule, o.Model, fmt.Sprint(o.Workers), fmt.Sprint(o.Nodes), span(o.StepSec), runs})
		}
		page.Tables = append(page.Tables, menu)
	}
	if len(p.Predicted) > 0 {
		page.Step = bothTimelines(p)
	}
	return page
}

// bothTimelines draws the predicted ranks above the measured ones, over the same time.
func bothTimelines(p *view.Plan) *report.Timeline {
	t := &report.Timeline{Title: "A step of " + p.Schedule}
	for _, k := range passKinds {
		t.Kinds = append(t.Kinds, k.name)
	}
	add := func(words string, lines [][]progress.Span) {
		for r, line := range lines {
			row := report.TimelineRow{Name: fmt.Sprint(words, " ", r)}
			for _, s := range line {
				for k := range passKinds {
					if strings.Contains(s.Op, passKinds[k].letter) && s.EndUs >= s.StartUs && s.StartUs >= 0 {
						row.Stretches = append(row.Stretches, report.Stretch{From: unit.Time(s.StartUs), To: unit.Time(s.EndUs), Kind: k})
						break
					}
				}
			}
			t.Rows = append(t.Rows, row)
		}
	}
	add("predicted", p.Predicted)
	if p.Measured != nil {
		add("measured", p.Measured.Timeline)
	}
	return t
}
