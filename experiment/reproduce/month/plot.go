package month

import (
	"fmt"
	"image/color"
	"io"
	"maps"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg/draw"

	"github.com/musterdl/muster/experiment/reproduce/scenario"
)

// Plot draws, for each regime, the goodput of every fixed policy as a ring and that by price as a
// dot; below, what part of the time counts on more and more devices.
func (s *Study) Plot(w io.Writer) error {
	curve, err := s.plotCurve()
	if err != nil {
		return err
	}
	p := plot.New()
	p.Title.Text = "Goodput of a month: by price (dot) and always the same (rings)"
	p.X.Min, p.X.Max = 0.5, 1
	p.Y.Min, p.Y.Max = -0.5, float64(len(Regimes))-0.5
	var names []plot.Tick
	for i, regime := range Regimes {
		y := float64(len(Regimes) - 1 - i)
		names = append(names, plot.Tick{Value: y, Label: regime.Name + " "})
		for k, r := range s.of(regime.Name) {
			dot, err := plotter.NewScatter(plotter.XYs{{X: max(p.X.Min, r.Goodput.Point), Y: y}})
			if err != nil {
				return err
			}
			dot.GlyphStyle = draw.GlyphStyle{Color: color.Gray{120}, Radius: 4, Shape: draw.RingGlyph{}}
			if k == 0 {
				dot.GlyphStyle = draw.GlyphStyle{Color: color.Black, Radius: 3, Shape: draw.CircleGlyph{}}
			}
			p.Add(dot)
		}
	}
	return scenario.Draw(w, scenario.Panel{Plot: p, Names: names}, scenario.Panel{Plot: curve})
}

// plotCurve draws effective time over devices, a line for each length of a stall.
func (s *Study) plotCurve() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "Effective time at Llama 3's rate of failures, by how long one stops everything"
	p.X.Label.Text, p.Y.Label.Text = "devices", "%"
	p.X.Scale, p.Legend.Left = plot.LogScale{}, true
	lines, ticks := map[float64]plotter.XYs{}, []plot.Tick{}
	for i, c := range s.Curve {
		lines[c.StallSec] = append(lines[c.StallSec], plotter.XY{X: float64(c.Devices), Y: 100 * c.Effective})
		if i == 0 || c.Devices != s.Curve[i-1].Devices {
			ticks = append(ticks, plot.Tick{Value: float64(c.Devices), Label: fmt.Sprint(c.Devices)})
		}
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	for i, stall := range slices.Sorted(maps.Keys(lines)) {
		line, err := plotter.NewLine(lines[stall])
		if err != nil {
			return nil, err
		}
		line.Color, line.Dashes = color.Gray{uint8(40 * i)}, plotutil.Dashes(i)
		p.Add(line)
		p.Legend.Add(fmt.Sprintf("%g s", stall), line)
	}
	return p, nil
}
