package drift

import (
	_ "embed" // for Claim
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/pipeline/shape"
)

// Claim is what must come back of what a drift takes, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// What is played.
const (
	slower  = 1.3 // what a stage's layers take after the drift
	horizon = 1000
	jitter  = .1 // by which part a measured time of a stage is off at most
	inRank  = 12 // layers
	pause   = 30 * unit.Second
	out     = 100_000
)

// Measure plays drawn drifts of drawn models, and of GPT-3. What jitter does, which is no drift, the
// order that has levels measures itself.
func Measure(order pipeline.Ordering, shaken func(seed uint64) map[string]float64) func(seed uint64) map[string]float64 {
	sequence := parallel.Sequence{Name: "1f1b", Order: order}
	return func(seed uint64) map[string]float64 {
		got, dice := shaken(seed), rand.New(rand.NewPCG(seed, 6))
		for _, ranks := range []int{4, 8, 16} {
			var layers, device, calm tally
			for range cases {
				c := paralleltest.Uneven(dice, inRank*ranks)
				m := &parallel.Model{Name: "drawn", Profile: c, Batch: 4 * ranks, State: parallel.MixedAdam}
				on := parallel.Even(parallel.Device{Name: "unit", TFlops: .1}, ranks, 1, out)
				x, stage := parallel.NewSimulator(m, on), dice.IntN(ranks)
				planner := recut(sequence, m, 1, ranks)
				layers.drift(x, planner, stage, true, dice)
				device.drift(x, planner, stage, false, dice)
				calm.drift(x, planner, -1, true, dice)
			}
			layers.tell(got, fmt.Sprint("layers", ranks))
			device.tell(got, fmt.Sprint("device", ranks))
			got[fmt.Sprint("calm", ranks)] = calm.changes
		}
		var large tally
		if x, ok := gpt(); ok {
			for stage := range 8 {
				large.drift(x, recut(sequence, x.Model, 8, 8), stage, true, dice)
			}
		}
		large.tell(got, "gpt")
		return got
	}
}

// cases is how many models are drawn for each number of ranks.
const cases = 10

// gpt is GPT-3 on eight nodes of eight devices, with whole blocks.
func gpt() (*parallel.Simulator, bool) {
	s, not := shape.Find("gpt-3")
	profile, whys := shape.New(s, shape.Half)
	kind, why := shape.Device("A100-80GB", shape.Half)
	m := &parallel.Model{Name: s.Name, Profile: profile, Batch: 64, State: parallel.MixedAdam}
	return parallel.NewSimulator(m, parallel.Even(kind, 8, 8, out)), not+why == "" && len(whys) == 0
}

// recut is a planner of one pipeline with microbatches of one sample.
func recut(q parallel.Sequence, m *parallel.Model, tensor, ranks int) Recut {
	return Recut{parallel.Shape{Sequence: q, Samples: 1, Microbatches: m.Batch, Tensor: tensor, Ranks: ranks, Copies: 1}}
}

// tally adds up throughputs, in steps for each second, over what was played.
type tally struct {
	before, stays, goes, best float64 // without a drift, by the same plan, by another one in time, and at once for nothing
	changes, paused, cases    float64
}

func (t *tally) tell(got map[string]float64, name string) {
	lost := t.before - t.stays
	got[name+"_lost"], got[name+"_back"], got[name+"_best"] = lost/t.before, (t.goes-t.stays)/lost, (t.best-t.stays)/lost
	got[name+"_changes"], got[name+"_paused_s"] = t.changes/t.cases, t.paused/max(1, t.changes)
}

// drift makes the layers of a stage slower, or its devices, when the run begins; none of a stage
// below zero. The run is planned before, and goes on for as many steps as the horizon has.
func (t *tally) drift(x *parallel.Simulator, planner parallel.Planner, stage int, layers bool, dice *rand.Rand) {
	all, why := planner.Plans(x, parallel.Limits{})
	if why != "" {
		return
	}
	run := Run{Plan: all[0], Planner: planner, Pause: pause, Steps: 10, Skew: jitter}
	run.Believe(x)
	real := truth(x, &all[0].Plan, stage, layers)
	now, why := real.Simulate(&all[0].Plan)
	best, not := planner.Plans(real, parallel.Limits{})
	if why+not != "" {
		return
	}
	t.cases++
	t.before += 1 / all[0].Result.Step.Seconds()
	t.stays += 1 / now.Step.Seconds()
	t.best += 1 / min(now.Step, best[0].Result.Step).Seconds()
	took := unit.Duration(0)
	for n := range horizon {
		took += now.Step
		measured := Times(&now)
		for _, stages := range measured {
			for s := range stages {
				stages[s] = unit.Duration(float64(stages[s]) * (1 + jitter*(2*dice.Float64()-1)))
			}
		}
		if how, changes := run.Step(measured, horizon-1-n); changes {
			took += how.Takes
			t.changes++
			t.paused += how.Takes.Seconds()
			now, _ = real.Simulate(&how.Plan) // it fits: only times differ
		}
	}
	t.goes += horizon / took.Seconds()
}

// truth is a simulator of what is so after the drift.
func truth(x *parallel.Simulator, plan *parallel.Plan, stage int, layers bool) *parallel.Simulator {
	m, on, one := *x.Model, *x.On, &plan.Pipelines[0]
	if stage < 0 {
		return x
	}
	if !layers {
		on.Speeds = slices.Repeat([]float64{1}, on.Len())
		for _, d := range one.Ranks[stage].Devices {
			on.Speeds[d] = 1 / slower
		}
		return parallel.NewSimulator(&m, &on)
	}
	s := Scaled{m.Profile, slices.Repeat([]float64{1}, m.Profile.Layers())}
	ends := append(slices.Concat([]int32{0}, one.Cuts), int32(m.Profile.Layers()))
	for i := ends[stage]; i < ends[stage+1]; i++ {
		s.Times[i] = slower
	}
	m.Profile = s
	return parallel.NewSimulator(&m, &on)
}
