package report

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"math"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/musterdl/muster/model/unit"
)

// The plots are drawn in stand-in colours that are replaced by CSS variables, so
// that one drawing serves light and dark pages.
var (
	inkColor  = color.RGBA{1, 2, 0, 255}
	gridColor = color.RGBA{1, 3, 0, 255}
)

// palette is the number of colours of lines and jobs that the page defines.
const palette = 8

func lineColor(i int) color.RGBA { return color.RGBA{1, 4, uint8(i % palette), 255} }

func bandColor(i int) color.RGBA { return color.RGBA{1, 5, uint8(i % palette), 255} }

var themed = func() *strings.Replacer {
	pairs := []string{"#010200", "var(--muted)", "#010300", "var(--grid)"}
	for i := range palette {
		pairs = append(pairs, fmt.Sprintf("#0104%02X", i), fmt.Sprintf("var(--c%d)", i))
		pairs = append(pairs, fmt.Sprintf("#0105%02X", i), fmt.Sprintf("var(--band%d)", i))
	}
	return strings.NewReplacer(pairs...)
}()

// line is one line of a chart, with a band between its extremes where the points
// stand for stretches of time.
type line struct {
	xy   plotter.XYs
	band plotter.XYs // a closed outline; may be empty
}

// chart is a picture of lines over one pair of axes.
type chart struct {
	title  string // for those who cannot see it, too
	text   string // what is drawn, in a sentence
	width  vg.Length
	lines  []line
	logX   bool
	xTicks []plot.Tick
	yTicks []plot.Tick
	yMax   float64
}

// The sizes of charts in points; the page scales them to its width.
const (
	wideChart   = vg.Length(1140)
	narrowChart = vg.Length(560)
	chartHeight = vg.Length(250)
	// chartPoints is the most points of a line over time.
	chartPoints = 300
)

// svg draws the chart; it is empty when there is nothing to draw.
func (c chart) svg() (string, error) {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color, axis.Tick.Label.Color = gridColor, gridColor, inkColor
		axis.Tick.Label.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 11}
		axis.Padding, axis.LineStyle.Width, axis.Tick.Length = 0, 1, 4
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(c.xTicks), plot.ConstantTicks(c.yTicks)
	if c.logX {
		p.X.Scale = plot.LogScale{}
	}
	p.X.Min, p.X.Max = c.xTicks[0].Value, c.xTicks[len(c.xTicks)-1].Value
	p.Y.Min, p.Y.Max = 0, c.yMax
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = gridColor, gridColor
	grid.Vertical.Width, grid.Horizontal.Width = 0.6, 0.6
	p.Add(grid)
	for i, l := range c.lines {
		if len(l.band) > 0 {
			band, err := plotter.NewPolygon(l.band)
			if err != nil {
				return "", fmt.Errorf("drawing %s: %w", c.title, err)
			}
			band.Color, band.LineStyle.Width = bandColor(i), 0
			p.Add(band)
		}
	}
	for i, l := range c.lines {
		if len(l.xy) == 0 {
			continue
		}
		drawn, err := plotter.NewLine(l.xy)
		if err != nil {
			return "", fmt.Errorf("drawing %s: %w", c.title, err)
		}
		drawn.StepStyle, drawn.LineStyle.Color, drawn.LineStyle.Width = plotter.PostStep, lineColor(i), 1.8
		if i > 0 { // told apart without colour, too
			drawn.LineStyle.Dashes = []vg.Length{vg.Length(4 + 3*(i%3)), vg.Length(1 + i%4)}
		}
		p.Add(drawn)
	}
	canvas := vgsvg.New(c.width, chartHeight)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", fmt.Errorf("drawing %s: %w", c.title, err)
	}
	return c.inline(b.String()), nil
}

var fontOfText = regexp.MustCompile(`font-family:[^"]*font-size:`)

// inline turns a stand-alone drawing into one for the page: its own root element
// without a fixed size, the page's font, the page's colours.
func (c chart) inline(svg string) string {
	start := strings.Index(svg, "<svg")
	body := svg[start+strings.IndexByte(svg[start:], '>')+1:]
	root := fmt.Sprintf(`<svg class="plot" role="img" aria-label="%s" viewBox="0 0 %g %g">`,
		html.EscapeString(c.title), c.width.Points(), chartHeight.Points())
	return root + themed.Replace(fontOfText.ReplaceAllString(body, "font-size:"))
}

// leastSec is the left end of a logarithmic axis: shorter times are drawn there.
const leastSec = 0.001

// cdfChart draws how the JCTs of the runs are distributed.
func cdfChart(runs []Run) (chart, bool) {
	c := chart{title: "Distribution of the job completion time", width: wideChart, logX: true, yMax: 1, yTicks: percentTicks()}
	low, high := math.Inf(1), 0.0
	for i := range runs {
		l := line{}
		for _, p := range runs[i].View.CDF {
			x := max(p.Sec, leastSec)
			if len(l.xy) == 0 { // the line rises from the axis
				l.xy = append(l.xy, plotter.XY{X: x, Y: 0})
			}
			l.xy = append(l.xy, plotter.XY{X: x, Y: p.Part})
			low, high = min(low, x), max(high, x)
		}
		c.lines = append(c.lines, l)
	}
	if high == 0 {
		return c, false
	}
	c.xTicks = logTimeTicks(low, high)
	for i := range c.lines {
		if n := len(c.lines[i].xy); n > 0 { // all jobs are done from there on
			c.lines[i].xy = append(c.lines[i].xy, plotter.XY{X: c.xTicks[len(c.xTicks)-1].Value, Y: 1})
		}
	}
	return c, true
}

