package hydro

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate/firstfit"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/flow/maxmin"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/equal"
	"github.com/musterdl/muster/pipeline/onefoneb"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile/oracle"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
)

func TestFuseLimit(t *testing.T) {
	for _, x := range []struct {
		device, one, two unit.MiB
		want             int
	}{
		{24000, 2000, 3000, 22}, {24000, 2000, 4000, 11}, {24000, 20000, 30000, 1}, {24000, 0, 10, 1}, {24000, 10, 10, 1}, {24, 12, 24, 1},
	} {
		if got := fuseLimit(x.device, x.one, x.two); got != x.want {
			t.Errorf("%d, %d and %d MiB: %d, want %d", x.device, x.one, x.two, got, x.want)
		}
	}
}

// TestSplit: every trial is in one run, none is over the limit, sizes differ by one at
// most, and no device stays idle that a run could have.
func TestSplit(t *testing.T) {
	if got := split(10, 4, 1); !slices.Equal(got, []int{4, 3, 3}) {
		t.Errorf("ten trials, four to a run: %v", got)
	}
	if got := split(10, 4, 5); !slices.Equal(got, []int{2, 2, 2, 2, 2}) {
		t.Errorf("ten trials on five devices: %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		n, limit, devices := rapid.IntRange(0, 300).Draw(t, "n"), rapid.IntRange(1, 50).Draw(t, "limit"), rapid.IntRange(0, 20).Draw(t, "devices")
		sizes, sum := split(n, limit, devices), 0
		for _, s := range sizes {
			if sum += s; s > limit || s < 1 || sizes[0]-s > 1 || s > sizes[0] {
				t.Fatalf("%d trials, limit %d: %v", n, limit, sizes)
			}
		}
		if sum != n || len(sizes) < min(devices, n) {
			t.Fatalf("%d trials on %d devices: %v", n, devices, sizes)
		}
	})
}

// TestCostModel: the table's two points.
func TestCostModel(t *testing.T) {
	if got := published.fused(100); got < 38.29 || got > 38.31 {
		t.Errorf("a hundred fused trials take %.2f s, the table says 38.3", got)
	}
	if got := published.makespan([]int{3, 2, 2}, 2); got != 2*published.fused(2) {
		t.Errorf("three runs on two devices take %.2f s", got)
	}
}

// TestBubbles: without differences the train takes as long as the pipeline's own
// prediction, and its bubbles are as much.
func TestBubbles(t *testing.T) {
	const stages, micro = 4, 8
	x := train{orders: pipeline.OneForwardOneBackward(stages, micro), forward: 20_000, backward: 40_000, iterations: 1}
	for s, ops := range (onefoneb.Ordering{}).Order(stages, micro) {
		if !slices.Equal(ops, x.orders[s]) {
			t.Errorf("stage %d: %v, as package onefoneb has it %v", s, x.orders[s], ops)
		}
	}
	_, line, err := x.build(func() float64 { return 1 }).gaps()
	if err != nil {
		t.Fatal(err)
	}
	layers := slices.Repeat([]workload.Layer{{Forward: 20_000, Backward: 40_000}}, stages)
	want, why := pipeline.Build(equal.Partitioner{}, onefoneb.Ordering{}, workload.Pipeline{Stages: stages, Microbatches: micro, Layers: layers}, pipeline.Params{})
	if why != "" || line.Makespan != want.Iteration {
		t.Errorf("an iteration takes %s, predicted are %s (%s)", line.Makespan, want.Iteration, why)
	}
	// A guest whose pieces fit costs nothing where nothing differs from plan.
	got, err := x.interleave(1000, 0, func() func() float64 { return func() float64 { return 1 } })
	if err != nil || got.slowdown != 0 || got.used < .3 {
		t.Errorf("slowdown %g, bubbles used %g (%v)", got.slowdown, got.used, err)
	}
}

// TestMeasure holds the model against the acceptance.
func TestMeasure(t *testing.T) {
	m := Measure(1)
	for name, band := range map[string][2]float64{
		"makespan_gain_1_devices": {10, 10.8}, "makespan_gain_8_devices": {5, 100}, "pipeline_slowdown_5ms": {-1, .03},
		"bubbles_used_5ms": {.5, 1}, "pipeline_slowdown_10ms_unguarded": {.03, 1},
	} {
		if x, ok := m[name]; !ok || x < band[0] || x > band[1] {
			t.Errorf("%s is %g: expected %g to %g", name, x, band[0], band[1])
		}
	}
}

// source submits jobs that are given.
type source []workload.Job

func (s *source) Next() (j workload.Job, t workload.Truth, err error) {
	if len(*s) == 0 {
		return j, t, io.EOF
	}
	j, *s = (*s)[0], (*s)[1:]
	return j, workload.Truth{Duration: 20 * unit.Minute, Merge: .1, Busy: .5}, nil
}

