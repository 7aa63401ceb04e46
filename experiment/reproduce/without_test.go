package reproduce

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/report"
)

// worth is what a step is worth: a small workload on which it has work to do, the
// figure that it is there for, and one on which it has nothing to do.
type worth struct {
	step   string
	needs  []string // strategies
	busy   func(t *testing.T) Setup
	figure func(*report.Result) float64
	idle   func(t *testing.T) Setup
}

func lostWork(r *report.Result) float64 { return r.LostDeviceSec }

// on is a setup by name.
func on(trace, cluster, strategy string) func(*testing.T) Setup {
	return func(*testing.T) Setup {
		s := Defaults()
		s.Trace, s.Cluster, s.Strategy = trace, cluster, strategy
		return s
	}
}

var worths = []worth{
	{step: "profile", needs: []string{"srsf", "oracle"}, figure: avgJCT,
		busy: on("gen:rw-a", "gpus:1x60", "srsf+oracle"),
		idle: on("gen:rw-a?estimate=exact", "gpus:1x60", "srsf+oracle")},
	{step: "allocate", needs: []string{"consolidate"}, figure: avgJCT,
		busy: on("gen:rw-l", "gpus:8x8", "fifo+consolidate"),
		idle: on("gen:rw-l", "gpus:1x64", "fifo+consolidate")},
	{step: "schedule", needs: []string{"tiresias"}, figure: avgJCT,
		busy: on("gen:rw-a", "gpus:1x60", "tiresias"),
		idle: on("gen:rw-a?jobs=100&load=0.001", "gpus:1x60", "tiresias")},
	{step: "pipeline", needs: []string{"dp-cut", "1f1b"}, figure: avgJCT,
		busy: pipelines(6), idle: pipelines(1)},
	{step: "flow", needs: []string{"strict", "spread"}, figure: avgJCT,
		busy: sharedLinks("exact"), idle: sharedLinks("alike")},
	{step: "run", needs: []string{"srsf", "oracle"}, figure: lostWork,
		busy: saving("srsf+oracle"), idle: saving("fifo")},
}

// saving is RW-A where jobs save every half hour by themselves.
func saving(strategy string) func(*testing.T) Setup {
	return func(t *testing.T) Setup {
		s := on("gen:rw-a", "gpus:1x60", strategy)(t)
		s.Saving.Every = 30 * unit.Minute
		return s
	}
}

// pipelines are RW-A' where every gang of four asks for a plan over its stages. The
// layers of a job differ by this factor from the cheapest to the dearest; at 1 an
// equal cut is the best one.
func pipelines(unequal int) func(*testing.T) Setup {
	return func(t *testing.T) Setup {
		s := on("", "gpus:8x4", "fifo+dp-cut")(t)
		if unequal > 1 {
			s.Strategy = "fifo+dp-cut+1f1b"
		}
		s.Jobs = changed("gen:rw-a-prime", func(j *workload.Job) {
			if j.Gang != 4 {
				return
			}
			j.Pipeline = workload.Pipeline{Stages: 4, Microbatches: 8}
			for i := range 12 {
				cost := unit.Duration(1+(unequal-1)*i/11) * unit.Millisecond
				j.Pipeline.Layers = append(j.Pipeline.Layers, workload.Layer{Name: fmt.Sprint(i), Forward: cost, Backward: 2 * cost})
			}
		})
		return s
	}
}

// sharedLinks are RW-A' on two nodes with devices enough, over which every gang is
// spread, so that what the jobs share is the 10 Gbps between the nodes. Where all
// declare the same run time there is nothing to tell them apart by.
func sharedLinks(estimates string) func(*testing.T) Setup {
	return func(t *testing.T) Setup {
		file := filepath.Join(t.TempDir(), "cluster.yaml")
		text := "name: narrow\nmodels:\n  - {name: gpu, memory: 16GiB, speed: 1}\nracks:\n  - nodes:\n      - {name: node, count: 2, devices: 64, uplink: 10Gbps}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := on("", file, "fifo+spread+strict")(t)
		s.Jobs = changed("gen:rw-a-prime?estimate=exact", func(j *workload.Job) {
			j.Traffic = 600
			if estimates == "alike" {
				j.Estimate = unit.Second
			}
		})
		return s
	}
}

// changed opens a generator whose jobs are changed one by one.
func changed(ref string, change func(*workload.Job)) func(uint64) (trace.Reader, error) {
	return func(seed uint64) (trace.Reader, error) {
		r, err := trace.Open(ref, trace.Options{Seed: seed})
		return &changing{r, change}, err
	}
}

type changing struct {
	trace.Reader
	change func(*workload.Job)
}

// Next changes the next job.
func (c *changing) Next() (workload.Job, workload.Truth, error) {
	job, truth, err := c.Reader.Next()
	if err != nil && err != io.EOF {
		return job, truth, fmt.Errorf("the job to change: %w", err)
	}
	c.change(&job)
	return job, truth, err
}

func TestWithoutAStep(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("every step on ten seeds; set MUSTER_LONG=1")
	}
	for _, w := range worths {
		t.Run(w.step, func(t *testing.T) {
			for _, name := range w.needs {
				if _, ok := catalogue.Find(name); !ok {
					t.Skipf("the catalogue has no %s", name)
				}
			}
			t.Run("busy", func(t *testing.T) { w.worsens(t) })
			t.Run("idle", func(t *testing.T) { w.changesNothing(t) })
		})
	}
}

// without runs a setup whole and without the step, on ten seeds.
func (w *worth) without(t *testing.T, s Setup) (with, without []report.Result) {
	t.Helper()
	both := make([][]report.Result, 2)
	for i, steps := range [][]string{nil, {w.step}} {
		s.Without = steps
		for seed := uint64(1); seed <= 10; seed++ {
			s.Seed = seed
			o, err := Simulate(s)
			if err != nil {
				t.Fatal(err)
			}
			if o.Result.Finished == 0 || !o.Result.Balanced {
				t.Fatalf("%d jobs finished, balanced: %v", o.Result.Finished, o.Result.Balanced)
			}
			both[i] = append(both[i], o.Result)
		}
	}
	return both[0], both[1]
}

func (w *worth) worsens(t *testing.T) {
	with, without := w.without(t, w.busy(t))
	worse := 0
	for i := range with {
		if w.figure(&without[i]) > w.figure(&with[i]) {
			worse++
		}
	}
	ratio, err := report.PairedRatio(figures(with, w.figure), figures(without, w.figure), report.Bootstrap{Seed: bootstrapSeed})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("worse without it in %d of %d seeds; with it %.3f [%.3f, %.3f] of that without", worse, len(with), ratio.Point, ratio.Low, ratio.High)
	if worse < 9 {
		t.Errorf("without the step it is worse in %d of %d seeds, expected at least 9", worse, len(with))
	}
}

func (w *worth) changesNothing(t *testing.T) {
	with, without := w.without(t, w.idle(t))
	for i := range with {
		if with[i].DecisionHash != without[i].DecisionHash {
			t.Errorf("seed %d: the step has nothing to do, but without it other decisions are made", i+1)
		}
	}
}
