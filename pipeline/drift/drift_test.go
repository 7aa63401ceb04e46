package drift_test

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/drift"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
)

// watched is a run of four stages of four like layers, and the times of its stages where the layers
// of the second take so many times as long.
func watched(t *testing.T, factor float64) (run *drift.Run, took [][]unit.Duration, real *parallel.Simulator) {
	c := make(paralleltest.Chain, 16)
	for i := range c {
		c[i] = parallel.Layer{Forward: 10_000, Input: 10_000, Weight: 10_000, ParamKiB: 1024, ActivationKiB: 1024, OutputKiB: 1, GFlop: 1}
	}
	m := parallel.Model{Name: "chain", Profile: c, Batch: 16, State: parallel.State{Weights: 1, Gradients: 1}}
	x := parallel.NewSimulator(&m, parallel.Even(parallel.Device{TFlops: 1}, 4, 1, 8192))
	planner := drift.Recut{Shape: parallel.Shape{Sequence: paralleltest.OneFOneB, Samples: 1, Microbatches: 16, Tensor: 1, Ranks: 4, Copies: 1}}
	all, why := planner.Plans(x, parallel.Limits{})
	if why != "" {
		t.Fatal(why)
	}
	run = &drift.Run{Plan: all[0], Planner: planner, Pause: unit.Second, Steps: 3, Skew: .1}
	run.Believe(x)
	truth := m
	scaled := drift.Scaled{Profile: c, Times: slices.Repeat([]float64{1}, 16)}
	for i := 4; i < 8; i++ {
		scaled.Times[i] = factor
	}
	truth.Profile = scaled
	real = parallel.NewSimulator(&truth, x.On)
	r, why := real.Simulate(&all[0].Plan)
	if why != "" {
		t.Fatal(why)
	}
	return run, drift.Times(&r), real
}

// TestStep: a stage that takes twice as long is noticed after as many steps as are averaged; the
// layers are cut anew as if that had been known, six units of time in a stage at most in the place of
// eight, and what changes its device is copied. Where too
// few steps are left, or the stage is as much off as it may be, the run stays as it is.
func TestStep(t *testing.T) {
	run, took, real := watched(t, 2)
	before := run.Plan.Plan
	slow, _ := real.Simulate(&before)
	for step := range 3 {
		how, changes := run.Step(took, 1000)
		if changes != (step == 2) {
			t.Fatalf("step %d: changes %v", step, changes)
		}
		if !changes {
			continue
		}
		truly, why := real.Simulate(&how.Plan)
		if why != "" || truly.Step != how.Result.Step || truly.Step >= slow.Step {
			t.Errorf("%s: it takes %v and is believed to take %v, before %v", why, truly.Step, how.Result.Step, slow.Step)
		}
		if want := []int32{2, 6, 10}; !slices.Equal(how.Plan.Pipelines[0].Cuts, want) {
			t.Errorf("cut at %v, want %v", how.Plan.Pipelines[0].Cuts, want)
		}
		moved := []int32{}
		for _, c := range how.Copies {
			moved = append(moved, c.Layer)
		}
		if want := []int32{2, 3, 6, 7, 10, 11}; !slices.Equal(moved, want) || how.Takes <= run.Pause {
			t.Errorf("layers %v are copied in %v, want %v and more than the pause", moved, how.Takes, want)
		}
		took = drift.Times(&truly)
	}
	for range 9 {
		if _, changes := run.Step(took, 1000); changes {
			t.Error("it changes again though all is as believed")
		}
	}
	for _, c := range []struct {
		factor float64
		left   int
	}{{2, 1}, {1.09, 1 << 20}} {
		run, took, _ := watched(t, c.factor)
		for range 6 {
			if _, changes := run.Step(took, c.left); changes {
				t.Errorf("it changes for layers of %g with %d steps left", c.factor, c.left)
			}
		}
	}
}
