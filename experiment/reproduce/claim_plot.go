package reproduce

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/musterdl/muster/catalogue"
)

// Plot draws some metrics of a claim as curves.
type Plot struct {
	Name string    `yaml:"plot"`
	X    string    `yaml:"x"`  // what varies
	Y    string    `yaml:"y"`  // what the metrics are
	At   []float64 `yaml:"at"` // the values of X
	// Curves name, by label, the figure of the metric at each value; an empty one leaves
	// the value out.
	Curves map[string][]string `yaml:"curves"`
}

// check says what is wrong with a plot of these metrics.
func (p *Plot) check(metrics []Metric) error {
	if p.Name == "" || len(p.At) == 0 || len(p.Curves) == 0 {
		return fmt.Errorf("expected plot, at and curves")
	}
	for label, figures := range p.Curves {
		if len(figures) != len(p.At) {
			return fmt.Errorf("%s has %d figures at %d values", label, len(figures), len(p.At))
		}
		for _, figure := range figures {
			if figure != "" && !slices.ContainsFunc(metrics, func(m Metric) bool { return m.Figure == figure }) {
				return fmt.Errorf("%s: %q is the figure of no metric", label, figure)
			}
		}
	}
	return nil
}

// Draw writes a plot of a claim as SVG: ours as lines, what was published as points.
// Metrics without a finding, and those published as text, are left out.
func (c *Claim) Draw(w io.Writer, p *Plot, found []catalogue.Finding) error {
	d := plot.New()
	d.Title.Text, d.X.Label.Text, d.Y.Label.Text = c.System, p.X, p.Y+" (points: published)"
	d.Y.Min, d.Legend.Top, d.Legend.Left = 0, true, true
	for i, label := range slices.Sorted(maps.Keys(p.Curves)) {
		ours, published := c.curve(p, label, found)
		line, err := plotter.NewLine(ours)
		if err != nil {
			return fmt.Errorf("drawing %s of %s: %w", label, p.Name, err)
		}
		points, err := plotter.NewScatter(published)
		if err != nil {
			return fmt.Errorf("drawing %s of %s: %w", label, p.Name, err)
		}
		line.Color, points.Color = plotutil.Color(i), plotutil.Color(i)
		line.Dashes, points.Shape = plotutil.Dashes(i), plotutil.Shape(i)
		d.Add(line, points)
		d.Legend.Add(label, line, points)
	}
	canvas := vgsvg.New(16*vg.Centimeter, 10*vg.Centimeter)
	d.Draw(draw.New(canvas))
	if _, err := canvas.WriteTo(w); err != nil {
		return fmt.Errorf("drawing %s: %w", p.Name, err)
	}
	return nil
}

// curve finds the points of a curve among what was found.
func (c *Claim) curve(p *Plot, label string, found []catalogue.Finding) (ours, published plotter.XYs) {
	for i, figure := range p.Curves[label] {
		at := slices.IndexFunc(c.Metrics, func(m Metric) bool { return figure != "" && m.Figure == figure })
		if at < 0 {
			continue
		}
		m := &c.Metrics[at]
		k := slices.IndexFunc(found, func(f catalogue.Finding) bool { return f.Metric == m.Metric && f.Measured != nil })
		if k < 0 {
			continue
		}
		ours = append(ours, plotter.XY{X: p.At[i], Y: *found[k].Measured})
		if y, err := strconv.ParseFloat(m.Published, 64); err == nil {
			published = append(published, plotter.XY{X: p.At[i], Y: y})
		}
	}
	return ours, published
}
