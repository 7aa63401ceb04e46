package reproduce

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/musterdl/muster/experiment/reproduce/stand"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report"
)

// Comparison names strategies to be run on the same work.
type Comparison struct {
	// Setup is everything but the strategy. Its seed is used with a trace only;
	// generated work is drawn from the seeds 1 to Seeds. Every step in Setup.Without
	// adds, behind each strategy, that strategy without the step.
	Setup      Setup
	Strategies []string
	Seeds      int
	// Workers are the simulations that run at once; 0 is one per core.
	Workers int
	// Pictures keeps what an HTML report is drawn from.
	Pictures bool
	// Progress, where it is set, is called by one simulation at a time.
	Progress func(Progress)
}

// Progress is how far a comparison is.
type Progress struct {
	Done, Runs int
	JobsEnded  int64
}

// bootstrapSeed is fixed, so that the same runs always give the same intervals.
const bootstrapSeed = 1

// Compared is a finished comparison; with --json it is printed as it is.
type Compared struct {
	Trace   string  `json:"trace"`
	Cluster string  `json:"cluster"`
	Load    float64 `json:"load"`
	// Over is what the intervals are made over: "seeds" or "weeks".
	Over          string        `json:"over"`
	Seeds         []uint64      `json:"seeds"`
	BootstrapSeed uint64        `json:"bootstrap_seed"`
	Rows          []ComparedRow `json:"rows"`
	// Lanes name the devices, for pictures.
	Lanes []report.Lane `json:"-"`
}

// ComparedRow is one strategy. Over several seeds its figures are means, but for
// the numbers of jobs, which are sums, and the longest wait of a gang, which is that of all.
type ComparedRow struct {
	report.Result
	// AvgJCT is the average JCT in seconds, and Ratio that by the first row's, with
	// their 95 % intervals.
	AvgJCT report.Interval `json:"avg_jct_interval"`
	Ratio  report.Interval `json:"ratio"`
	BySeed []report.Result `json:"by_seed"`
	// View is what pictures are drawn from: the trace's run, or the one of seed 1.
	View report.View `json:"-"`
}

// Compare runs the strategies, several at once.
func Compare(c Comparison) (*Compared, error) {
	generated, err := c.check()
	if err != nil {
		return nil, err
	}
	out := &Compared{Trace: c.Setup.Trace, Cluster: c.Setup.Cluster, Load: c.Setup.Load, Over: "weeks",
		Seeds: []uint64{c.Setup.Seed}, BootstrapSeed: bootstrapSeed}
	if generated {
		out.Over, out.Seeds = "seeds", out.Seeds[:0]
		for seed := range uint64(c.Seeds) {
			out.Seeds = append(out.Seeds, seed+1)
		}
	}
	runs, err := c.run(c.variants(), out.Seeds, generated)
	if err != nil {
		return nil, err
	}
	out.Lanes = runs[0][0].lanes
	for i := range runs {
		row := ComparedRow{View: runs[i][0].view}
		for k := range runs[i] {
			row.BySeed = append(row.BySeed, runs[i][k].result)
		}
		row.Result = average(row.BySeed)
		if err := row.judge(runs[i], runs[0], generated); err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// check says what cannot be compared, and whether the work is generated.
func (c *Comparison) check() (generated bool, err error) {
	generated = c.Setup.Jobs != nil || strings.HasPrefix(c.Setup.Trace, "gen:") || strings.HasPrefix(c.Setup.Trace, stand.Prefix)
	_, query, _ := strings.Cut(c.Setup.Trace, "?")
	switch {
	case len(c.Strategies) == 0:
		return generated, fmt.Errorf("there is nothing to compare: name strategies")
	case generated && c.Seeds < 1:
		return generated, fmt.Errorf("%d seeds: expected at least 1", c.Seeds)
	case generated && strings.Contains("&"+query, "&seed="):
		return generated, fmt.Errorf("trace %s fixes its seed, so every run would be the same: leave seed= out", c.Setup.Trace)
	}
	return generated, nil
}

// variants are the setups to be compared, in the order of the rows.
func (c *Comparison) variants() []Setup {
	var list []Setup
	for _, name := range c.Strategies {
		s := c.Setup
		s.Strategy, s.Without, s.Decisions, s.Commit = name, nil, nil, nil
		list = append(list, s)
		for _, step := range c.Setup.Without {
			s.Without = []string{step}
			list = append(list, s)
		}
	}
	return list
}

// compared is what is kept of one simulation.
type compared struct {
	result report.Result
	jobs   []report.JobRecord // of a trace
	view   report.View
	lanes  []report.Lane
}

// run simulates every variant on every seed. The first mistake ends it.
func (c *Comparison) run(variants []Setup, seeds []uint64, generated bool) ([][]compared, error) {
	type task struct{ variant, seed int }
	runs := make([][]compared, len(variants))
	var tasks []task
	for i := range variants {
		runs[i] = make([]compared, len(seeds))
	}
	for k := range seeds { // all variants of a seed together: their memory is alike
		for i := range variants {
			tasks = append(tasks, task{i, k})
		}
	}
	workers := c.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var next, ended atomic.Int64
	var all sync.WaitGroup
	var lock sync.Mutex // of what follows, and of Progress
	var failed error
	done := 0
	tell := func() {
		if c.Progress != nil {
			c.Progress(Progress{done, len(tasks), ended.Load()})
		}
	}
	for range min(workers, len(tasks)) {
		all.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(tasks) {
					return
				}
				t := tasks[n]
				s := variants[t.variant]
				s.Seed = seeds[t.seed]
				s.Limits = c.limits(generated, t.seed)
				s.Progress = counting(&ended, &lock, tell)
				o, err := Simulate(s)
				lock.Lock()
				if err != nil && failed == nil {
					failed = err
					next.Store(int64(len(tasks)))
				}
				if err == nil {
					runs[t.variant][t.seed] = c.keep(o, generated, t.seed)
					done++
					tell()
				}
				lock.Unlock()
			}
		})
	}
	all.Wait()
	return runs, failed
}

