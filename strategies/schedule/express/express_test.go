package express_test

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/express"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/schedule/las"
	"github.com/musterdl/muster/strategies/schedule/srtf"
	"github.com/musterdl/muster/strategies/schedule/tiresias"
)

var behind = map[string]func() schedule.Order{
	"fifo":     func() schedule.Order { return fifo.New(fifo.Default()) },
	"srtf":     func() schedule.Order { return srtf.Order{} },
	"las":      func() schedule.Order { return las.New(las.Default()) },
	"tiresias": func() schedule.Order { return tiresias.New(tiresias.Default()) },
}

func TestConforms(t *testing.T) {
	for name, order := range behind {
		t.Run(name, func(t *testing.T) {
			scheduletest.Conform(t, func() schedule.Order { return express.New(express.Default(), order()) })
		})
	}
}

// TestLane: a short job displaces a long one at once, a batch job does not; one that
// said it was short and is not is demoted after ten minutes.
func TestLane(t *testing.T) {
	const m = unit.Minute
	job := func(name string, at, runs, declared unit.Duration) scheduletest.Job {
		return scheduletest.Job{Job: workload.Job{Name: name, Submit: unit.Time(at), Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Estimate: declared,
			Priority: 1, Checkpoint: workload.Checkpoint{OnRequest: true}}, Truth: workload.Truth{Duration: runs}}
	}
	jobs := scheduletest.Jobs{job("long", 0, 60*m, 60*m), job("batch", m, 20*m, 20*m), job("debug", 2*m, 5*m, 5*m), job("liar", 30*m, 30*m, 5*m), job("debug too", 41*m, 5*m, 5*m)}
	for i := range jobs {
		jobs[i].Priority = int32(i) // the lane minds no priority, and batch jobs must not displace each other
	}
	o, err := scheduletest.Run(scheduletest.Config(scheduletest.Nodes(1, 1, 0), jobs, scheduletest.With(express.New(express.Default(), fifo.New(fifo.Default())))))
	if err != nil {
		t.Fatal(err)
	}
	// The batch job waits for the device although the long one ranks below it. The liar has
	// its ten minutes, keeps the device for one more as a batch job, and then makes way to
	// a job that came later than it.
	for i, want := range []unit.Duration{120 * m, 27 * m, 7 * m, 65 * m, 46 * m} {
		if end := unit.Duration(o.Jobs[i].End); end != want {
			t.Errorf("%s ends at %v, want %v", o.Jobs[i].Name, end, want)
		}
	}
}

// rwa is the reference workload with declared times, and restarts of a minute.
func rwa(t *testing.T, seed uint64, order schedule.Order) (scheduletest.Jobs, simulated.Config) {
	src, err := trace.Open("gen:RW-A", trace.Options{Seed: seed, Devices: 60, Load: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	saved := trace.WithSaving(src, trace.Saving{}, seed)
	var jobs scheduletest.Jobs
	for {
		job, truth, err := saved.Next()
		if err != nil {
			break
		}
		job.Estimate = truth.Duration
		jobs = append(jobs, scheduletest.Job{Job: job, Truth: truth})
	}
	config := scheduletest.Config(scheduletest.Nodes(1, 60, 0), jobs, scheduletest.With(order))
	config.Prices.Restart, config.Check = unit.Minute, false
	return jobs, config
}

// TestLatency: at a load of 0.95, with the lane, 95 of 100 jobs of at most five minutes
// that may use it wait at most two minutes, and the jobs that may not use it take at most
// 3 % longer.
func TestLatency(t *testing.T) {
	c := express.Default()
	for _, name := range []string{"fifo", "tiresias"} {
		var waits [2][]unit.Duration
		var production [2]float64
		for seed := range uint64(4) {
			for i, order := range []schedule.Order{behind[name](), express.New(c, behind[name]())} {
				jobs, config := rwa(t, seed+1, order)
				o, err := scheduletest.Run(config)
				if err != nil || !o.Balanced {
					t.Fatalf("balanced %t, %v", o.Balanced, err)
				}
				for id, j := range o.Jobs {
					switch runs, small := jobs[id].Duration, jobs[id].Gang <= c.Devices; {
					case small && runs <= 5*unit.Minute:
						waits[i] = append(waits[i], j.Waited)
					case !small || runs > c.Cap:
						production[i] += j.JCT().Seconds()
					}
				}
			}
		}
		var p95 [2]unit.Duration
		for i := range waits {
			slices.Sort(waits[i])
			p95[i] = waits[i][len(waits[i])*95/100]
		}
		ratio := production[1] / production[0]
		t.Logf("%s: p95 wait of %d short jobs %v, without the lane %v; production JCT %.4f of before", name, len(waits[1]), p95[1], p95[0], ratio)
		if p95[1] > 2*unit.Minute || ratio > 1.03 {
			t.Errorf("%s: p95 wait %v, production JCT %.3f of before: want at most 2 min and 1.03", name, p95[1], ratio)
		}
	}
}

func TestConfig(t *testing.T) {
	if strategy.Check(express.Default()) != nil || strategy.Check(express.Config{Cap: 1}) == nil || strategy.Check(express.Config{Devices: 1}) == nil {
		t.Error("wrong about what is valid")
	}
	if r := express.New(express.Default(), fifo.New(fifo.Config{})).Rules(); !r.Preempt || r.Strict != fifo.New(fifo.Config{}).Rules().Strict {
		t.Errorf("rules %+v", r)
	}
}
