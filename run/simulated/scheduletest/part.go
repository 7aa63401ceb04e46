package scheduletest

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/allocate/fixed"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/pipeline/equal"
	"github.com/musterdl/muster/strategies/pipeline/gpipe"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/srtf"
)

// ConformPart proves that what the function makes for a part keeps the contract in whole
// simulations beside simple strategies and an order that displaces: the state stays legal
// and the ledger balanced, every job that was admitted finishes, on unlike devices and
// through lost nodes, an empty cluster is survived, and the same history gives the same
// decisions. Orders, placers and joint deciders have suites of their own, which ask more.
func ConformPart(t *testing.T, part *strategy.Part, made func() any) {
	if !part.Fulfils(made()) {
		t.Fatalf("%T is no %s", made(), part.Name)
	}
	t.Run("empty cluster", func(t *testing.T) { conformPart(t, Nodes(1, 4, 0), nil, part, made, nature{}) })
	t.Run("history", func(t *testing.T) {
		draws.Cases{Few: 40}.Check(t, func(t *rapid.T) {
			c := unlike(rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "devices"))
			for i := range c.Nodes {
				c.Nodes[i].Uplink = 1000
			}
			jobs := drawElastic(t, c)
			for i := range jobs {
				drawRest(t, &jobs[i])
			}
			n := nature{slow: drawSlow(t, c)}
			switch rapid.IntRange(0, 3).Draw(t, "breaks") {
			case 0:
				n.breaks = simulated.Breaks{Seed: 7, NodeEvery: unit.Hour, NodeFor: 10 * unit.Minute}
			case 1:
				n.breaks = simulated.Breaks{Seed: 7, DeviceEvery: unit.Hour, DeviceFor: 10 * unit.Minute}
			}
			conformPart(t, c, jobs, part, made, n)
		})
	})
}

// nature is what befalls a history.
type nature struct {
	breaks simulated.Breaks
	slow   []world.Slow
}

// drawSlow draws devices and links that are slow for a time, some of them twice at once.
func drawSlow(t *rapid.T, c *cluster.Cluster) (all []world.Slow) {
	for range rapid.IntRange(0, 3).Draw(t, "slow") {
		is := world.Slow{Device: plan.None, Times: rapid.Float64Range(.5, 4).Draw(t, "times"), From: unit.Time(rapid.IntRange(0, 60).Draw(t, "from")) * unit.Time(unit.Minute)}
		if rapid.IntRange(0, 3).Draw(t, "forever") > 0 {
			is.Until = is.From.Add(unit.Duration(rapid.IntRange(1, 60).Draw(t, "for")) * unit.Minute)
		}
		if rapid.Bool().Draw(t, "link") {
			is.Link = rapid.Int32Range(0, int32(c.Links())-1).Draw(t, "which")
		} else {
			is.Device = plan.DeviceID(rapid.IntRange(0, len(c.Devices)-1).Draw(t, "which"))
		}
		all = append(all, is)
	}
	return all
}

// drawRest draws what parts besides orders look at: declared times, deadlines, traffic and
// layers.
func drawRest(t *rapid.T, j *Job) {
	if rapid.Bool().Draw(t, "declares") {
		j.Estimate = j.Duration
		j.Deadline = unit.Duration(rapid.IntRange(0, 3).Draw(t, "deadline")) * j.Duration
	}
	j.Traffic = unit.Mbps(rapid.IntRange(0, 2).Draw(t, "traffic")) * 400
	if j.Gang >= 2 && rapid.Bool().Draw(t, "staged") {
		layer := workload.Layer{Forward: 5 * unit.Millisecond, Backward: 10 * unit.Millisecond, ParamKiB: 100, OutputKiB: 10}
		j.Pipeline = workload.Pipeline{Stages: j.Gang, Microbatches: 4}
		if j.Gang%2 == 0 && rapid.Bool().Draw(t, "copies") { // of each stage, of which one may go on
			j.Pipeline.Stages, j.Sizes = j.Gang/2, []int32{j.Gang / 2, j.Gang}
		}
		for range j.Gang + 2 {
			j.Pipeline.Layers = append(j.Pipeline.Layers, layer)
		}
		for from := .2; from < 1 && rapid.Bool().Draw(t, "drifts"); from += .3 {
			j.Drifts = append(j.Drifts, workload.Drift{From: from, End: rapid.Int32Range(1, j.Gang).Draw(t, "layers"), Times: rapid.Float64Range(.5, 3).Draw(t, "times")})
		}
	}
}

// Simple is a composition of simple strategies and an order that displaces.
func Simple() strategy.Filled {
	return strategy.Filled{profile.EstimatePart: {Strategy: declared.Estimator{}}, schedule.OrderPart: {Strategy: srtf.Order{}},
		allocate.SizePart: {Strategy: fixed.Sizer{}}, allocate.PlacePart: {Strategy: firstfit.Placer{}}, flow.PolicyPart: {Strategy: maxmin.Policy{}},
		pipeline.CutPart: {Strategy: equal.Partitioner{}}, pipeline.SequencePart: {Strategy: gpipe.Ordering{}}}
}

// conformPart runs a history twice.
func conformPart(t fataler, c *cluster.Cluster, jobs Jobs, part *strategy.Part, made func() any, n nature) {
	run := func() Outcome {
		filled := Simple()
		filled[part] = strategy.Filling{Name: part.Name, Strategy: made()}
		config := Config(c, jobs, compose.PartsOf(filled, Simple()))
		config.Prices.Restart, config.Breaks, config.World.Slow = 30*unit.Second, n.breaks, n.slow
		return mustRun(t, config)
	}
	twice(t, run)
}
