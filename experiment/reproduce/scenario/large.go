package scenario

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/spread"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
)

// What the large models' day holds. Sizes and arrivals are drawn by the seed; nothing of it is
// measured but what the planner's models of devices are.
const (
	largeBackground = 200
	largeJobs       = 16
	largeBacklog    = 0.5  // of the background, that waits when the day begins
	largeLoad       = 1.7  // of the background alone, of what the cluster can do in a day: about 2 with the large models
	layerSpread     = 0.05 // of a layer's true time around what is believed
	linkPart        = 0.9  // of what is written on a link, that it has at most
)

// trained are the models that are trained, with the samples of a step and the devices that
// their owners ask for.
var trained = []struct {
	model string
	batch int32
	gang  int32
}{{"gpt-2", 512, 16}, {"vit-h", 4096, 16}, {"llama-3-8b", 256, 32}, {"gpt-22b", 256, 64}, {"mixtral", 256, 64}, {"t5", 512, 32}}

// LargeCluster is three pods: 16 nodes of 8 A100, 16 of 8 V100, 32 of 4 T4, in racks of 8 nodes
// that have half of what their nodes have.
func LargeCluster() *cluster.Cluster {
	c := &cluster.Cluster{Name: "large"}
	for _, pod := range []struct {
		model        cluster.Model
		nodes, count int
		uplink       unit.Mbps
	}{
		{cluster.Model{Name: "A100-80GB", Memory: 80 << 10, Speed: 1}, 16, 8, 800_000},
		{cluster.Model{Name: "V100-32GB", Memory: 32 << 10, Speed: 0.4}, 16, 8, 100_000},
		{cluster.Model{Name: "T4", Memory: 15 << 10, Speed: 0.15}, 32, 4, 50_000},
	} {
		model := c.AddModel(pod.model)
		for n := range pod.nodes {
			if n%8 == 0 {
				c.AddRack(cluster.Rack{Name: fmt.Sprintf("%s/%d", pod.model.Name, n/8), Uplink: 8 * pod.uplink / 2})
			}
			c.AddNode(cluster.Node{Name: fmt.Sprintf("%s-%d", pod.model.Name, n), Rack: int32(len(c.Racks) - 1), Model: model, Uplink: pod.uplink,
				CPU: unit.Milli(pod.count) * 12 * unit.Whole, Memory: unit.MiB(pod.count) * 64 << 10}, pod.count)
		}
	}
	return c
}

// LargeDay is one day of one composition.
type LargeDay struct {
	Seed uint64 `json:"seed"`
	// JCTSec is the mean of wait and run of the large models' jobs, WaitSec its part in
	// waiting; BackgroundSec the mean of the other jobs.
	JCTSec        float64 `json:"jct_s"`
	WaitSec       float64 `json:"wait_s"`
	BackgroundSec float64 `json:"background_jct_s"`
	// Filled is the part of what plans left idle that guests used, Harm by how much longer the runs
	// of plans held their devices than without others there.
	Filled float64 `json:"bubbles_filled"`
	Harm   float64 `json:"owners_harm"`
	// Error is by how much the steps that were predicted are off, on average, of the plans that
	// the jobs' menus hold.
	Error float64 `json:"prediction_error"`
}

// LargeRow is a composition on all days.
type LargeRow struct {
	Name string     `json:"name"`
	Days []LargeDay `json:"days"`
	JCT  Interval   `json:"jct_s"`
	// Against is by how much longer its large jobs take than with the planner in the loop, as a
	// ratio by seed.
	Against Interval `json:"times_the_full"`
	Least   float64  `json:"least_times"`
}

// LargeStudy is the large models' day under several compositions.
type LargeStudy struct {
	Seeds    int                 `json:"seeds"`
	Without  []string            `json:"-"`
	Rows     []LargeRow          `json:"rows"`
	Progress func(done, all int) `json:"-"`
}

// arm is one composition: how menus are made and what decides.
type arm struct {
	name, strategy, planner string
	elastic                 bool
}

