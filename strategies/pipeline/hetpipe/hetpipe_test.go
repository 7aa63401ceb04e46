package hetpipe

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
)

// TestEqualsBruteForce: of all cuts and all orders of the devices none has a faster slowest stage
// that fits, and what is planned fits when it is simulated.
func TestEqualsBruteForce(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 100
	}
	dice, refused, moved := rand.New(rand.NewPCG(1, 1)), 0, 0
	for range cases {
		x := paralleltest.Unlike(dice)
		all, best := least(x)
		p, why := plan(x, [][]int32{all}, paralleltest.OneFOneB, 1)
		if (why == "") != (best < unit.Forever) {
			t.Fatalf("%v (%s), the best of all takes %d", p, why, best)
		}
		if why != "" {
			refused++
			continue
		}
		devices := inOrder(&p)
		if !slices.IsSorted(devices) {
			moved++
		}
		if got := slowest(x, p.Pipelines[0].Cuts, devices); got != best {
			t.Errorf("cuts %v on %v take %d, the best of all %d", p.Pipelines[0].Cuts, devices, got, best)
		}
		if _, why := x.Simulate(&p); why != "" {
			t.Error(why)
		}
	}
	if refused == 0 || refused > cases/2 || moved < cases/10 {
		t.Errorf("of %d cases %d do not fit, %d in another order: expected some of each", cases, refused, moved)
	}
}

// TestAlike: like devices stand as they are numbered, and many of them are few places.
func TestAlike(t *testing.T) {
	m := parallel.Model{Profile: paralleltest.Uneven(rand.New(rand.NewPCG(2, 2)), 70), Batch: 64}
	x := parallel.NewSimulator(&m, parallel.Even(parallel.Device{TFlops: 1}, 64, 1, 1000))
	l := parallel.Limits{Stages: true, Sequences: []parallel.Sequence{paralleltest.OneFOneB}}
	all, why := Planner{}.Plans(x, l)
	if why != "" {
		t.Fatal(why)
	}
	if staged, why := all[0].Staged(); why != "" || staged.Routes != nil {
		t.Errorf("routes %v, %s: expected stage s on device s", staged.Routes, why)
	}
}

// TestWorkers: nodes are workers, or workers have a device of each node; what is fastest of all is
// chosen. Four slow devices of little memory do not hold the model, a fast and a slow one do.
func TestWorkers(t *testing.T) {
	chain := slices.Repeat(paralleltest.Chain{{Forward: 1000, Input: 1000, Weight: 1000, ParamKiB: 10 << 10, OutputKiB: 1024}}, 12)
	m := parallel.Model{Profile: chain, Batch: 16, State: parallel.State{Weights: 1}}
	on := &parallel.Devices{Kinds: []parallel.Device{{Name: "fast", TFlops: 2, Memory: 200}, {Name: "slow", TFlops: 1, Memory: 10}},
		Nodes: []parallel.Node{{Kind: 0, Count: 4, Out: 40000}, {Kind: 1, Count: 4, Out: 40000}}}
	x, best := parallel.NewSimulator(&m, on.Index()), unit.Forever
	for copies, refused := range map[int]bool{1: false, 2: true, 4: false, 0: false} {
		all, why := Planner{}.Plans(x, parallel.Limits{Copies: copies, Sequences: []parallel.Sequence{paralleltest.OneFOneB}})
		if (why != "") != refused {
			t.Fatalf("%d workers: %v, %s", copies, all, why)
		}
		if refused {
			continue
		}
		p := all[0].Plan.Pipelines
		if copies > 0 && len(p) != copies || copies == 4 && on.NodeOf(p[0].Ranks[0].Devices[0]) == on.NodeOf(p[0].Ranks[1].Devices[0]) {
			t.Errorf("%d workers: %v", copies, &all[0].Plan)
		}
		best = min(best, all[0].Result.Step)
	}
	all, _ := Planner{}.Plans(x, parallel.Limits{Sequences: []parallel.Sequence{paralleltest.OneFOneB}})
	if all[0].Result.Step != best {
		t.Errorf("%v takes %d, the best of all %d", &all[0].Plan, all[0].Result.Step, best)
	}
	on.Kinds[1].Memory = 200
	if all, why := (Planner{}).Plans(parallel.NewSimulator(&m, on), parallel.Limits{Copies: 2, Sequences: []parallel.Sequence{paralleltest.OneFOneB}}); why != "" || len(all[0].Plan.Pipelines) != 2 {
		t.Errorf("%v (%s): expected each node as a worker", all, why)
	}
}

// TestTooMany: what would take too long to search is refused in words.
func TestTooMany(t *testing.T) {
	on := &parallel.Devices{}
	for i := range 20 {
		on.Kinds = append(on.Kinds, parallel.Device{Name: "unit", TFlops: float64(1 + i)})
		on.Nodes = append(on.Nodes, parallel.Node{Kind: int32(i), Count: 1})
	}
	m := parallel.Model{Profile: paralleltest.Uneven(rand.New(rand.NewPCG(2, 2)), 30), Batch: 4}
	l := parallel.Limits{Stages: true, Sequences: []parallel.Sequence{paralleltest.OneFOneB}}
	if all, why := (Planner{}).Plans(parallel.NewSimulator(&m, on.Index()), l); why == "" {
		t.Errorf("twenty kinds are planned: %v", all)
	}
}
