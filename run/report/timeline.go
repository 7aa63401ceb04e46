package report

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/musterdl/muster/model/unit"
)

// Timeline is a picture of what rows do over time, a colour for each kind of work.
type Timeline struct {
	Title string
	Kinds []string // by what a stretch says of its kind
	Rows  []TimelineRow
}

// TimelineRow is what one does, one thing after the other.
type TimelineRow struct {
	Name      string
	Stretches []Stretch
}

// Stretch is some work of a kind.
type Stretch struct {
	From, To unit.Time
	Kind     int
}

// The sizes of a timeline in points.
const (
	timelineWidth  = wideChart
	timelineLabels = vg.Length(70)
	timelineFoot   = vg.Length(44)
	timelineRows   = 64  // more are left out evenly
	narrowest      = 1.2 // stretches that would be narrower are drawn together
)

// standalone are the colours of pictures that no page gives any.
var standalone = []color.Color{
	color.RGBA{0x25, 0x63, 0xc9, 255}, color.RGBA{0xd9, 0x68, 0x0f, 255}, color.RGBA{0x14, 0x86, 0x6d, 255}, color.RGBA{0xa6, 0x37, 0x9a, 255},
	color.RGBA{0x8a, 0x6d, 0x00, 255}, color.RGBA{0xc2, 0x33, 0x4d, 255}, color.RGBA{0x3d, 0x8f, 0xb8, 255}, color.RGBA{0x6b, 0x5b, 0xd2, 255},
}

// every is the distance between rows that are drawn.
func (t *Timeline) every() int { return max(1, (len(t.Rows)+timelineRows-1)/timelineRows) }

// Text says what is not drawn.
func (t *Timeline) Text() string {
	text := "A row for each rank, a colour for each kind of pass; gaps are idle. Passes that would be narrower than a line are drawn together, in the colour of what takes most of them."
	if n := t.every(); n > 1 {
		text += fmt.Sprintf(" One rank of %d is shown.", n)
	}
	return text
}

func (t *Timeline) height() vg.Length {
	shown := vg.Length((len(t.Rows) + t.every() - 1) / t.every())
	return shown*t.row() + timelineFoot
}

func (t *Timeline) row() vg.Length {
	return min(max(720/vg.Length(max(1, min(len(t.Rows), timelineRows))), 9), 26)
}

// SVG writes the picture by itself.
func (t *Timeline) SVG(w io.Writer) error {
	canvas := vgsvg.New(timelineWidth, t.height())
	t.draw(canvas, func(i int) color.Color { return standalone[i%palette] }, color.Gray{90}, color.Gray{210})
	_, err := canvas.WriteTo(w)
	return wrapped(err)
}

// PNG writes the picture by itself.
func (t *Timeline) PNG(w io.Writer) error {
	canvas := vgimg.PngCanvas{Canvas: vgimg.New(timelineWidth, t.height())}
	t.draw(canvas, func(i int) color.Color { return standalone[i%palette] }, color.Gray{90}, color.Gray{210})
	_, err := canvas.WriteTo(w)
	return wrapped(err)
}

// inline is the picture for a page, in the colours of that.
func (t *Timeline) inline() (string, error) {
	canvas := vgsvg.New(timelineWidth, t.height())
	t.draw(canvas, func(i int) color.Color { return lineColor(i) }, inkColor, gridColor)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("drawing %s: %w", t.Title, err)
	}
	svg := b.String()
	start := strings.Index(svg, "<svg")
	body := svg[start+strings.IndexByte(svg[start:], '>')+1:]
	root := fmt.Sprintf(`<svg class="plot" role="img" aria-label="%s" viewBox="0 0 %g %g">`, html.EscapeString(t.Title), timelineWidth.Points(), t.height().Points())
	return root + themed.Replace(fontOfText.ReplaceAllString(body, "font-size:")), nil
}

// draw puts the picture on a canvas, whose origin is at the lower left.
func (t *Timeline) draw(on vg.Canvas, colors func(int) color.Color, ink, grid color.Color) {
	c := draw.NewCanvas(on, timelineWidth, t.height())
	end := unit.Time(1)
	for _, row := range t.Rows {
		for _, s := range row.Stretches {
			end = max(end, s.To)
		}
	}
	scale := float64(timelineWidth-timelineLabels-10) / float64(end)
	x := func(at unit.Time) vg.Length { return timelineLabels + vg.Length(float64(at)*scale) }
	style := draw.TextStyle{Color: ink, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: 11}, Handler: plot.DefaultTextHandler}
	for _, tick := range timeTicks(end.Sub(0).Seconds()) {
		at := x(unit.Time(unit.Seconds(tick.Value)))
		c.StrokeLine2(draw.LineStyle{Color: grid, Width: 0.6}, at, timelineFoot, at, t.height())
		style.XAlign, style.YAlign = draw.XCenter, draw.YTop
		c.FillText(style, vg.Point{X: at, Y: timelineFoot - 3}, tick.Label)
	}
	paths := make([]vg.Path, len(t.Kinds))
	style.XAlign, style.YAlign = draw.XRight, draw.YCenter
	y := t.height()
	for i := 0; i < len(t.Rows); i += t.every() {
		y -= t.row()
		c.FillText(style, vg.Point{X: timelineLabels - 6, Y: y + t.row()/2}, t.Rows[i].Name)
		for _, s := range together(t.Rows[i].Stretches, unit.Duration(narrowest/scale), len(t.Kinds)) {
			box(&paths[s.Kind], x(s.From), y+t.row()/12, x(s.To), y+t.row()*11/12)
		}
	}
	style.XAlign, style.YAlign = draw.XLeft, draw.YBottom
	at := timelineLabels
	for k, path := range paths {
		if len(path) == 0 {
			continue
		}
		box(&path, at, 6, at+10, 14)
		c.FillText(style, vg.Point{X: at + 14, Y: 4}, t.Kinds[k])
		at += 30 + 6*vg.Length(len(t.Kinds[k]))
		c.SetColor(colors(k))
		c.Fill(path)
	}
}

// box adds a rectangle to a path.
func box(p *vg.Path, x0, y0, x1, y1 vg.Length) {
	p.Move(vg.Point{X: x0, Y: y0})
	p.Line(vg.Point{X: x1, Y: y0})
	p.Line(vg.Point{X: x1, Y: y1})
	p.Line(vg.Point{X: x0, Y: y1})
	p.Close()
}

// together joins stretches that are shorter than a least one with those that follow, in the
// kind that takes most of them.
func together(all []Stretch, least unit.Duration, kinds int) (joined []Stretch) {
	for i := 0; i < len(all); {
		took := make([]unit.Duration, kinds)
		one := all[i]
		for ; i < len(all) && (all[i].From == one.From || one.To.Sub(one.From) < least && all[i].From.Sub(one.To) < least); i++ {
			one.To = max(one.To, all[i].To)
			took[all[i].Kind] += all[i].To.Sub(all[i].From)
		}
		for k := range took {
			if took[k] > took[one.Kind] {
				one.Kind = k
			}
		}
		joined = append(joined, one)
	}
	return joined
}
