package whatif

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The two futures' lines, told apart without colour too.
var lines = [2]draw.LineStyle{
	{Color: color.RGBA{0x1f, 0x5f, 0xbf, 255}, Width: 1.8},
	{Color: color.RGBA{0xc0, 0x50, 0x10, 255}, Width: 1.8, Dashes: []vg.Length{6, 3}},
}

const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>What if</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;background:#fff;color:#222}
svg{width:100%;height:auto}pre{overflow-x:auto}</style>
<h1>What if</h1>
<p>Solid: as it is. Dashed: with the change.</p>
{{range .Charts}}<h2>{{.Title}}</h2>
{{.SVG}}
{{end}}<pre>{{.Text}}</pre>
</html>
`

var pageTemplate = template.Must(template.New("page").Parse(page))

type chart struct {
	Title string
	SVG   template.HTML
}

// WriteHTML writes an answer as a page with both futures over each other.
func WriteHTML(w io.Writer, a *Answer) error {
	var text bytes.Buffer
	if err := Write(&text, a); err != nil {
		return err
	}
	data := struct {
		Charts []chart
		Text   string
	}{Text: text.String()}
	for _, c := range []struct {
		title string
		value func(Point) float64
	}{
		{"Devices busy", func(p Point) float64 { return p.BusyDevices }},
		{"Jobs waiting", func(p Point) float64 { return p.WaitingJobs }},
	} {
		svg, err := draws(a, c.title, c.value)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", c.title, err)
		}
		data.Charts = append(data.Charts, chart{c.title, template.HTML(svg)}) // made of numbers here
	}
	return pageTemplate.Execute(w, data)
}

// draws is a chart of one value of both futures, over hours.
func draws(a *Answer, title string, value func(Point) float64) (string, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Min = "hours", 0
	p.Add(plotter.NewGrid())
	for i, s := range []*Side{&a.Base, &a.Alternative} {
		xy := make(plotter.XYs, len(s.Series))
		for k, point := range s.Series {
			xy[k] = plotter.XY{X: point.AtUs.Sub(a.FromUs).Seconds() / 3600, Y: value(point)}
		}
		if len(xy) == 0 {
			continue
		}
		l, err := plotter.NewLine(xy)
		if err != nil {
			return "", err
		}
		l.LineStyle, l.StepStyle = lines[i], plotter.PostStep
		p.Add(l)
	}
	p.Y.Max = max(p.Y.Max, 1)
	canvas := vgsvg.New(1000, 260)
	p.Draw(draw.New(canvas))
	var b strings.Builder
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", err
	}
	_, svg, _ := strings.Cut(b.String(), "<svg")
	return fmt.Sprintf(`<svg role="img" aria-label=%q`, title) + svg, nil
}