// counting returns a callback that adds one simulation's ended jobs to a total.
func counting(total *atomic.Int64, lock sync.Locker, tell func()) func(unit.Time, int64, int64) {
	var counted int64
	return func(_ unit.Time, _, ended int64) {
		if ended-counted < 1000 {
			return
		}
		total.Add(ended - counted)
		counted = ended
		lock.Lock()
		tell()
		lock.Unlock()
	}
}

// limits keep all jobs of a trace, whose weeks are resampled, and of generated work
// only what pictures need.
func (c *Comparison) limits(generated bool, seed int) report.Limits {
	l := report.Limits{Points: 2, Jobs: 1}
	if c.Pictures && seed == 0 {
		l = report.Limits{Spans: report.ChartSpans}
	}
	if !generated {
		l.Jobs = math.MaxInt
	}
	return l
}

// keep takes from an outcome what the comparison still needs, so that the rest can
// be forgotten. What a run cost is not kept: others ran beside it.
func (c *Comparison) keep(o *Outcome, generated bool, seed int) compared {
	k := compared{result: o.Result}
	k.result.Effort = report.Effort{}
	pictures := c.Pictures && seed == 0
	if pictures || !generated {
		k.view = o.Collector.View()
	}
	if !generated {
		k.jobs = k.view.Jobs
	}
	if pictures {
		k.lanes = o.Lanes()
	} else {
		k.view = report.View{}
	}
	return k
}

// judge fills in the intervals of a row beside the first one.
func (r *ComparedRow) judge(mine, first []compared, generated bool) (err error) {
	boot := report.Bootstrap{Seed: bootstrapSeed}
	if !generated {
		r.AvgJCT = report.MeanJCTByWeek(mine[0].jobs, boot)
		r.Ratio = report.JCTRatioByWeek(mine[0].jobs, first[0].jobs, boot)
		return nil
	}
	jct := func(r *report.Result) float64 { return r.AvgJCTSec }
	r.AvgJCT = report.MeanInterval(values(mine, jct))
	r.Ratio, err = report.PairedRatio(values(mine, jct), values(first, jct), boot)
	return err
}

func values(runs []compared, of func(*report.Result) float64) []float64 {
	v := make([]float64, len(runs))
	for i := range runs {
		v[i] = of(&runs[i].result)
	}
	return v
}

// average is the row of several runs.
func average(runs []report.Result) report.Result {
	mean := runs[0]
	for i := range runs[1:] {
		r := &runs[i+1]
		add(means(&mean), means(r))
		add(counts(&mean), counts(r))
		add(sums(&mean), sums(r))
		mean.Balanced = mean.Balanced && r.Balanced
	}
	mean.AvgGangWaitSec, mean.LongestGangWaitSec = gangWaits(runs)
	n := float64(len(runs))
	for _, x := range means(&mean) {
		*x /= n
	}
	for _, x := range counts(&mean) {
		*x = int64(math.Round(float64(*x) / n))
	}
	mean.Figures = meanFigures(runs)
	mean.Notes = noted(runs)
	if len(runs) > 1 {
		mean.DecisionHash, mean.Seed = "", 0
	}
	return mean
}

