package spot

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"github.com/musterdl/muster/strategies/pipeline/oobleck"
	"github.com/musterdl/muster/strategies/pipeline/varuna"
)

// TestTraces: both forms of a trace tell the same of the same nodes, and a node takes a free place.
func TestTraces(t *testing.T) {
	open := func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("0,add,a\n0,add,b\n60000,remove,a\n120000,add,c\n180000,remove,c\n")), nil
	}
	got, err := Bamboo(open, "trace.csv")
	if err != nil {
		t.Fatal(err)
	}
	if got.Nodes != 2 || got.End != unit.Time(3*unit.Minute) || !slices.Equal(got.Changes[2].Comes, []int32{0}) || got.Between() != 90*unit.Second {
		t.Errorf("%+v, expected node a's place taken by c, and two losses in 3 minutes", got)
	}
	counted := Counted([]int{2, 1, 2}, unit.Minute)
	if counted.Nodes != 2 || len(counted.Changes) != 3 || !slices.Equal(counted.Changes[1].Goes, []int32{1}) || counted.End != unit.Time(3*unit.Minute) {
		t.Errorf("%+v, expected two nodes, of which the last goes and comes", counted)
	}
	if _, err := Bamboo(func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("0,adds,a\n")), nil }, "trace.csv"); err == nil || !strings.Contains(err.Error(), "trace.csv:1") {
		t.Errorf("%v, expected file and line", err)
	}
}

// even is six nodes that hold a third of a small model each.
func even(counts []int) *Ground {
	c := make(paralleltest.Chain, 6)
	for i := range c {
		c[i] = parallel.Layer{Forward: unit.Second, Input: unit.Second, Weight: unit.Second, ParamKiB: 1 << 20, ActivationKiB: 1, OutputKiB: 1, GFlop: 1}
	}
	m := &parallel.Model{Name: "chain", Profile: c, Batch: 12, State: parallel.State{Weights: 1, Gradients: 1}}
	kind := parallel.Device{Name: "unit", TFlops: 1, Memory: 5000}
	return &Ground{Trace: Counted(counts, unit.Hour), X: parallel.NewSimulator(m, parallel.Even(kind, 6, 1, 8192)), Start: unit.Minute,
		Limits: parallel.Limits{Sequences: []parallel.Sequence{{Name: "1f1b", Order: onefoneb.Ordering{}}}, Samples: 1}}
}

// TestPlay: where nobody goes, a run does what the best plan does, less the start and checkpoints;
// of three hours in which half of the nodes go in the second, who copies does more than who
// restarts, and that more than the best fixed number.
func TestPlay(t *testing.T) {
	calm := even([]int{6, 6})
	got, p := calm.Play(Policy{Planner: varuna.Morph{}}), calm.planFor(varuna.Morph{}, 6).best
	cost := calm.stored(&p)
	interval := reaction.Interval(cost, calm.Trace.Between())
	works := (2*unit.Hour - unit.Minute - cost).Seconds() * float64(interval) / float64(interval+cost)
	if want := works / p.Result.Step.Seconds() * 12; math.Abs(got.Samples/want-1) > 1e-6 || got.Restarts+got.Recovers > 0 {
		t.Errorf("%+v, expected %g samples", got, want)
	}
	g := even([]int{6, 4, 6})
	copies, restarts := g.Play(Policy{Planner: oobleck.New(oobleck.Config{Failures: 1}), Copies: true}), g.Play(Policy{Planner: varuna.Morph{}})
	if copies.Recovers != 1 || copies.Restarts != 0 || restarts.Restarts != 1 || restarts.Recovers != 0 {
		t.Errorf("%+v and %+v, expected one to copy and one to restart", copies, restarts)
	}
	fixed := 0.
	for n := 1; n <= 6; n++ {
		fixed = max(fixed, g.Play(Policy{Planner: varuna.Morph{}, Fixed: n}).Samples)
	}
	if ideal := g.Ideal([]parallel.Planner{oobleck.New(oobleck.Default()), varuna.Morph{}}); !(copies.Samples > restarts.Samples && restarts.Samples > fixed && copies.Samples < ideal) {
		t.Errorf("copies %g, restarts %g, the best fixed %g, at most %g: expected them in this order", copies.Samples, restarts.Samples, fixed, ideal)
	}
}
