package scenario

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/musterdl/muster/run/report/terminal"
	"github.com/musterdl/muster/run/simulated"
)

// The survey's record of what devices are kept busy.
const (
	recordedLow  = 0.25
	recordedHigh = 0.50
)

// Write prints a study for people; colour marks the verdicts.
func (s *Study) Write(w io.Writer, colour bool) error {
	d := &s.Rows[0].Days[0]
	origin := "published data"
	if !d.Real {
		origin = "some of it generated: published data is absent"
	}
	load, factor, jobs := span(s, func(d *Day) float64 { return d.Load }), span(s, func(d *Day) float64 { return d.Factor }), span(s, func(d *Day) float64 { return float64(d.Jobs) })
	fmt.Fprintf(w, "%s; requests: %s; %s\n%s jobs on 133 x 8 devices, offered load of the whole mix %s (target %.2f), arrival factor %s, seeds 1 to %d\n\n",
		d.Trace, d.Requests, origin, jobs("%.0f"), load("%.3f"), Load, factor("%.3f"), s.Seeds)
	if s.Prices == (simulated.Prices{}) {
		fmt.Fprint(w, "nothing costs anything but what jobs declare of their checkpoints\n\n")
	}
	if s.Effects != nil {
		return s.writeEffects(w)
	}
	for _, part := range [][]Metric{Metrics[:devicesPart], Metrics[devicesPart:]} {
		s.table(w, part)
	}
	if s.Seeds < 2 {
		fmt.Fprint(w, "one seed: nothing is known of the spread\n\n")
	} else {
		fmt.Fprint(w, "each: mean over the seeds, +- half its 95 % interval (Student)\n\n")
	}
	duty, own := span(s, func(d *Day) float64 { return 100 * d.WorkDuty }), span(s, func(d *Day) float64 { return 100 * d.OwnDuty })
	fmt.Fprintf(w, "by device time the work at hand keeps %s %% busy of what it holds, the day's own work %s %%\n\n", duty("%.0f"), own("%.0f"))
	s.writeVerdicts(w, colour)
	s.writeNulls(w)
	s.writeWindow(w)
	seen := map[string]bool{}
	for i := range s.Rows {
		if g, err := find(s.Rows[i].Goal); err == nil && g.note != "" && !seen[g.name] {
			seen[g.name] = true
			fmt.Fprintf(w, "%s: %s\n", g.name, g.note)
		}
	}
	return nil
}

// span says from where to where a figure of the workload goes over the seeds.
func span(s *Study, of func(*Day) float64) func(format string) string {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range s.Rows[0].Days {
		x := of(&s.Rows[0].Days[i])
		low, high = min(low, x), max(high, x)
	}
	return func(format string) string {
		a, b := fmt.Sprintf(format, low), fmt.Sprintf(format, high)
		if a == b {
			return a
		}
		return a + " to " + b
	}
}

// figure is an interval in the unit that is shown.
func (m *Metric) figure(i Interval) string {
	if !i.Known() {
		return fmt.Sprintf("%.*f", m.digits, i.Point*m.scale)
	}
	return fmt.Sprintf("%.*f +-%.*f", m.digits, i.Point*m.scale, m.digits, (i.High-i.Low)/2*m.scale)
}

