package which

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/musterdl/muster/experiment/reproduce"
	"github.com/musterdl/muster/experiment/reproduce/scenario"
)

// figure is one of those that are shown of every choice on every history.
type figure struct {
	Title string
	Of    func(r *reproduce.ComparedRow) string
	Says  string
	never bool // where one job in three never saves
}

// figures are shown in this order.
var figures = []figure{
	{"MEAN JCT OVER SRSF", ratio, "mean completion time over that of `srsf+oracle`, with its 95 % interval, over seeds or over the weeks of the trace", false},
	{"P99 SLOWDOWN", func(r *reproduce.ComparedRow) string { return number(r.P99Slowdown) }, "99 of 100 jobs took at most so many times as long as alone", false},
	{"WAIT OF LARGE GANGS, H", gangs, "of jobs of 16 devices and more: hours in the mean, and the longest", false},
	{"PREEMPTIONS PER 100 JOBS", preempted, "runs that had to save and give way", false},
	{"MEAN JCT OVER SRSF, ONE JOB IN THREE NEVER SAVES", ratio, "the same jobs in each row never save, those of `srsf+oracle` too: who stops one of them loses all that it did", true},
	{"PREEMPTIONS PER 100 JOBS, ONE JOB IN THREE NEVER SAVES", preempted, "runs that had to give way, whether they could save or not", true},
}

func ratio(r *reproduce.ComparedRow) string {
	if !r.Ratio.Known() {
		return fmt.Sprintf("%.3f", r.Ratio.Point)
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", r.Ratio.Point, r.Ratio.Low, r.Ratio.High)
}

func gangs(r *reproduce.ComparedRow) string {
	if r.LargeGangs == 0 {
		return "–"
	}
	return fmt.Sprintf("%s, %s", number(r.AvgGangWaitSec/3600), number(r.LongestGangWaitSec/3600))
}

func preempted(r *reproduce.ComparedRow) string { return number(preemptions(r)) }

// preemptions are those of a hundred jobs, over all draws.
func preemptions(r *reproduce.ComparedRow) float64 {
	all, finished := 0., 0.
	for i := range r.BySeed {
		all += float64(r.BySeed[i].Preemptions)
		finished += float64(r.BySeed[i].Finished)
	}
	return 100 * all / max(1, finished)
}

// number has three digits, as far as they say something.
func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// compared are the histories whose data was there.
func (s *Study) compared() []History {
	return slices.DeleteFunc(slices.Clone(s.Histories), func(h History) bool { return h.Compared == nil })
}

// table is one figure of every choice on every history, the names of the columns first.
func (s *Study) table(f *figure) [][]string {
	head := []string{f.Title, "KNOWS"}
	histories := s.compared()
	for _, h := range histories {
		head = append(head, strings.ToUpper(h.Name))
	}
	rows := [][]string{head}
	for i, c := range s.Choices {
		row := []string{c.Strategy, c.Knows}
		for _, h := range histories {
			of := h.Compared
			if f.never {
				of = h.Never
			}
			row = append(row, f.Of(&of.Rows[i]))
		}
		rows = append(rows, row)
	}
	return rows
}

// Write prints a table for each figure; there is nothing to colour.
func (s *Study) Write(w io.Writer, _ bool) error {
	for _, h := range s.Histories {
		if h.Compared == nil {
			fmt.Fprintf(w, "%s: left out, %s\n", h.Name, h.Absent)
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", h.Name, told(h.Compared))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range figures {
		fmt.Fprintln(t)
		for _, row := range s.table(&figures[i]) {
			fmt.Fprintln(t, strings.Join(row, "\t"))
		}
	}
	return t.Flush()
}

// told is what a history is, in a line.
func told(c *reproduce.Compared) string {
	r := &c.Rows[0]
	over := fmt.Sprintf("%d jobs", r.Jobs)
	if c.Over == "seeds" {
		over = fmt.Sprintf("%d jobs in %d draws", r.Jobs, len(c.Seeds))
	}
	return fmt.Sprintf("%s on %s, offered load %.0f %%, mean duration %.0f s", over, c.Cluster, 100*r.OfferedLoad, r.MeanDurationSec)
}

// mostDrawn is where the plot ends: whoever takes longer stands at its edge.
const mostDrawn = 3

// Plot draws, for each choice, the mean completion time over that of who knows all times, one mark for each history.
func (s *Study) Plot(w io.Writer) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Mean JCT over SRSF that knows all times (beyond %d at the edge)", mostDrawn)
	p.X.Min, p.X.Max = .95, mostDrawn
	p.Y.Min, p.Y.Max = -0.5, float64(len(s.Choices))-0.5
	p.X.Scale, p.Legend.Top = plot.LogScale{}, true
	p.X.Tick.Marker = plot.ConstantTicks{{Value: 1, Label: "1"}, {Value: 1.05, Label: "1.05"}, {Value: 1.2, Label: "1.2"}, {Value: 1.5, Label: "1.5"}, {Value: 2, Label: "2"}, {Value: mostDrawn, Label: fmt.Sprint(mostDrawn)}}
	glyphs := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}}
	var names []plot.Tick
	for i, c := range s.Choices {
		names = append(names, plot.Tick{Value: float64(len(s.Choices) - 1 - i), Label: c.Strategy + " "})
	}
	for k, h := range s.compared() {
		var marks plotter.XYs
		for i := range s.Choices {
			marks = append(marks, plotter.XY{X: math.Min(mostDrawn, h.Compared.Rows[i].Ratio.Point), Y: names[i].Value})
		}
		dots, err := plotter.NewScatter(marks)
		if err != nil {
			return err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: color.Gray{uint8(50 * k)}, Radius: 4, Shape: glyphs[k%len(glyphs)]}
		p.Add(dots)
		p.Legend.Add(h.Name, dots)
	}
	return scenario.Draw(w, scenario.Panel{Plot: p, Names: names})
}
