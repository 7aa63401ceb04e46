package ahead_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/costtest"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// helios is where the published jobs of Venus are, beside the repository.
func helios(t testing.TB) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", "helios")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs the Helios trace in ../shared/data/helios beside the repository: %v", err)
	}
	return path
}

// week are the jobs of the week of a trace with the most work, and its beginning.
func week(t testing.TB, ref string) (jobs []ahead.Arrival, from unit.Time) {
	t.Helper()
	r, err := trace.Open(ref, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	weeks := map[unit.Time][]ahead.Arrival{}
	work := map[unit.Time]float64{}
	for {
		j, truth, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		w := j.Submit / unit.Time(7*unit.Day)
		j.Checkpoint = workload.Checkpoint{OnRequest: true, Load: 30 * unit.Second}
		weeks[w] = append(weeks[w], ahead.Arrival{Job: j, Truth: truth})
		work[w] += float64(j.Workers()) * truth.Duration.Seconds()
	}
	best := unit.Time(0)
	for w, sum := range work {
		if sum > work[best] || sum == work[best] && w < best {
			best = w
		}
	}
	return weeks[best], best * unit.Time(7*unit.Day)
}

// TestWeek: what if last week had been under another strategy: the busiest week of
// Venus, on devices that are short, within seconds.
func TestWeek(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("eight runs of a week; set MUSTER_LONG=1")
	}
	if costtest.Slowed {
		t.Skip("measures processor time, in one goroutine")
	}
	jobs, from := week(t, "helios:"+helios(t))
	for _, devices := range []int{74, 40} {
		c := cluster.Uniform("venus", devices, 8, cluster.Model{Name: "gpu", Speed: 1}, 16)
		for _, name := range []string{"fifo", "srtf", "tiresias", "fifo+conservative"} {
			var f ahead.Future
			seconds, _ := costtest.Of(t, func() {
				var err error
				f, err = ahead.Run(context.Background(), ahead.Config{State: plan.NewState(c), Now: from, Scheduler: strategy(t, name),
					TellTruth: name == "srtf", Policy: engine.DefaultPolicy(), Arrivals: ahead.Arriving(jobs)})
				if err != nil {
					t.Fatal(err)
				}
			})
			if f.Result.Jobs != int64(len(jobs)) || !f.Result.Balanced || f.Ended != ahead.AllOver {
				t.Errorf("%s: of %d jobs %d are told of; it ends as %q, balanced %v", name, len(jobs), f.Result.Jobs, f.Ended, f.Result.Balanced)
			}
			t.Logf("%d devices, %d jobs, %s: %d commits in %.2f s of processor time; mean wait %.0f s, utilisation %.2f", devices*8, len(jobs), name, f.Result.Commits, seconds, f.Result.AvgWaitSec, f.Result.Utilization)
			if seconds > 5 {
				t.Errorf("%s takes %.1f s of processor time: 5 s are promised", name, seconds)
			}
		}
	}
}

// crowd is a cluster of 10,000 devices that are all taken, with so many jobs waiting.
func crowd(t testing.TB, name string, waiting int) ahead.Config {
	t.Helper()
	c := cluster.Uniform("large", 1250, 8, cluster.Model{Name: "gpu", Speed: 1}, 16)
	sched := strategy(t, name)
	s, err := sched()
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(c, s, engine.DefaultPolicy())
	var events []engine.Event
	for i := range waiting + 2500 {
		j := job(fmt.Sprint("job", i), []int32{1, 2, 4, 8, 16}[i%5], unit.Duration(600+i*7919%86400)*unit.Second)
		if i < 2500 {
			j.Gang = 4
		}
		events = append(events, engine.Event{Kind: engine.Submit, Spec: &j})
	}
	e.Step(0, events)
	events = nil
	for id := range plan.JobID(e.View().Jobs()) {
		if e.View().Job(id).Run != plan.None {
			events = append(events, engine.Event{Kind: engine.Started, Job: id, Attempt: 1})
		}
	}
	e.Step(unit.Time(5*unit.Second), events)
	return ahead.Config{State: e.State(), Scheduler: sched, Policy: engine.DefaultPolicy()}
}

// BenchmarkFork measures a fork of 10,000 devices with 100,000 jobs waiting: the fork
// itself, and looking ahead until the 100th of them has ended.
func BenchmarkFork(b *testing.B) {
	for _, name := range []string{"fifo", "fifo+easy", "srtf+declared", "tiresias"} {
		c := crowd(b, name, 100_000)
		first := c.State.View().Jobs() - 100_000
		for _, x := range []struct {
			name string
			vary func(*ahead.Config)
		}{
			{"fork", func(c *ahead.Config) { c.Horizon = 1 }},
			{"hundredth", func(c *ahead.Config) { c.Asked = []plan.JobID{plan.JobID(first + 100)} }},
		} {
			b.Run(name+"/"+x.name, func(b *testing.B) {
				var memory ahead.Memory
				config := c
				x.vary(&config)
				var f ahead.Future
				for b.Loop() {
					var err error
					if f, err = memory.Run(context.Background(), config); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(f.Steps), "steps")
			})
		}
	}
}