func trials(n int) (all source) {
	for i := range n {
		all = append(all, workload.Job{Name: fmt.Sprint("trial ", i), Gang: 1, Devices: 1, Share: 1000, Memory: 4 << 10, Group: "sweep", Base: "resnet",
			Submit: unit.Time(i), Checkpoint: workload.Checkpoint{OnRequest: true}})
	}
	return all
}

type history struct {
	makespan unit.Duration
	commits  []byte
	started  map[string]unit.Time
	guests   map[plan.JobID]bool
}

func run(t *testing.T, c Config, jobs source) history {
	t.Helper()
	var b bytes.Buffer
	n := len(jobs)
	h := history{started: map[string]unit.Time{}, guests: map[plan.JobID]bool{}}
	s, err := simulated.New(simulated.Config{Cluster: cluster.Uniform("c", 1, 4, cluster.Model{Name: "gpu", Memory: 16 << 10, Speed: 1}, 4),
		Jobs: &jobs, TellTruth: true, Check: true, Decisions: &b,
		Scheduler: compose.NewJoint(New(c), compose.Parts{Estimator: oracle.Estimator{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}}),
		Commit: func(v plan.View, c *plan.Commit) {
			for _, change := range c.Changes {
				if change.Verb == plan.Start {
					h.started[v.Name(change.Job)] = v.Now()
					h.guests[change.Terms.Guest] = true
				}
			}
		}})
	for more := true; more && err == nil; {
		more, err = s.Advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Result()
	if err != nil || int(r.Finished) != n {
		t.Fatalf("%d of %d jobs finished (%v)", r.Finished, n, err)
	}
	h.makespan, h.commits = unit.Seconds(r.MakespanSec), b.Bytes()
	return h
}

// TestFused: twelve trials, three to a device, end together in little more than the time
// of one; without fusing they take three rounds. Twice the same, to the byte.
func TestFused(t *testing.T) {
	apart := Config{MinBubble: 100, Fusions: []Fusion{{Base: "resnet", OneMiB: 10 << 10, TwoMiB: 20 << 10}}}
	fused, single := run(t, Default(), trials(12)), run(t, apart, trials(12))
	if fused.makespan > 25*unit.Minute || single.makespan < 60*unit.Minute {
		t.Errorf("fused they take %s, each by itself %s", fused.makespan, single.makespan)
	}
	if again := run(t, Default(), trials(12)); !bytes.Equal(again.commits, fused.commits) {
		t.Error("two equal runs commit different bytes")
	}
}

// TestEagerTransfer: the target model starts when half of the trials have ended, with
// more than a device holds still to come.
func TestEagerTransfer(t *testing.T) {
	jobs := trials(4)
	jobs[3].Submit = unit.Time(0).Add(15 * unit.Minute)
	jobs[2].Submit = jobs[3].Submit
	target := workload.Job{Name: "target", Gang: 2, Devices: 1, Share: 1000, Memory: 4 << 10, Group: "sweep", Submit: unit.Time(3)}
	jobs = slices.Insert(jobs, 2, target)
	h := run(t, Default(), jobs)
	if at := h.started["target"]; at < unit.Time(0).Add(20*unit.Minute) || at > unit.Time(0).Add(21*unit.Minute) {
		t.Errorf("the target model starts after %s", unit.Duration(at))
	}
}

// TestInBubbles: with no device to spare a trial lives on a pipelined job's.
func TestInBubbles(t *testing.T) {
	layer := workload.Layer{Forward: 20_000, Backward: 40_000}
	pipe := workload.Job{Name: "pipeline", Gang: 4, Devices: 1, Share: 1000, Memory: 8 << 10,
		Pipeline: workload.Pipeline{Stages: 4, Microbatches: 8, Layers: []workload.Layer{layer, layer, layer, layer}}}
	jobs := append(source{pipe}, trials(2)...)
	for i := range jobs[1:] {
		jobs[i+1].Submit = unit.Time(0).Add(unit.Minute)
	}
	never := run(t, Config{MinBubble: 1000}, slices.Clone(jobs))
	h := run(t, Default(), jobs)
	if never.guests[0] || never.started["trial 1"] < unit.Time(0).Add(20*unit.Minute) {
		t.Errorf("with no bubble large enough the second trial started after %s, guests were of %v", unit.Duration(never.started["trial 1"]), never.guests)
	}
	if at := h.started["trial 1"]; !h.guests[0] || at != unit.Time(0).Add(unit.Minute) {
		t.Errorf("the second trial started after %s, guests were of %v", unit.Duration(at), h.guests)
	}
}
