package parallel_test

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/pipeline/parallel"
)

// TestRecovery: the device that takes the place of a lost one is sent what that held by the copy
// of its stage, one layer after the other; where no copy is left, or the state of the optimiser
// was spread, only a restart helps.
func TestRecovery(t *testing.T) {
	m := model(4, 8)
	m.State = parallel.State{Weights: 1, Gradients: 1, Optimizer: 2}
	x := parallel.NewSimulator(m, parallel.Even(parallel.Device{Name: "unit", TFlops: 1}, 5, 1, 8192))
	before, after := shape(1, 4, 1, 2, 2, []int32{2}, nil), shape(1, 4, 1, 2, 2, []int32{2}, nil)
	after.Pipelines[1].Ranks[0].Devices[0] = 4 // in the place of device 1
	r, why := x.Recovery(&before, &after, []int32{1})
	if why != "" {
		t.Fatal(why)
	}
	if len(r.Copies) != 2 || r.Copies[0] != (parallel.Copy{Layer: 0, From: 0, To: 4, KiB: 3 * 1024}) || r.Takes != 2*3*1024 {
		t.Errorf("%+v in %d, expected both layers of device 0, 3 MiB each, at 1 MiB in 1024 microseconds", r.Copies, r.Takes)
	}
	if _, why := x.Copies(&before, &after, []int32{0, 1}); !strings.Contains(string(why), "no device that is left") {
		t.Errorf("%q, expected that nobody has the layer", why)
	}
	m.State.Sharded = true
	if _, why := x.Copies(&before, &after, []int32{1}); !strings.Contains(string(why), "spread over the copies") {
		t.Errorf("%q, expected that the state is lost", why)
	}
}

// TestSplit: where two devices are to share a layer of one, the new one is sent its half, and the
// other keeps what it has.
func TestSplit(t *testing.T) {
	m := model(1, 1)
	x := parallel.NewSimulator(m, parallel.Even(parallel.Device{Name: "unit", TFlops: 1}, 1, 4, 0))
	before, after := shape(1, 1, 1, 1, 1, nil, nil), shape(1, 1, 2, 1, 1, nil, nil)
	after.Pipelines[0].Ranks[0].Devices = []int32{2, 0}
	copies, why := x.Copies(&before, &after, nil)
	if want := (parallel.Copy{From: 0, To: 2, KiB: 512}); why != "" || len(copies) != 1 || copies[0] != want {
		t.Errorf("%+v %q, expected %+v alone", copies, why, want)
	}
}

// TestSpeeds: a device at half its speed doubles the passes of its stage, and those that are left
// keep their speeds.
func TestSpeeds(t *testing.T) {
	on := parallel.Even(parallel.Device{Name: "unit", TFlops: 1}, 4, 1, 0)
	on.Speeds = []float64{1, 1, .5, 1}
	p := shape(1, 8, 1, 4, 1, []int32{2, 4, 6}, nil)
	r, why := parallel.NewSimulator(model(8, 8), on).Simulate(&p)
	if why != "" {
		t.Fatal(why)
	}
	if took := r.Parts[0].Timing.Busy; took[2] != 2*took[1] || took[1] != took[3] {
		t.Errorf("busy for %v, expected twice as long at half the speed", took)
	}
	left, was := on.Without([]int32{0, 3})
	if left.Len() != 2 || len(left.Nodes) != 2 || was[1] != 2 || left.Speeds[1] != .5 || left.NodeOf(1) != 1 {
		t.Errorf("%+v %v, expected devices 1 and 2", left, was)
	}
}