// timeChart draws a series of each run over time since the run's first instant.
func timeChart(title string, runs []Run, series func(*View) []Point) (chart, bool) {
	c := chart{title: title, width: narrowChart}
	length, peak := 0.0, 0.0
	for i := range runs {
		l := line{}
		points := thin(series(&runs[i].View), chartPoints)
		var back plotter.XYs
		for k, p := range points {
			x := p.At.Sub(points[0].At).Seconds()
			l.xy = append(l.xy, plotter.XY{X: x, Y: p.Mean})
			length, peak = max(length, x), max(peak, p.Mean)
			if len(runs) > 1 { // bands over each other hide more than they show
				continue
			}
			peak = max(peak, p.Max)
			if k > 0 {
				last := points[k-1]
				l.band = append(l.band, plotter.XY{X: x, Y: last.Max})
				back = append(back, plotter.XY{X: x, Y: last.Min})
			}
			l.band = append(l.band, plotter.XY{X: x, Y: p.Max})
			back = append(back, plotter.XY{X: x, Y: p.Min})
		}
		for k := len(back) - 1; k >= 0; k-- {
			l.band = append(l.band, back[k])
		}
		c.lines = append(c.lines, l)
	}
	if length == 0 {
		return c, false
	}
	c.xTicks = timeTicks(length)
	c.yTicks = countTicks(peak)
	c.yMax = c.yTicks[len(c.yTicks)-1].Value
	return c, true
}

// shareChart draws the granted part of the devices over time.
func shareChart(runs []Run) (chart, bool) {
	c, ok := timeChart("Utilization over time", runs, func(v *View) []Point { return v.Share })
	c.yTicks, c.yMax = percentTicks(), 1
	return c, ok
}

// queueChart draws the number of waiting jobs over time.
func queueChart(runs []Run) (chart, bool) {
	return timeChart("Queue length over time", runs, func(v *View) []Point { return v.Queue })
}

func percentTicks() []plot.Tick {
	var ticks []plot.Tick
	for i := 0; i <= 4; i++ {
		ticks = append(ticks, plot.Tick{Value: float64(i) / 4, Label: fmt.Sprintf("%d%%", i*25)})
	}
	return ticks
}

// countTicks are round numbers from 0 to most or a little beyond.
func countTicks(most float64) []plot.Tick {
	if !(most > 0 && most <= 1e15) { // also what is no number at all
		most = 1
	}
	step := 1.0
	for k := 0; step*5 < most; k++ {
		step *= []float64{2, 2.5, 2}[k%3]
	}
	var ticks []plot.Tick
	for i := 0.0; i <= math.Ceil(most/step); i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: count(int64(i * step))})
	}
	return ticks
}

// roundTimes are the distances between ticks that a person reads at a glance.
var roundTimes = []unit.Duration{unit.Millisecond, 10 * unit.Millisecond, 100 * unit.Millisecond,
	unit.Second, 5 * unit.Second, 10 * unit.Second, 30 * unit.Second,
	unit.Minute, 5 * unit.Minute, 10 * unit.Minute, 30 * unit.Minute,
	unit.Hour, 3 * unit.Hour, 6 * unit.Hour, 12 * unit.Hour,
	unit.Day, 2 * unit.Day, 7 * unit.Day, 14 * unit.Day, 28 * unit.Day, 56 * unit.Day, 112 * unit.Day}

// timeTicks are round instants from 0, at most nine, and an unlabelled mark at
// the end. The arithmetic is in floating point because the end may be close to
// the last instant there is, where integers would wrap around.
func timeTicks(length float64) []plot.Tick {
	step := roundTimes[len(roundTimes)-1].Seconds()
	for _, r := range roundTimes {
		if length/r.Seconds() <= 8 {
			step = r.Seconds()
			break
		}
	}
	for length/step > 8 {
		step *= 2
	}
	var ticks []plot.Tick
	for i := 0; float64(i)*step < length; i++ {
		at := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: at, Label: tickLabel(unit.Seconds(at))})
	}
	return append(ticks, plot.Tick{Value: length})
}

func tickLabel(at unit.Duration) string {
	if at%unit.Day == 0 && at > 0 {
		return fmt.Sprintf("%dd", at/unit.Day)
	}
	if at == 0 {
		return "0"
	}
	return at.String()
}

// logTimeTicks are the round times around low..high on a logarithmic axis.
func logTimeTicks(low, high float64) []plot.Tick {
	marks := []unit.Duration{unit.Millisecond, 10 * unit.Millisecond, 100 * unit.Millisecond, unit.Second,
		10 * unit.Second, unit.Minute, 10 * unit.Minute, unit.Hour, 6 * unit.Hour, unit.Day, 7 * unit.Day, 30 * unit.Day,
		100 * unit.Day, 365 * unit.Day, 3650 * unit.Day, 36500 * unit.Day, 365000 * unit.Day}
	from, to := 0, 1
	for i, m := range marks {
		if m.Seconds() <= low {
			from = i
		}
		if m.Seconds() <= high {
			to = min(i+1, len(marks)-1)
		}
	}
	var ticks []plot.Tick
	for _, m := range marks[min(from, to-1) : to+1] {
		ticks = append(ticks, plot.Tick{Value: m.Seconds(), Label: tickLabel(m)})
	}
	return ticks
}