// guests lets background jobs live wherever nobody else is, and in what plans leave idle.
const guests = "order: fifo\nplace: antman/fastest-kind\n"

// arms are the full composition, and each step that is left out. Without step 4 the owners plan
// by hand for the devices that they ask for; without step 2 these are what a job gets, wherever
// there is room first, and background jobs are like others; without guests nobody is let into
// what plans leave idle.
var arms = []arm{
	{"full", guests + "size: soonest\n", "ptd-p", true},
	{"without pipeline", guests, "fixed-3d", false},
	{"without allocate", "order: fifo\n", "ptd-p", false},
	{"without guests", guests + "size: soonest\noptions:\n  antman: {harm: 0}\n", "ptd-p", true},
}

// Run runs all rows on all seeds.
func (s *LargeStudy) Run(ctx context.Context) error {
	for _, a := range arms {
		if len(s.Without) == 0 || a.name == "full" || slices.Contains(s.Without, strings.TrimPrefix(a.name, "without ")) {
			s.Rows = append(s.Rows, LargeRow{Name: a.name})
		}
	}
	c := LargeCluster()
	done := 0
	for i := range s.Rows {
		a := arms[slices.IndexFunc(arms, func(a arm) bool { return a.name == s.Rows[i].Name })]
		maker, err := a.maker(c)
		if err != nil {
			return err
		}
		byHand, err := arms[1].maker(c)
		if err != nil {
			return err
		}
		for seed := range s.Seeds {
			day, err := a.day(ctx, c, maker, byHand, uint64(seed+1))
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", a.name, seed+1, err)
			}
			s.Rows[i].Days = append(s.Rows[i].Days, day)
			if done++; s.Progress != nil {
				s.Progress(done, len(s.Rows)*s.Seeds)
			}
		}
	}
	for i := range s.Rows {
		s.Rows[i].judge(&s.Rows[0])
	}
	return nil
}

// judge compares a row with the full one.
func (r *LargeRow) judge(full *LargeRow) {
	var jct, times []float64
	for i := range r.Days {
		jct = append(jct, r.Days[i].JCTSec)
		times = append(times, r.Days[i].JCTSec/full.Days[i].JCTSec)
	}
	r.JCT, r.Against, r.Least = report.MeanInterval(jct), report.MeanInterval(times), slices.Min(times)
}

// Steps are those that the large models' day can leave out.
func (s *LargeStudy) Steps() (steps []string) {
	for _, a := range arms[1:] {
		steps = append(steps, strings.TrimPrefix(a.name, "without "))
	}
	return steps
}

// Write prints the study for people.
func (s *LargeStudy) Write(w io.Writer) error {
	c := LargeCluster()
	fmt.Fprintf(w, "%d jobs that train large models and %d others in a day, on %d devices of three kinds, racks 2:1; seeds 1 to %d\n\n", largeJobs, largeBackground, len(c.Devices), s.Seeds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "COMPOSITION\tWAIT+RUN H\tWAIT H\tTIMES THE FULL\tLEAST\tOTHERS H\tBUBBLES USED %\tHARM %\tSTEP OFF BY %")
	for i := range s.Rows {
		r := &s.Rows[i]
		of := func(f func(*LargeDay) float64) Interval {
			list := make([]float64, len(r.Days))
			for k := range r.Days {
				list[k] = f(&r.Days[k])
			}
			return report.MeanInterval(list)
		}
		show := func(i Interval, scale float64, digits int) string {
			if !i.Known() || len(r.Days) < 2 {
				return fmt.Sprintf("%.*f", digits, i.Point*scale)
			}
			return fmt.Sprintf("%.*f +-%.*f", digits, i.Point*scale, digits, (i.High-i.Point)*scale)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.2f\t%s\t%s\t%s\t%s\n", r.Name, show(r.JCT, 1./3600, 2), show(of(func(d *LargeDay) float64 { return d.WaitSec }), 1./3600, 2),
			show(r.Against, 1, 2), r.Least, show(of(func(d *LargeDay) float64 { return d.BackgroundSec }), 1./3600, 1),
			show(of(func(d *LargeDay) float64 { return d.Filled }), 100, 1), show(of(func(d *LargeDay) float64 { return d.Harm }), 100, 2), show(of(func(d *LargeDay) float64 { return d.Error }), 100, 1))
	}
	return t.Flush()
}

