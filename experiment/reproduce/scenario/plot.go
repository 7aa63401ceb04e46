package scenario

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// bar is one line of the plot: a ratio with its interval.
type bar struct {
	name string
	Interval
}

// bars are the verdicts as ratios; of a factorial, the main effects on the metrics of
// each step's own, as the ratio of the mean without the step to the mean with it.
func (s *Study) bars() (list []bar) {
	for _, v := range s.Verdicts {
		list = append(list, bar{v.Step + ": " + metric(v.Metric).Name, v.Worse})
	}
	for _, e := range s.Effects {
		for _, key := range own[e.Of[0]] {
			if key != e.Metric {
				continue
			}
			mean := 0.0
			for _, i := range s.Means[key] {
				mean += i.Point / float64(len(s.Rows))
			}
			ratio := func(x float64) float64 { // of effects as large as the mean nothing is left
				r := (mean - x/2) / (mean + x/2)
				if metric(key).More {
					r = 1 / r
				}
				return r
			}
			a, b := ratio(e.Effect.Low), ratio(e.Effect.High)
			list = append(list, bar{e.Of[0] + ": " + metric(key).Name, Interval{Point: ratio(e.Effect.Point), Low: min(a, b), High: max(a, b), N: e.Effect.N}})
		}
	}
	return list
}

// The range that is drawn; what lies outside is cut.
const (
	leastWorse = 0.25
	mostWorse  = 100
)

// Plot draws, for each step and each metric of its own, how many times worse the metric
// is where the step is left out, with the interval.
func (s *Study) Plot(w io.Writer) error {
	all := s.bars()
	if len(all) == 0 {
		return errors.New("nothing to plot: a plot needs --without, --factorial or the default study")
	}
	return drawBars(w, "How many times worse without the step ("+strings.TrimSpace(s.Rows[0].Goal)+")", all)
}

// drawBars draws ratios with their intervals, a line each.
func drawBars(w io.Writer, title string, all []bar) error {
	p := plot.New()
	p.Title.Text = title
	p.X.Scale, p.X.Min, p.X.Max = plot.LogScale{}, leastWorse, mostWorse
	var ticks []plot.Tick
	for _, x := range []float64{.25, .5, 1, 2, 5, 10, 20, 50, 100} {
		ticks = append(ticks, plot.Tick{Value: x, Label: fmt.Sprint(x)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.Y.Min, p.Y.Max = -0.5, float64(len(all))-0.5
	var names []plot.Tick
	one, err := plotter.NewLine(plotter.XYs{{X: 1, Y: p.Y.Min}, {X: 1, Y: p.Y.Max}})
	if err != nil {
		return err
	}
	one.Color = color.Gray{180}
	p.Add(one)
	clamp := func(x float64) float64 { return min(mostWorse, max(leastWorse, x)) }
	for i, b := range all {
		y := float64(len(all) - 1 - i)
		names = append(names, plot.Tick{Value: y, Label: b.name + " "})
		if math.IsNaN(b.Point) || math.IsInf(b.Point, 0) {
			continue // 0 of 0, or nothing of something: no ratio
		}
		if b.Known() {
			line, err := plotter.NewLine(plotter.XYs{{X: clamp(b.Low), Y: y}, {X: clamp(b.High), Y: y}})
			if err != nil {
				return err
			}
			p.Add(line)
		}
		dot, err := plotter.NewScatter(plotter.XYs{{X: clamp(b.Point), Y: y}})
		if err != nil {
			return err
		}
		dot.GlyphStyle = draw.GlyphStyle{Color: color.Black, Radius: 3, Shape: draw.CircleGlyph{}}
		p.Add(dot)
	}
	return Draw(w, Panel{p, names})
}

// Panel is a plot of a page. Where names are given it has a line for each.
type Panel struct {
	*plot.Plot
	Names []plot.Tick
}

// height is what a panel takes of a page.
func (p *Panel) height() vg.Length {
	if p.Names == nil {
		return 300
	}
	return vg.Length(100 + 26*len(p.Names))
}

// Draw writes plots below each other, as SVG.
func Draw(w io.Writer, panels ...Panel) error {
	all := vg.Length(0)
	for i := range panels {
		all += panels[i].height()
	}
	canvas := vgsvg.New(680, all)
	page := draw.New(canvas)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	top := vg.Length(0)
	for i := range panels {
		p := &panels[i]
		if p.Names != nil {
			p.Y.Tick.Marker = plot.ConstantTicks(p.Names)
		}
		for _, axis := range []*plot.Axis{&p.X, &p.Y} {
			axis.Tick.Label.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 11}
		}
		end := top + p.height()
		p.Draw(draw.Crop(page, 16, -24, all-end+8, -top-8)) // a browser's letters are wider than ours
		top = end
	}
	_, err := canvas.WriteTo(w)
	return err
}
