package hetpipe

import (
	_ "embed" // for Claim

	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is published of the cut, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds cuts and orders of drawn devices against all there are.
func Measure(seed uint64) map[string]float64 {
	r, dice := pipelinetest.Range{}, rand.New(rand.NewPCG(seed, 1))
	for range 1000 {
		x := paralleltest.Unlike(dice)
		all, best := least(x)
		p, why := plan(x, [][]int32{all}, paralleltest.OneFOneB, 1)
		if why != "" {
			continue // of those that do not fit the tests tell
		}
		r.Note("slowest", float64(slowest(x, p.Pipelines[0].Cuts, inOrder(&p))), float64(best))
		most := 2. // where it does not fit
		if found, why := x.Simulate(&p); why == "" {
			most = 0
			for k, d := range inOrder(&p) {
				most = max(most, float64(found.Parts[0].Timing.Peak[k].Total())/float64(x.On.Kind(d).Memory)/1024)
			}
		}
		r.Note("memory", most, 1)
	}
	return r
}

// slowest is the time of the slowest stage, with what it receives and what comes back to it,
// counted layer by layer; Forever where a stage does not fit.
func slowest(x *parallel.Simulator, cuts, devices []int32) (most unit.Duration) {
	first := int32(0)
	for stage, end := range append(slices.Clone(cuts), int32(x.Model.Profile.Layers())) {
		rank := parallel.Rank{Tensor: 1, Replicas: 1, Devices: devices[stage : stage+1]}
		s, _, _ := x.Stage(&rank, parallel.Slice{First: int(first), End: int(end)}, 1, 1)
		if s.ParamKiB+s.StateKiB+int64(len(devices)-stage)*s.ActivationKiB > int64(x.On.Kind(devices[stage]).Memory)<<10 {
			return unit.Forever
		}
		took := s.Forward + s.Input + s.Weight
		if stage > 0 {
			into, _, _ := x.Stage(&rank, parallel.Slice{First: int(first) - 1, End: int(first)}, 1, 1)
			took += 2 * x.On.Between(devices[stage-1:stage], devices[stage:stage+1]).Takes(into.OutputKiB)
		}
		most, first = max(most, took), end
	}
	return most
}

// least is that of all cuts and all orders of the devices.
func least(x *parallel.Simulator) (all []int32, best unit.Duration) {
	for d := range x.On.Len() {
		all = append(all, int32(d))
	}
	best = unit.Forever
	paralleltest.Orders(slices.Clone(all), func(devices []int32) {
		paralleltest.Cuts(x.Model.Profile.Layers(), len(devices), func(cuts []int32) { best = min(best, slowest(x, cuts, devices)) })
	})
	return all, best
}

// inOrder are the devices of a worker by their stages.
func inOrder(p *parallel.Plan) (devices []int32) {
	for _, r := range p.Pipelines[0].Ranks {
		devices = append(devices, r.Devices[0])
	}
	return devices
}