// Plot draws how many times longer the large jobs take where a step is left out.
func (s *LargeStudy) Plot(w io.Writer) error {
	var all []bar
	for _, r := range s.Rows[1:] {
		all = append(all, bar{r.Name, r.Against})
	}
	return drawBars(w, "How many times longer large models wait and run", all)
}

// maker writes the menus of an arm.
func (a *arm) maker(c *cluster.Cluster) (*spread.Maker, error) {
	of, err := catalogue.Parse(a.name, "planner: "+a.planner+"\n")
	if err != nil {
		return nil, err
	}
	return catalogue.Menus(c, of)
}

// day draws a day and runs it.
func (a *arm) day(ctx context.Context, c *cluster.Cluster, maker, byHand *spread.Maker, seed uint64) (LargeDay, error) {
	r := rand.New(rand.NewPCG(seed, 0x1a76e))
	d := LargeDay{Seed: seed}
	items := background(r, c)
	for i := range largeJobs {
		it, off, err := a.large(r, maker, byHand, i)
		if err != nil {
			return d, err
		}
		items, d.Error = append(items, it), d.Error+off/largeJobs
	}
	slices.SortStableFunc(items, func(x, y item) int { return int(x.job.Submit - y.job.Submit) })
	of, err := catalogue.Parse(a.name, a.strategy)
	if err != nil {
		return d, err
	}
	built, err := of.Build(catalogue.Env{Seed: seed}, false)
	if err != nil {
		return d, err
	}
	prices := simulated.DefaultPrices()
	prices.Restart, prices.StoreGBps = 0, 0 // a start again takes what a start does, and saving nothing
	collector := report.NewCollector(report.Limits{Jobs: 1 << 20})
	result, err := simulated.Run(ctx, simulated.Config{Cluster: c, Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(), Prices: prices,
		Jobs: &source{left: items, adjust: func(*item) {}}, World: world.Config{Seed: seed}, Collector: collector})
	if err != nil {
		return d, err
	}
	if !result.Balanced {
		return d, fmt.Errorf("the books do not balance: %s", strings.Join(result.Notes, "; "))
	}
	d.Filled = result.FilledDeviceSec / max(1, result.BubbleDeviceSec)
	d.Harm = result.SlowedDeviceSec / max(1, result.PlannedDeviceSec-result.SlowedDeviceSec)
	for _, j := range collector.View().Jobs {
		took := j.End.Sub(j.Submit).Seconds()
		if it := &items[j.ID]; it.kind == large {
			fastest := slices.MaxFunc(it.truth.Menu, func(a, b workload.Offer) int { return cmp.Compare(a.Rate, b.Rate) })
			if least := it.truth.Duration.Seconds() / fastest.Rate; took < least || took < (j.Run+j.Waited).Seconds()-1 {
				return d, fmt.Errorf("%s took %.0f s, %.0f by its runs and waits: expected no less than these, and than the %.0f on its fastest offer", j.Name, took, (j.Run + j.Waited).Seconds(), least)
			}
			d.JCTSec += took / largeJobs
			d.WaitSec += j.Waited.Seconds() / largeJobs
		} else {
			d.BackgroundSec += took / largeBackground
		}
	}
	return d, nil
}

