package adapipe

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/pipeline/pipelinetest"
	"github.com/musterdl/muster/pipeline/shape"
)

// Claim is what is published of it, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds what is found against all cuts of drawn layers that run in one way, the closed
// form against the steps, and large models against the best that runs all layers in one way.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	paralleltest.DrawTight(seed, 200, 8, 4, func(x *parallel.Simulator, s parallel.Shape) {
		found, why := adapt(x, &s, false)
		if why != "" {
			return // of those that have no plan the tests tell
		}
		r.Note("memory", float64(found[0].Result.PeakKiB()), float64(x.On.Kinds[0].Memory)*1024)
		uniform := unit.Forever
		for way := range int8(3) {
			s.Ways = x.AllIn(way, 1)
			step := paralleltest.Least(x, s)
			if uniform = min(uniform, step); way == 2 && step < unit.Forever {
				r.Note("full", float64(found[0].Result.Step), float64(step))
			}
		}
		if uniform < unit.Forever {
			r.Note("uniform", float64(found[0].Result.Step), float64(uniform))
		}
	})
	exact, cases := 0, 2000
	paralleltest.Draw(seed, cases, 8, 4, func(x *parallel.Simulator, s parallel.Shape) {
		c, _ := newChoice(x, &s, true)
		best := c.cuts(s.Microbatches)[0]
		s.Cuts = best.first[1:]
		step := paralleltest.Step(x, &s)
		r.Note("form", float64(best.step), float64(step))
		if best.step == step {
			exact++
		}
	})
	r["exact"] = float64(exact) / float64(cases)
	for _, name := range []string{"gpt-3", "llama-3-70b"} {
		adapted, full, uniform := large(name)
		r[name+"_full"], r[name+"_uniform"] = full/adapted, uniform/adapted
	}
	return r
}

// large are the steps of a published model on 8 nodes of 8 A100, tensor 8, 8 stages and 64
// microbatches of one sample: adapted, all computed again, and the best where all layers run in
// one way. The latter are cut by time.
func large(name string) (adapted, full, uniform float64) {
	of, why := shape.Find(name)
	profile, whys := shape.New(of, shape.Half)
	device, not := shape.Device("A100-80GB", shape.Half)
	if why+not != "" || len(whys) > 0 {
		panic(why + not) // they are presets
	}
	m := parallel.Model{Profile: profile, Batch: 64, State: parallel.MixedAdam}
	x := parallel.NewSimulator(&m, parallel.Even(device, 8, 8, 1_600_000))
	s := parallel.Shape{Sequence: paralleltest.OneFOneB, Samples: 1, Microbatches: 64, Tensor: 8, Ranks: 8, Copies: 1, Cuts: make([]int32, 7)}
	found, why := adapt(x, &s, false)
	if why != "" {
		panic(why)
	}
	least := unit.Forever
	for way := range int8(3) {
		s.Ways = x.AllIn(way, 8)
		if s.Cuts, why = x.Cut(&s, 8); why == "" {
			step := paralleltest.Step(x, &s)
			least, full = min(least, step), float64(step)
		}
	}
	return float64(found[0].Result.Step), full, float64(least)
}
