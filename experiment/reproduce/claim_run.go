package reproduce

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/reproduce/stand"
	"github.com/musterdl/muster/mechanism/rank"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report"
)

// ClaimRun says how claims are run.
type ClaimRun struct {
	// Data is the folder of published data; see DataFolder.
	Data string
	// Quick takes fewer seeds and leaves long metrics out; a band then holds only where the
	// whole interval lies inside, and is missed only where it lies outside.
	Quick bool
	// Seeds, where it is set, takes so many instead of what the claim says.
	Seeds int
	// Break takes the deciding method of the claim's strategy away, to see what still holds.
	Break bool
	// Progress, where it is set, is told of every run that ended.
	Progress func(claim string, done, runs int)
}

// DataFolder is where published data lies: $MUSTER_DATA, else beside the repository.
func DataFolder() string {
	if data := os.Getenv("MUSTER_DATA"); data != "" {
		return data
	}
	return filepath.Join("..", "shared", "data")
}

// experiment is a claim while it is run, with the figures of every run by what was
// run, one map per seed.
type experiment struct {
	*Claim
	ClaimRun
	seeds int
	runs  map[term][]map[string]float64 // by trace and label
}

// broken names the system whose strategies are to decide no longer; none is empty.
func (x *experiment) broken() string {
	if x.Break {
		return cmp.Or(x.Entry.System, x.Entry.Name)
	}
	return ""
}

// errNoNumber is a mean over nothing, a ratio to it, or a figure of what did not happen.
var errNoNumber = errors.New("this is no number")

// missing is a claim whose data is not here.
type missing string

// Error says what data is absent.
func (m missing) Error() string {
	return "needs " + string(m) + ", which docs/data.md tells where to get"
}

// Is says that it is as any other file that is not there.
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

// Run makes the experiment of a claim and holds its figures against what was
// published. A claim whose data is absent is skipped.
func (r ClaimRun) Run(c *Claim) ([]catalogue.Finding, error) {
	x := &experiment{Claim: c, ClaimRun: r, seeds: c.Seeds, runs: map[term][]map[string]float64{}}
	if r.Quick {
		x.seeds = c.QuickSeeds
	}
	if r.Seeds > 0 {
		x.seeds = r.Seeds
	}
	began := time.Now()
	err := x.all()
	var absent missing
	if err != nil && !errors.As(err, &absent) {
		return nil, fmt.Errorf("claim %s: %w", c.Name, err)
	}
	var list []catalogue.Finding
	for i := range c.Metrics {
		if m := &c.Metrics[i]; x.wanted(m) {
			f, err := x.find(m, absent)
			if x.Break && errors.Is(err, errNoNumber) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("claim %s: %s: %w", c.Name, m.Metric, err)
			}
			list = append(list, f)
		}
	}
	if inner, ok := x.inner(); ok {
		f, err := x.find(inner, absent)
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", c.Name, err)
		}
		if c.Inner != "" {
			f.By = catalogue.ByEngine
		}
		list = append(list, f)
	}
	for i := range list {
		list[i].WallSec = math.Round(time.Since(began).Seconds()*100) / 100
	}
	return list, nil
}

// innerKey is what a strategy that scores measures besides: how well the order of its
// inner scores agrees with that of the goal they stand for (Spearman).
const innerKey = "inner_rank_correlation"

// inner is the metric of the inner score, where it was measured and none of the
// claim's own reads it.
func (x *experiment) inner() (*Metric, bool) {
	for i := range x.Metrics {
		if x.Metrics[i].over.figure == innerKey {
			return nil, false
		}
	}
	runs := x.runs[term{}]
	if len(runs) == 0 {
		return nil, false
	}
	_, ok := runs[0][innerKey]
	return &Metric{Metric: "rank correlation of inner score and goal", Figure: innerKey, Published: "-", over: term{figure: innerKey}}, ok
}

// rank compares the inner scores of the strategies with the goals they reach on the same
// trace: by seed, the mean over the traces that tell three strategies or more apart.
func (x *experiment) rank(labels map[string][]string) error {
	words := strings.Fields(x.Inner)
	for k := 0; len(words) > 0 && k < x.seeds; k++ {
		sum, traces := 0.0, 0.0
		for _, trace := range slices.Sorted(maps.Keys(labels)) {
			var sides [2][]float64
			for _, label := range labels[trace] {
				for i, word := range words {
					values, err := x.samples(term{trace, label, strings.TrimPrefix(word, "-")})
					if err != nil {
						return err
					}
					if strings.HasPrefix(word, "-") {
						values[k] = -values[k]
					}
					sides[i] = append(sides[i], values[k])
				}
			}
			if r := rank.Correlation(sides[0], sides[1]); len(sides[0]) > 2 && !math.IsNaN(r) {
				sum, traces = sum+r, traces+1
			}
		}
		if traces > 0 {
			x.runs[term{}] = append(x.runs[term{}], map[string]float64{innerKey: sum / traces})
		}
	}
	return nil
}