// background are the other jobs: small gangs over the day, together of a given load, that
// anybody else displaces and that run in what others leave.
func background(r *rand.Rand, c *cluster.Cluster) (items []item) {
	work := make([]float64, largeBackground)
	gangs, sum := make([]int32, largeBackground), 0.0
	for i := range work {
		gangs[i] = [...]int32{1, 1, 2, 4, 8, 8, 16}[r.IntN(7)]
		work[i] = math.Exp(r.NormFloat64())
		sum += work[i] * float64(gangs[i])
	}
	scale := largeLoad * worth(c) * unit.Day.Seconds() / sum
	for i := range work {
		j := workload.Job{Name: fmt.Sprint("small-", i), Submit: unit.Time(r.Int64N(int64(unit.Day))),
			Resources:  workload.Resources{Gang: gangs[i], Devices: 1, Share: unit.Whole, Memory: unit.MiB(2<<10) << r.IntN(3)},
			Traits:     workload.Traits{Opportunistic: true},
			Checkpoint: workload.Checkpoint{OnRequest: true, Every: 30 * unit.Minute}}
		if float64(i) < largeBacklog*largeBackground {
			j.Submit = 0
		}
		items = append(items, item{job: j, kind: batch, truth: workload.Truth{Duration: unit.Duration(work[i] * scale * 1e6)}})
	}
	return items
}

// large draws a large model's job, whose work is the same however it is planned: so many hours
// by hand on the devices that its owner asks for. It also says by how much the predicted steps
// are off.
func (a *arm) large(r *rand.Rand, maker, byHand *spread.Maker, i int) (item, float64, error) {
	of := trained[r.IntN(len(trained))]
	submit, hours, seed := unit.Time(r.Int64N(int64(unit.Day))), 2*math.Exp(0.5*r.NormFloat64()), r.Uint64()
	j := workload.Job{Name: fmt.Sprintf("large-%d-%s", i, of.model), Submit: submit,
		Resources:  workload.Resources{Gang: of.gang, Devices: 1, Share: unit.Whole},
		Traits:     workload.Traits{Pipeline: workload.Pipeline{Model: of.model, Batch: of.batch}},
		Checkpoint: workload.Checkpoint{OnRequest: true, Every: 10 * unit.Minute}}
	hand := j
	if a.elastic {
		j.Sizes = []int32{of.gang / 2, of.gang, 2 * of.gang}
	}
	if o := maker.Write(&j); o != nil {
		return item{}, 0, o
	}
	if o := byHand.Write(&hand); o != nil {
		return item{}, 0, o
	}
	reference := hand.Menu[0].Plan.Step.Seconds()
	links := linkPart * (1 - 0.1*r.Float64())
	disturbed := func(p parallel.Profile) parallel.Profile { return &jitter{Profile: p, seed: seed} }
	truly, off := spread.Doubt(maker.Truly(&j, disturbed, links), seed, false), 0.0
	for k := range j.Menu {
		off += math.Abs(truly[k].Rate/j.Menu[k].Rate-1) / float64(len(j.Menu))
		to := reference / j.Menu[k].Plan.Step.Seconds() / j.Menu[k].Rate
		truly[k].Rate *= to
		j.Menu[k].Rate *= to
	}
	return item{job: j, kind: large, truth: workload.Truth{Duration: unit.Duration(hours * 3600e6), Menu: truly}}, off, nil
}

// jitter is a profile whose layers truly take somewhat more or less, each on each kind of
// device by the seed.
type jitter struct {
	parallel.Profile
	seed uint64
}

// Ways are those of the profile with other times.
func (j *jitter) Ways(layer int, on *parallel.Device, tensor, samples int) ([]parallel.Layer, parallel.Why) {
	ways, why := j.Profile.Ways(layer, on, tensor, samples)
	ways = slices.Clone(ways)
	r := rand.New(rand.NewPCG(j.seed, uint64(layer)<<32|uint64(math.Float64bits(on.TFlops)>>40)))
	by := math.Exp(layerSpread * r.NormFloat64())
	for i := range ways {
		for _, d := range []*unit.Duration{&ways[i].Forward, &ways[i].Again, &ways[i].Input, &ways[i].Weight} {
			*d = unit.Duration(float64(*d) * by)
		}
	}
	return ways, why
}