// gangWaits are how long the large gangs of all runs waited, in the mean over these gangs and at
// most: a run may have few of them, or none.
func gangWaits(runs []report.Result) (mean, longest float64) {
	var gangs int64
	for i := range runs {
		mean += runs[i].AvgGangWaitSec * float64(runs[i].LargeGangs)
		gangs += runs[i].LargeGangs
		longest = max(longest, runs[i].LongestGangWaitSec)
	}
	return mean / float64(max(1, gangs)), longest
}

// meanFigures are the means of what the stands of the runs read.
func meanFigures(runs []report.Result) map[string]float64 {
	var mean map[string]float64
	for i := range runs {
		for name, x := range runs[i].Figures {
			if mean == nil {
				mean = map[string]float64{}
			}
			mean[name] += x / float64(len(runs))
		}
	}
	return mean
}

func add[T int64 | float64](into, more []*T) {
	for i := range into {
		*into[i] += *more[i]
	}
}

func means(r *report.Result) []*float64 {
	return []*float64{&r.OfferedLoad, &r.MeanDurationSec, &r.AvgJCTSec, &r.P50JCTSec, &r.P95JCTSec, &r.P99JCTSec, &r.AvgWaitSec,
		&r.AvgSlowdown, &r.P99Slowdown, &r.MakespanSec, &r.JCTBoundSec, &r.IsolatedSec, &r.SquashedSRPTSec, &r.QueueingSec, &r.Utilization, &r.BusyUtilization,
		&r.DeviceSec, &r.UsefulDeviceSec, &r.OverheadDeviceSec, &r.LostDeviceSec, &r.IdleDeviceSec}
}

func counts(r *report.Result) []*int64 {
	return []*int64{&r.LongestQueue, &r.Preemptions, &r.Restarts, &r.Commits, &r.Events}
}

// sums are not averaged: a single censored job must not be rounded away.
func sums(r *report.Result) []*int64 {
	return []*int64{&r.Jobs, &r.Finished, &r.Failed, &r.Cancelled, &r.Refused, &r.Censored, &r.LargeGangs}
}

// noted collects the notes of all runs, each once, with how many runs have it.
func noted(runs []report.Result) []string {
	var list []string
	of := map[string]int{}
	for i := range runs {
		for _, note := range runs[i].Notes {
			if of[note]++; of[note] == 1 {
				list = append(list, note)
			}
		}
	}
	for i, note := range list {
		if n := of[note]; len(runs) > 1 {
			list[i] = fmt.Sprintf("in %d of %d seeds: %s", n, len(runs), note)
		}
	}
	return list
}

// ReportRows are the rows as package report prints them.
func (c *Compared) ReportRows() []report.Row {
	rows := make([]report.Row, len(c.Rows))
	for i := range c.Rows {
		rows[i] = report.Row{Result: c.Rows[i].Result, Ratio: &c.Rows[i].Ratio}
	}
	return rows
}

// Page is the comparison as an HTML report.
func (c *Compared) Page(when string) report.Page {
	p := report.Page{Title: fmt.Sprintf("%d strategies on %s", len(c.Rows), c.Trace), When: when, Lanes: c.Lanes}
	for i, row := range c.ReportRows() {
		if len(c.Seeds) > 1 {
			row.Result.Notes = append(row.Result.Notes,
				fmt.Sprintf("figures are means over %d seeds and numbers of jobs are sums; pictures are of seed %d", len(c.Seeds), c.Seeds[0]))
		}
		p.Runs = append(p.Runs, report.Run{Row: row, View: c.Rows[i].View})
	}
	return p
}

// Method is a sentence on where the intervals come from.
func (c *Compared) Method() string {
	n := c.Rows[0].Ratio.N
	switch {
	case n < 2:
		return fmt.Sprintf("no intervals: they need at least two %s", c.Over)
	case c.Over == "seeds":
		return fmt.Sprintf("[...] are 95 %% intervals over %d seeds, paired", n)
	}
	return fmt.Sprintf("[...] are 95 %% intervals over %d weeks of submission, without the first and last 3 days", n)
}
