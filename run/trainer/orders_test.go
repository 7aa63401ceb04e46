package trainer

import (
	"fmt"
	"testing"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/strategies/pipeline/autopipe"
	"github.com/musterdl/muster/strategies/pipeline/hanayo"
	"github.com/musterdl/muster/strategies/pipeline/interleaved"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"github.com/musterdl/muster/strategies/pipeline/outoforder"
	"github.com/musterdl/muster/strategies/pipeline/zbv"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
)

// eightLayers is a job that eight stages can be cut from.
func eightLayers() Config {
	c := tiny()
	c.Layers, c.Batch, c.Steps = 6, 8, 6
	return c
}

// stagesOf cuts the model of eightLayers into stages of equal length.
func stagesOf(o pipeline.Ordering, workers, stages int) *pipeline.Plan {
	var cuts []int32
	for s := 1; s < stages; s++ {
		cuts = append(cuts, int32(s*8/stages))
	}
	return planned(o, workers, 8, cuts...)
}

func TestEveryOrderLearnsTheSame(t *testing.T) {
	c := eightLayers()
	want := attempt(t, 1, flags(c), nil).must(t, ExitDone).losses()
	for _, o := range []struct {
		name    string
		order   pipeline.Ordering
		chunks  int
		workers []int
	}{
		{"1f1b", onefoneb.Ordering{}, 1, []int{2, 4}},
		{"zb-h1", zerobubble.H1{}, 1, []int{2, 4}},
		{"interleaved", interleaved.New(interleaved.Config{Chunks: 2}), 2, []int{2, 4}},
		{"zbv", zbv.V{}, 2, []int{2, 4}},
		{"v-half", zbv.Half, 2, []int{4}},
		{"v-min", zbv.Min, 2, []int{4}},
		{"hanayo", hanayo.New(hanayo.Default()), 2, []int{4}},
		{"ooo-backprop", outoforder.Ordering{}, 1, []int{4}},
		{"1f1b-sliced", autopipe.Slicer{}, 1, []int{2, 4}},
		{"zero-bubble", zerobubble.New(zerobubble.Default()), 1, []int{4}},
	} {
		for _, workers := range o.workers {
			t.Run(fmt.Sprintf("%s on %d", o.name, workers), func(t *testing.T) {
				env := map[string]string{"MUSTER_PLAN": writePlan(t, stagesOf(o.order, workers, o.chunks*workers))}
				got := attempt(t, workers, flags(c), env).must(t, ExitDone).losses()
				for step, loss := range want {
					if !closeTo(got[step], loss, 1e-3, 0) {
						t.Errorf("step %d: loss %g, of one worker %g", step, got[step], loss)
					}
				}
			})
		}
	}
}

// Whatever the order, microbatches that pass forward in halves train the same: two workers and four,
// backward passes whole and in halves, stages that hand on within a worker, halves of no sequence, of
// one and of two.
func TestHalvesLearnTheSame(t *testing.T) {
	c := eightLayers()
	want := attempt(t, 1, flags(c), nil).must(t, ExitDone).losses()
	for _, o := range []struct {
		order           pipeline.Ordering
		workers, stages int
		microbatches    int
	}{
		{onefoneb.Ordering{}, 2, 2, 3},
		{onefoneb.Ordering{}, 4, 4, 8},
		{zerobubble.H1{}, 2, 2, 2},
		{zbv.V{}, 2, 4, 4},
	} {
		t.Run(fmt.Sprintf("%T on %d, %d microbatches", o.order, o.workers, o.microbatches), func(t *testing.T) {
			plan := stagesOf(o.order, o.workers, o.stages)
			plan.Microbatches, plan.Orders = int32(o.microbatches), planned(o.order, o.workers, o.microbatches, plan.Cuts...).Orders
			for r, order := range plan.Orders {
				var halves []pipeline.Op
				for _, op := range order {
					if op.Kind == pipeline.Forward && op.Micro != 1 { // one stays whole
						halves = append(halves, pipeline.Op{Kind: pipeline.FirstHalf, Stage: op.Stage, Micro: op.Micro})
						op.Kind = pipeline.SecondHalf
					}
					halves = append(halves, op)
				}
				plan.Orders[r] = halves
			}
			got := attempt(t, o.workers, flags(c), map[string]string{"MUSTER_PLAN": writePlan(t, plan)}).must(t, ExitDone).losses()
			for step, loss := range want {
				if !closeTo(got[step], loss, 1e-3, 0) {
					t.Errorf("step %d: loss %g, of one worker %g", step, got[step], loss)
				}
			}
		})
	}
}

// Each worker of four sends each microbatch's activations once forward and their gradients once
// back, whatever the order, and the few floats that all share.
func TestMessagesOfFourStages(t *testing.T) {
	c := eightLayers()
	for _, o := range []struct {
		name   string
		order  pipeline.Ordering
		stages int
		// sends are the hand-overs of a microbatch to another worker, forward and back, by worker.
		sends [4]int
	}{
		{"1f1b", onefoneb.Ordering{}, 4, [4]int{1, 2, 2, 1}},
		{"zb-h1", zerobubble.H1{}, 4, [4]int{1, 2, 2, 1}},
		{"interleaved", interleaved.New(interleaved.Config{Chunks: 2}), 8, [4]int{3, 4, 4, 3}},
		{"zbv", zbv.V{}, 8, [4]int{2, 4, 4, 2}},
	} {
		plan := stagesOf(o.order, 4, o.stages)
		d := division{workers: 4, plan: plan}
		all := meshesFor(t, d, patience{tick: defaultPatience.tick * 60, ticks: 10}) // no heartbeats
		var sent [4]int64
		together(t, 4, func(rank int) error {
			_, err := newWorker(c, corpus, plan, all[rank]).step(1, false, false)
			all[rank].leave()
			sent[rank] = all[rank].sent()
			return err
		})
		for rank, got := range sent {
			passes := o.sends[rank] * int(plan.Microbatches) * (headerBytes + 4*c.Seq*c.Dim) // a sequence each
			// What all sum goes in 3 pieces there and 3 back, and each link has a goodbye.
			chunk := func(i int) int { return (i+1)*extraCount/4 - i*extraCount/4 }
			shared := 2 * headerBytes
			for k := range 3 {
				shared += 2*headerBytes + 4*(chunk((rank-k+4)%4)+chunk((rank+1-k+4)%4))
			}
			if got != int64(passes+shared) {
				t.Errorf("%s: worker %d sent %d bytes, want %d for its passes and %d shared", o.name, rank, got, passes, shared)
			}
		}
	}
}
