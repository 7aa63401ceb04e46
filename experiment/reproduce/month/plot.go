package month

import (
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/musterdl/muster/experiment/reproduce/scenario"
)

// Plot draws, for each regime, the goodput of every fixed policy as a ring and that by price as a
// dot.
func (s *Study) Plot(w io.Writer) error {
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
	return scenario.Draw(p, names, w)
}
