package report

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
)

// PlanPage is what the page about plans of a model shows.
type PlanPage struct {
	Title  string
	Facts  []string
	Tiles  []Tile
	Tables []Table
	Step   *Timeline // of the best plan; nil where there is none
}

// Tile is a figure with its name, and a few words below.
type Tile struct{ Name, Value, Below string }

// Table is some rows under a head.
type Table struct {
	Name, Text string
	Head       []string
	Rows       [][]string
}

//go:embed plan.tmpl
var planText string

var planTemplate = styled("plan", planText)

// HTMLPlan writes the page as one file that needs nothing else.
func HTMLPlan(w io.Writer, p PlanPage) error {
	data := struct {
		PlanPage
		Drawn     template.HTML
		DrawnText string
	}{PlanPage: p}
	if p.Step != nil {
		svg, err := p.Step.inline()
		if err != nil {
			return err
		}
		data.Drawn, data.DrawnText = template.HTML(svg), p.Step.Text()
	}
	var b bytes.Buffer // so that an error leaves no half page
	if err := planTemplate.Execute(&b, data); err != nil {
		return wrapped(err)
	}
	_, err := w.Write(b.Bytes())
	return wrapped(err)
}
