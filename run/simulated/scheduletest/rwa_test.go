package scheduletest

import (
	"os"
	"testing"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/schedule/las"
	"github.com/musterdl/muster/strategies/schedule/sjf"
	"github.com/musterdl/muster/strategies/schedule/srsf"
	"github.com/musterdl/muster/strategies/schedule/srtf"
	"github.com/musterdl/muster/strategies/schedule/tiresias"
)

// rwa is the reference workload: 480 jobs on 60 devices at load 0.95.
func rwa(t *testing.T, seed uint64) Jobs {
	src, err := trace.Open("gen:RW-A", trace.Options{Seed: seed, Devices: 60, Load: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	saved := trace.WithSaving(src, trace.Saving{}, seed)
	var jobs Jobs
	for {
		job, truth, err := saved.Next()
		if err != nil {
			return jobs
		}
		jobs = append(jobs, Job{job, truth})
	}
}

// contender is an order in the comparison.
type contender struct {
	name  string
	order func() schedule.Order
}

func contenders(t *testing.T) []contender {
	of := func(c tiresias.Config) func() schedule.Order { return func() schedule.Order { return tiresias.New(c) } }
	early := tiresias.Default()
	early.QueuesDeviceSec = []float64{3600}
	promoting := early
	promoting.PromoteAfter = 8
	informed := tiresias.Default()
	informed.Gittins = true
	for seed := uint64(101); seed <= 103; seed++ {
		for _, j := range rwa(t, seed) {
			informed.SamplesDeviceSec = append(informed.SamplesDeviceSec, float64(j.Gang)*j.Duration.Seconds())
		}
	}
	return []contender{
		{"fifo", func() schedule.Order { return fifo.New(fifo.Default()) }},
		{"fifo-strict", func() schedule.Order { return fifo.New(fifo.Config{}) }},
		{"sjf", func() schedule.Order { return sjf.Order{} }},
		{"srtf", func() schedule.Order { return srtf.Order{} }},
		{"srsf", func() schedule.Order { return srsf.Order{} }},
		{"las", func() schedule.Order { return las.New(las.Default()) }},
		{"las by the minute", func() schedule.Order { return las.New(las.Config{Quantum: unit.Minute, Growth: 1}) }},
		{"2d-las 3,600", of(early)},
		{"2d-las 36,000", of(tiresias.Default())},
		{"2d-las 3,600 promoting", of(promoting)},
		{"2d-gittins", of(informed)},
	}
}

// claims bound the average JCT of one contender by that of another. The bounds are
// what prototypes of the published systems and of the textbook orders showed, with
// room for the choice of seeds.
var claims = []struct {
	a     string
	times float64
	b     string
}{
	{"2d-las 36,000", 0.90, "fifo"}, {"2d-gittins", 0.82, "fifo"}, {"2d-gittins", 1.18, "srsf"},
	{"2d-las 36,000", 1, "2d-las 3,600"}, {"2d-las 3,600", 1, "2d-las 3,600 promoting"},
	{"sjf", 0.95, "fifo"}, {"srtf", 0.75, "fifo"}, {"srsf", 1, "srtf"}, {"srsf", 1, "las"}, {"srsf", 0.95, "las by the minute"}, {"las", 0.85, "fifo"},
	{"2d-las 36,000", 1 / 3.0, "fifo-strict"}, {"2d-gittins", 1 / 3.5, "fifo-strict"},
}

// TestReferenceWorkload compares the orders on RW-A with restarts of 60 s, averaged
// over seeds; over more of them where MUSTER_LONG is set.
func TestReferenceWorkload(t *testing.T) {
	seeds := uint64(6)
	if os.Getenv("MUSTER_LONG") != "" {
		seeds = 20
	}
	jct, preemptions := map[string]float64{}, map[string]float64{}
	for _, o := range contenders(t) {
		for seed := range seeds {
			r, err := Run(reference(rwa(t, seed+1), o.order()))
			if err != nil || r.Finished != 480 || !r.Balanced {
				t.Fatalf("%s, seed %d: %d finished, balanced %v, %v", o.name, seed+1, r.Finished, r.Balanced, err)
			}
			jct[o.name] += r.AvgJCTSec / float64(seeds)
			preemptions[o.name] += float64(r.Preemptions) / float64(seeds)
		}
		t.Logf("%-24s average JCT %6.0f s, %5.0f preemptions", o.name, jct[o.name], preemptions[o.name])
	}
	for _, c := range claims {
		if a, b := jct[c.a], jct[c.b]; a > c.times*b {
			t.Errorf("average JCT of %s is %.0f s, that of %s %.0f s: want at most %.2f times it", c.a, a, c.b, b, c.times)
		}
	}
	for queues, most := range map[string]float64{"2d-las 3,600": 3. / 4, "2d-las 36,000": 1. / 2} {
		if a, b := preemptions[queues], preemptions["las by the minute"]; a > b*most {
			// Half, where nobody has to earn back its start: then LAS by the minute stops far more.
			t.Errorf("%s preempts %.0f times, las by the minute %.0f times: expected at most %.2f of that", queues, a, b, most)
		}
	}
}

// reference is an unchecked simulation of the reference workload: the state's
// legality is proven on small histories.
func reference(jobs Jobs, order schedule.Order) simulated.Config {
	config := Config(Nodes(1, 60, 0), jobs, With(order))
	config.Prices.Restart, config.Check = unit.Minute, false
	return config
}
