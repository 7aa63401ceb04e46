package month

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/run/report"
)

// Study is every policy on every regime, over seeds.
type Study struct {
	Nodes   int     `json:"nodes"`
	Days    int     `json:"days"`
	Seeds   int     `json:"seeds"`
	Plan    string  `json:"plan"`
	Spares  int     `json:"spares"`
	StepSec float64 `json:"step_s"`
	Sizes   []Size  `json:"sizes"`
	Rows    []Row   `json:"rows"`
	Curve   []Stall `json:"curve"`

	Progress func(done, all int) `json:"-"`
}

// Size is a number of workers that the job may have: how fast it goes by the planner's plan for as many, against
// that for all, and the plan.
type Size struct {
	Workers int32   `json:"workers"`
	Rate    float64 `json:"rate"`
	Plan    string  `json:"plan"`
}

// Row is a policy on a regime.
type Row struct {
	Regime  string          `json:"regime"`
	Policy  string          `json:"policy"`
	Months  []Month         `json:"months"`
	Goodput report.Interval `json:"goodput"`
}

// Stall is what part of the time counts where each failure stops everything for so long: by Daly's
// model, with checkpoints as often as is best, at Llama 3's rate of failures.
type Stall struct {
	Devices   int     `json:"devices"`
	StallSec  float64 `json:"stall_s"`
	Effective float64 `json:"effective"`
}

// Run plays all.
func (s *Study) Run() error {
	g, err := New(s.Nodes)
	if err != nil {
		return err
	}
	s.Plan, s.Spares, s.StepSec = g.full().Plan.Name, g.Spares, g.full().Plan.Step.Seconds()
	for _, o := range g.job.Menu {
		s.Sizes = append(s.Sizes, Size{o.Workers, o.Rate, o.Plan.Name})
	}
	for _, r := range Regimes {
		for _, p := range policies {
			s.Rows = append(s.Rows, Row{Regime: r.Name, Policy: p.name, Months: make([]Month, s.Seeds)})
		}
	}
	if err := s.play(g); err != nil {
		return err
	}
	for i := range s.Rows {
		var all []float64
		for _, m := range s.Rows[i].Months {
			all = append(all, m.Goodput)
		}
		s.Rows[i].Goodput = report.MeanInterval(all)
	}
	s.curve(g.save)
	return nil
}

// play plays all rows on all seeds, on as many processors as there are. No month knows of another.
func (s *Study) play(g *Ground) error {
	var next, done atomic.Int32
	var lock sync.Mutex
	var group sync.WaitGroup
	wrong := make([]error, len(s.Rows)*s.Seeds)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(wrong); i = int(next.Add(1)) - 1 {
				row := &s.Rows[i/s.Seeds]
				at := slices.IndexFunc(Regimes, func(r Regime) bool { return r.Name == row.Regime })
				row.Months[i%s.Seeds], wrong[i] = g.Play(&Regimes[at], &policies[i/s.Seeds%len(policies)], s.Days, uint64(i%s.Seeds+1))
				if n := int(done.Add(1)); s.Progress != nil {
					lock.Lock()
					s.Progress(n, len(wrong))
					lock.Unlock()
				}
			}
		})
	}
	group.Wait()
	return errors.Join(wrong...)
}

// curve goes over sizes and lengths of a stall.
func (s *Study) curve(store unit.Duration) {
	for _, devices := range []int{1024, 4096, 16_384, 65_536, 100_000} {
		for _, stall := range []unit.Duration{10 * unit.Second, unit.Minute, 5 * unit.Minute, 15 * unit.Minute} {
			between := unit.Duration(float64(llama.every) * inNode / float64(devices))
			waste := reaction.Waste(reaction.Interval(store, between), store, stall, between)
			s.Curve = append(s.Curve, Stall{devices, stall.Seconds(), 1 - waste})
		}
	}
}

// of are the rows of a regime: that by price, then the others, the best first.
func (s *Study) of(regime string) []Row {
	rows := slices.DeleteFunc(slices.Clone(s.Rows), func(r Row) bool { return r.Regime != regime })
	slices.SortStableFunc(rows[1:], func(a, b Row) int { return cmp.Compare(b.Goodput.Point, a.Goodput.Point) })
	return rows
}

// within is how much less than the best fixed policy the one by price may do.
const within = 0.03

// Write prints a study for people; colour marks what is missed.
func (s *Study) Write(w io.Writer, colour bool) error {
	fmt.Fprintf(w, "%s on %d %s, %d days, %d seeds: %s, a step of %.2f s, %d spare nodes\n\n", model, s.Nodes*inNode, device, s.Days, s.Seeds, s.Plan, s.StepSec, s.Spares)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "REGIME\tFAULTS\tBY PRICE %\t\tBEST FIXED\t%\tVERDICT\tTOOK\n")
	for _, regime := range Regimes {
		rows := s.of(regime.Name)
		price, best := &rows[0], &rows[1]
		verdict := "holds"
		if price.Goodput.Point < (1-within)*best.Goodput.Point {
			if verdict = "missed"; colour {
				verdict = "\x1b[31mmissed\x1b[0m"
			}
		}
		faults := 0.
		for _, m := range price.Months {
			faults += float64(m.Faults) / float64(len(price.Months))
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%s\t%s\t%.2f\t%s\t%s\n", regime.Name, faults, 100*price.Goodput.Point, interval(price.Goodput), best.Policy, 100*best.Goodput.Point, verdict, took(price))
	}
	fmt.Fprint(t, "\nBy price what is left of a run may go on in its processes (re-cut, drop a replica);\nre-route and reshape cannot be, as a run has one of its job's sizes. Of what ends, what its others saved is what the next goes on from.\n")
	fmt.Fprint(t, "\nAll fixed policies, goodput %\n")
	fmt.Fprint(t, "REGIME")
	for _, p := range policies[1:] {
		fmt.Fprint(t, "\t", p.name)
	}
	fmt.Fprintln(t)
	for _, regime := range Regimes {
		fmt.Fprint(t, regime.Name)
		for _, p := range policies[1:] {
			for _, r := range s.of(regime.Name) {
				if r.Policy == p.name {
					fmt.Fprintf(t, "\t%.2f", 100*r.Goodput.Point)
				}
			}
		}
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "\nKernel: effective time by Daly's model at Llama 3's rate of failures, by how long one stops everything, %\nDEVICES")
	for i, c := range s.Curve {
		if i == 0 || c.Devices != s.Curve[i-1].Devices {
			if i > 0 {
				fmt.Fprintln(t)
			} else {
				for _, first := range s.Curve[:4] {
					fmt.Fprintf(t, "\t%gs", first.StallSec)
				}
				fmt.Fprintln(t)
			}
			fmt.Fprint(t, c.Devices)
		}
		fmt.Fprintf(t, "\t%.2f", 100*c.Effective)
	}
	fmt.Fprintln(t)
	return t.Flush()
}

// interval is empty where one seed says nothing.
func interval(i report.Interval) string {
	if !i.Known() {
		return ""
	}
	return fmt.Sprintf("[%.2f, %.2f]", 100*i.Low, 100*i.High)
}

// took is what was done, over all months of a row, the most frequent first.
func took(r *Row) string {
	sum := map[string]int{}
	for _, m := range r.Months {
		for name, n := range m.Took {
			sum[name] += n
		}
	}
	names := slices.Sorted(maps.Keys(sum))
	slices.SortStableFunc(names, func(a, b string) int { return sum[b] - sum[a] })
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf("%s %d", name, sum[name]))
	}
	return strings.Join(list, ", ")
}