func (x *experiment) wanted(m *Metric) bool { return !x.Quick || !m.Long }

// all makes every run that a wanted metric reads.
func (x *experiment) all() error {
	want, measured := map[string][]string{}, false // labels by trace
	add := func(t *term) {
		if t == nil || t.label == "" {
			measured = measured || t != nil
			return
		}
		for _, trace := range x.on(*t) {
			if !slices.Contains(want[trace], t.label) {
				want[trace] = append(want[trace], t.label)
			}
		}
	}
	for i := range x.Metrics {
		if m := &x.Metrics[i]; x.wanted(m) {
			add(&m.over)
			add(m.under)
		}
	}
	if measured {
		if err := x.measure(); err != nil {
			return err
		}
	}
	run := x.simulate
	if x.Kind == "pack" {
		run = x.pack
	}
	for _, trace := range slices.Sorted(maps.Keys(want)) {
		ref, err := x.locate(x.Traces[trace])
		if err != nil {
			return err
		}
		slices.Sort(want[trace])
		if err := run(trace, ref, want[trace]); err != nil {
			return err
		}
	}
	return x.rank(want)
}

// locate puts the data folder before the path of FORMAT:PATH.
func (x *experiment) locate(ref string) (string, error) {
	format, path, ok := strings.Cut(ref, ":")
	if !ok || format == "gen" || format+":" == stand.Prefix {
		return ref, nil
	}
	full := filepath.Join(x.Data, path)
	file, _, _ := strings.Cut(full, "#")
	file, _, _ = strings.Cut(file, "?")
	if _, err := os.Stat(file); err != nil {
		return "", missing(full)
	}
	return format + ":" + full, nil
}

// simulate compares the strategies on one trace.
func (x *experiment) simulate(trace, ref string, labels []string) error {
	c := Comparison{Setup: Defaults(), Seeds: x.seeds}
	c.Setup.Break = x.broken()
	c.Setup.Trace, c.Setup.Cluster, c.Setup.Data, c.Setup.Load, c.Setup.Limit = ref, x.Cluster, x.Data, x.Load, x.Limit
	c.Setup.Prices, c.Setup.LinkJitter = x.Prices, 0
	c.Setup.NoBounds = true // they take long, and no claim is about them: figuresOf leaves them out
	c.Setup.Prices.Restart = unit.Seconds(x.RestartSec)
	for _, label := range labels {
		text, err := x.withHistory(x.Strategies[label], &c.Setup)
		if err != nil {
			return err
		}
		c.Strategies = append(c.Strategies, text)
	}
	if x.Progress != nil {
		c.Progress = func(p Progress) { x.Progress(x.Name, p.Done, p.Runs) }
	}
	compared, err := Compare(c)
	if err != nil {
		return err
	}
	for i, label := range labels {
		row := &compared.Rows[i]
		if !row.Balanced {
			return fmt.Errorf("the ledger of %s does not balance", label)
		}
		for k := range row.BySeed {
			figures, err := figuresOf(&row.BySeed[k])
			if err != nil {
				return err
			}
			at := term{trace: trace, label: label}
			x.runs[at] = append(x.runs[at], figures)
		}
	}
	return nil
}

// firstHistorySeed is far from those that are compared.
const firstHistorySeed = 10_001

// withHistory puts what jobs of other seeds took, in device-seconds, in the place of
// $HISTORY.
func (x *experiment) withHistory(strategy string, s *Setup) (string, error) {
	if x.HistorySeeds == 0 || !strings.Contains(strategy, "$HISTORY") {
		return strategy, nil
	}
	c, err := resolveCluster(s.Cluster, s.Data)
	if err != nil {
		return "", err
	}
	var took []string
	other := *s
	for k := range uint64(x.HistorySeeds) {
		other.Seed = firstHistorySeed + k
		jobs, err := open(other, len(c.Devices))
		if err != nil {
			return "", err
		}
		for {
			job, truth, err := jobs.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return "", err
			}
			took = append(took, fmt.Sprintf("%.6f", float64(job.Workers())/1000*truth.Duration.Seconds()))
		}
		if err := jobs.Close(); err != nil {
			return "", err
		}
	}
	return strings.ReplaceAll(strategy, "$HISTORY", "["+strings.Join(took, ", ")+"]"), nil
}