func (s *Study) table(w io.Writer, metrics []Metric) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, m := range metrics {
		fmt.Fprintf(t, "\t%s", m.Name)
	}
	fmt.Fprintln(t)
	for i := range s.Rows {
		name := s.Rows[i].Name
		if s.goals() > 1 {
			name = s.Rows[i].Goal
		}
		fmt.Fprint(t, name)
		for k := range metrics {
			fmt.Fprintf(t, "\t%s", metrics[k].figure(s.Means[metrics[k].Key][i]))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	fmt.Fprintln(w)
}

// goals counts those of a study.
func (s *Study) goals() int {
	seen := map[string]bool{}
	for i := range s.Rows {
		seen[s.Rows[i].Goal] = true
	}
	return len(seen)
}

func (s *Study) writeVerdicts(w io.Writer, colour bool) {
	if len(s.Verdicts) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LEFT OUT\tITS METRIC\tWITHOUT - FULL\t95 % INTERVAL\tVERDICT")
	for _, v := range s.Verdicts {
		m, d, says := metric(v.Metric), v.Difference, v.Says
		style := map[string]terminal.Style{hurts: terminal.Green, helps: terminal.Red}[says]
		says = terminal.Options{Color: colour}.Paint(cmp.Or(style, terminal.Yellow), says)
		within := "unknown"
		if d.Known() {
			within = fmt.Sprintf("%+.*f to %+.*f", m.digits, d.Low*m.scale, m.digits, d.High*m.scale)
		}
		fmt.Fprintf(t, "%s\t%s\t%+.*f\t%s\t%s\n", v.Step, m.Name, m.digits, d.Point*m.scale, within, says)
	}
	t.Flush()
	fmt.Fprintln(w)
}

// writeNulls puts the nulls' busy share beside what the survey recorded.
func (s *Study) writeNulls(w io.Writer) {
	for i := range s.Rows {
		if s.Rows[i].Name != "the nulls" {
			continue
		}
		share := s.Means["busy_share"][i].Point
		says := "within it"
		if share < recordedLow || share >= recordedHigh {
			says = "outside it"
		}
		fmt.Fprintf(w, "the nulls keep %.1f %% of the device time busy; the survey records 25 to below 50 %%: %s\n", share*100, says)
	}
}

// writeWindow prints the ten minutes at request scale beside the job scale.
func (s *Study) writeWindow(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	shown := false
	for i := range s.Rows {
		d := &s.Rows[i].Days[0]
		if o := d.Window; o != nil {
			if !shown {
				fmt.Fprintf(w, "\nrequests of service 0 (%s, within %.0f ms) in its busiest 10 minutes, seed 1: %.0f per s, variation %.2f\n", o.Service, o.SLOMs, o.RatePerSec, o.CV)
				fmt.Fprintln(t, "\tREPLICAS\tDEVICE %\tBATCH\tIN TIME %\tUNANSWERED %\tMEAN MS\tP99 MS\tJOB SCALE %")
			}
			shown = true
			name := s.Rows[i].Name
			if s.goals() > 1 {
				name = s.Rows[i].Goal
			}
			fmt.Fprintf(t, "%s\t%.2f\t%.1f\t%d\t%.2f\t%.2f\t%.1f\t%.1f\t%.2f\n", name, o.Replicas, o.Share, o.Batch,
				o.Attainment*100, o.Unanswered*100, o.MeanMs, o.P99Ms, o.JobScale*100)
		}
	}
	t.Flush()
	if !shown {
		fmt.Fprintln(w, "no window at request scale: iGniter's profile of the models is absent")
	}
}

// writeEffects prints the main effects as a table and those of two steps that are not 0.
func (s *Study) writeEffects(w io.Writer) error {
	fmt.Fprint(w, "2^(6-2) factorial: what a step at work does, over all settings of the others; * the 95 % interval is off 0\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "STEP")
	for _, m := range Metrics {
		fmt.Fprintf(t, "\t%s", m.Name)
	}
	fmt.Fprintln(t)
	sure := func(i Interval) bool { return i.Known() && (i.Low > 0 || i.High < 0) }
	main := map[string]string{}
	var order, pairs []string
	for _, e := range s.Effects {
		m := metric(e.Metric)
		if strings.Contains(e.Of[0], " x ") {
			if sure(e.Effect) {
				pairs = append(pairs, fmt.Sprintf("%s\t%s\t%s", m.Name, strings.Join(e.Of, " or "), m.signed(e.Effect)))
			}
			continue
		}
		if main[e.Of[0]] == "" {
			order = append(order, e.Of[0])
		}
		star := ""
		if sure(e.Effect) {
			star = "*"
		}
		main[e.Of[0]] += "\t" + fmt.Sprintf("%+.*f", m.digits, e.Effect.Point*m.scale) + star
	}
	for _, step := range order {
		fmt.Fprintf(t, "%s%s\n", step, main[step])
	}
	t.Flush()
	fmt.Fprintf(w, "\neffects of two steps whose interval is off 0 (of %d; chance alone gives one in twenty); groups cannot be told apart\n", 7*len(Metrics))
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range pairs {
		fmt.Fprintln(t, p)
	}
	return t.Flush()
}

// signed is figure with its sign.
func (m *Metric) signed(i Interval) string {
	return fmt.Sprintf("%+.*f +-%.*f", m.digits, i.Point*m.scale, m.digits, (i.High-i.Low)/2*m.scale)
}
