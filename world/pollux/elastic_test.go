package pollux

import (
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/musterdl/muster/allocate/search"
)

// publishedElastic are the artefact's averages for Pollux on workloads 1 to 8
// (results-jobload, results-period and results-inter, which publishes no seeds).
var publishedElastic = []struct {
	load        string
	tickSeconds int
	slowdown    float64
	mingle      bool
	mean        [8]float64
}{
	{load: "workloads", tickSeconds: 60, mean: [8]float64{2088.76875, 3322.94375, 2188.49375, 2720.98125, 2673.7, 2446.13125, 3616.14375, 2951.90625}},
	{load: "workloads-0.5", tickSeconds: 60, mean: [8]float64{1059.5125, 1826.2625, 1310.525, 1497.7625, 976.8375, 1287.825, 2881.05, 1432.0375}},
	{load: "workloads-1.5", tickSeconds: 60, mean: [8]float64{3855.779, 3380.579, 3299.917, 3902.675, 4007.3, 3474.267, 3217.629, 4345.117}},
	{load: "workloads-2.0", tickSeconds: 60, mean: [8]float64{6186.259, 4190.828, 5131.838, 5262.4, 6590.822, 5105.313, 3836.325, 6009.813}},
	{load: "workloads", tickSeconds: 30, mean: [8]float64{2097.6625, 3330.6625, 2155.33125, 2654.5375, 2660.93125, 2463.91875, 3546.1875, 2923.73125}},
	{load: "workloads", tickSeconds: 120, mean: [8]float64{2138.94375, 3397.9625, 2227.5, 2743.0125, 2732.99375, 2510.89375, 3686.9, 3008.73125}},
	{load: "workloads", tickSeconds: 240, mean: [8]float64{2300.08125, 3588.225, 2368.3375, 2910.10625, 2874.9875, 2693.2375, 3851.00625, 3162.4125}},
	{load: "workloads", tickSeconds: 480, mean: [8]float64{2683.60625, 3897.275, 2772.71875, 3245.26875, 3265.73125, 3126.95, 4269.2875, 3572.575}},
	{load: "workloads", tickSeconds: 60, mingle: true, mean: [8]float64{2102.23125, 3353.58125, 2187.1875, 2728.96875, 2686.8125, 2442.0375, 3611.24375, 2951.40625}},
	{load: "workloads", tickSeconds: 60, slowdown: .25, mingle: true, mean: [8]float64{2565.63125, 3683.30625, 2377.55625, 3153.34375, 3161.03125, 2808.38125, 4314.625, 3353.1125}},
	{load: "workloads", tickSeconds: 60, slowdown: .5, mingle: true, mean: [8]float64{3467.2, 4322.925, 2595.85, 4031.625, 3858.95, 3456.98125, 5588.11875, 3902.80625}},
}

// TestElasticPublished: workload 6 with the greedy search by default; with MUSTER_LONG=1
// every workload and sweep, and the first with the genetic search, too (minutes). Chance decides what the genetic search finds, and the
// artefact's own seeds are not published.
func TestElasticPublished(t *testing.T) {
	apps := loaded(t)
	long := os.Getenv("MUSTER_LONG") == "1"
	for i, row := range publishedElastic {
		for _, greedy := range []bool{true, false} {
			if !long && (i > 0 || !greedy) || i > 0 && !greedy {
				continue
			}
			name := fmt.Sprintf("%s, %d s, slowdown %v, mingle %v, greedy %v", row.load, row.tickSeconds, row.slowdown, row.mingle, greedy)
			var ours, published float64
			for k, want := range row.mean {
				if !long && k != 5 {
					continue
				}
				workload, err := ReadArchive(data+"/pollux_workloads.tar.gz", fmt.Sprintf("%s/workload-%d.csv", row.load, k+1))
				if err != nil {
					t.Fatal(err)
				}
				cluster := Default()
				cluster.TickSeconds, cluster.Slowdown = row.tickSeconds, row.slowdown
				r, err := Run(workload, apps, cluster, NewElastic(ElasticConfig{Greedy: greedy, Mingle: row.mingle, Effort: search.Patient(), Seed: 1}))
				if err != nil || r.Unfinished > 0 {
					t.Fatalf("%d jobs did not finish, %v", r.Unfinished, err)
				}
				t.Logf("%s, workload %d: %.0f s, published %.0f s (%+.1f %%)", name, k+1, r.MeanSeconds, want, 100*(r.MeanSeconds/want-1))
				ours, published = ours+r.MeanSeconds, published+want
			}
			t.Logf("%s: %+.1f %% of the published sum", name, 100*(ours/published-1))
			if math.Abs(ours/published-1) > .07 {
				t.Errorf("%s: %+.1f %% of the published sum, more than 7", name, 100*(ours/published-1))
			}
		}
	}
}

// TestElasticAgent: a job starts with one replica at its initial batch, may then have
// two, and its batch and model follow what it sees.
func TestElasticAgent(t *testing.T) {
	app := toy(50, noise)
	app.Epochs = 2
	a := newAgent(app)
	if s, most := a.Split(1, 1), a.most(); s != (Split{Local: 8}) || most != 1 {
		t.Errorf("a new job: %+v, at most %d replicas", s, most)
	}
	if got := a.speedup(4)(1, 2); got != .5 {
		t.Errorf("a job never measured is worth its part of the fair share, found %v", got)
	}
	a.Observe(1, 1, Split{Local: 8}, Step{Seconds: 1, SyncSeconds: .5}, noise)
	if a.most() != 2 {
		t.Errorf("measured on one replica it may have two, found %d", a.most())
	}
	if s := a.Split(1, 2); s.Local*(s.Accumulation+1) < 16 {
		t.Errorf("pure noise wants the largest batch, found %+v", s)
	}
	a.Observe(1, 2, Split{Local: 8}, Step{Seconds: 2, SyncSeconds: .5}, signal)
	if s := a.Split(1, 2); s.Local*(s.Accumulation+1) != 4 {
		t.Errorf("a pure signal wants the smallest batch, found %+v", s)
	}
	one, _ := a.best(1, 1)
	if got := a.speedup(1)(1, 1); math.Abs(got-1) > 1e-12 || one <= 0 {
		t.Errorf("the fair share is worth 1, found %v", got)
	}
}

// TestElasticRepeats: equal seeds give equal histories, and every grant is legal (Run
// checks), whichever search decides.
func TestElasticRepeats(t *testing.T) {
	cluster := Config{Nodes: 2, DevicesPerNode: 2, TickSeconds: 60, RestartSeconds: 30, HorizonSeconds: 36000}
	var workload []Request
	for i := range 6 {
		workload = append(workload, Request{Name: fmt.Sprint("j", i), SubmitSeconds: 30 * i, Application: "toy", Replicas: 1, Batch: 8})
	}
	apps := map[string]*Application{"toy": toy(300, Gradient{Sqr: 1, Var: 2})}
	apps["toy"].placed["111"] = apps["toy"].placed["11"]
	for _, greedy := range []bool{true, false} {
		c := ElasticConfig{Greedy: greedy, Effort: search.Effort{Population: 10, Generations: 10}}
		a, err := Run(workload, apps, cluster, NewElastic(c))
		if err != nil || a.Unfinished > 0 {
			t.Fatalf("%d unfinished, %v", a.Unfinished, err)
		}
		b, err := Run(workload, apps, cluster, NewElastic(c))
		if err != nil || a.MeanSeconds != b.MeanSeconds {
			t.Errorf("greedy %v: %v s, then %v s, %v", greedy, a.MeanSeconds, b.MeanSeconds, err)
		}
	}
}