// figuresOf are the numbers of a result by their names in JSON, and what follows from
// them: the time with devices, and how much longer that is than running alone. Lower bounds of
// the JCT are none.
func figuresOf(r *report.Result) (map[string]float64, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	figures := map[string]float64{}
	for name, value := range all {
		if n, ok := value.(float64); ok {
			figures[name] = n
		}
	}
	for _, name := range []string{"jct_bound_s", "isolated_s", "squashed_srpt_s", "queueing_s"} {
		delete(figures, name)
	}
	for name, value := range r.Figures {
		if _, there := figures[name]; there {
			return nil, fmt.Errorf("the stand's figure %q has the name of one that every simulation has", name)
		}
		figures[name] = value
	}
	figures["avg_run_s"] = r.AvgJCTSec - r.AvgWaitSec
	figures["run_inflation"] = figures["avg_run_s"] / r.MeanDurationSec
	return figures, nil
}

// measure calls the strategy's function once per seed.
func (x *experiment) measure() error {
	open := opener(x.Data)
	runs, done := make([]map[string]float64, x.seeds), atomic.Int64{}
	err := each(x.seeds, func(k int) (err error) {
		runs[k], err = x.Entry.Measure(open, uint64(k)+1)
		if now := int(done.Add(1)); x.Progress != nil {
			x.Progress(x.Name, now, x.seeds)
		}
		return err
	})
	x.runs[term{}] = runs
	return err
}

// find judges one metric.
func (x *experiment) find(m *Metric, absent missing) (catalogue.Finding, error) {
	f := catalogue.Finding{Name: x.Name, Strategy: x.Entry.Name, System: x.System, Step: x.Entry.Step, Metric: m.Metric,
		Published: m.Published, Low: m.Low, High: m.High, By: m.by(), Note: strings.TrimSpace(m.Note)}
	if m.Low != nil || m.High != nil {
		f.BandFrom = m.From
	}
	if absent != "" {
		f.Verdict, f.Note = catalogue.Skipped, absent.Error()
		return f, nil
	}
	over, err := x.samples(m.over)
	if err != nil {
		return f, err
	}
	i := report.MeanInterval(over)
	if m.under != nil {
		under, err := x.samples(*m.under)
		if err != nil {
			return f, err
		}
		if i, err = report.PairedRatio(over, under, report.Bootstrap{Seed: bootstrapSeed}); err != nil {
			return f, err
		}
	}
	if math.IsNaN(i.Point) || math.IsInf(i.Point, 0) {
		return f, fmt.Errorf("%s is %g: %w", m.Figure, i.Point, errNoNumber)
	}
	f.Measured, f.Seeds = &i.Point, len(over)
	if i.Known() {
		f.Interval = []float64{i.Low, i.High}
	}
	f.Verdict = judge(i, m, x.Quick && x.seeds < x.Claim.Seeds)
	f.Holds = f.Verdict == catalogue.Holds
	return f, nil
}

// samples are the values of a figure, one per seed; over several traces, their means.
func (x *experiment) samples(t term) ([]float64, error) {
	if traces := x.on(t); t.label != "" && len(traces) > 1 {
		sum := make([]float64, x.seeds)
		for _, trace := range traces {
			values, err := x.samples(term{trace, t.label, t.figure})
			if err != nil {
				return nil, err
			}
			for i, v := range values {
				sum[i] += v / float64(len(traces))
			}
		}
		return sum[:len(x.runs[term{traces[0], t.label, ""}])], nil
	} else if t.label != "" {
		t.trace = traces[0]
	}
	runs := x.runs[term{trace: t.trace, label: t.label}]
	values := make([]float64, len(runs))
	for i, figures := range runs {
		v, ok := figures[t.figure]
		if !ok {
			names := make([]string, 0, len(figures))
			for name := range figures {
				names = append(names, name)
			}
			slices.Sort(names)
			return nil, fmt.Errorf("there is no figure %q: the run has %s: %w", t.figure, strings.Join(names, ", "), errNoNumber)
		}
		values[i] = v
	}
	return values, nil
}

// judge holds the point against the band. A quick run has few seeds: a figure holds or is
// missed only where its whole interval does, and where others of its seeds were left out it
// needs an interval.
func judge(i report.Interval, m *Metric, few bool) string {
	low, high := math.Inf(-1), math.Inf(1)
	if m.Low != nil {
		low = *m.Low
	}
	if m.High != nil {
		high = *m.High
	}
	inside, outside := i.Low >= low && i.High <= high, i.High < low || i.Low > high
	switch {
	case m.Low == nil && m.High == nil:
		return catalogue.Reported
	case few && !(i.Known() && (inside || outside)):
		return catalogue.Open
	case i.Point >= low && i.Point <= high:
		return catalogue.Holds
	}
	return catalogue.Missed
}
