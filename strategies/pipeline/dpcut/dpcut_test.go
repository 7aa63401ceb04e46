package dpcut

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"pgregory.net/rapid"
)

// value is what a cut is worth: its slowest part, then the way through. An
// infeasible cut takes forever.
func value(layers []workload.Layer, cuts []int32, p *pipeline.Params) [2]unit.Duration {
	var slowest, through unit.Duration
	first := int32(0)
	for s, end := range append(slices.Clone(cuts), int32(len(layers))) {
		var forward, backward unit.Duration
		var params, kept int64
		for _, l := range layers[first:end] {
			forward, backward = forward+l.Forward, backward+l.Backward
			params, kept = params+l.ParamKiB, kept+l.ActivationKiB
		}
		if p.Memory > 0 && p.PeakKiB(params, kept, s) > int64(p.Memory)<<10 {
			return [2]unit.Duration{unit.Forever, unit.Forever}
		}
		stage, link := p.Compute(forward, s)+p.Compute(backward, s), unit.Duration(0)
		if first > 0 {
			link = 2 * p.Transfer(layers[first-1].OutputKiB)
		}
		slowest, through, first = max(slowest, stage, link), through+stage+link, end
	}
	return [2]unit.Duration{slowest, through}
}

// every calls f with all cuts of n layers into so many stages.
func every(n, stages int, cuts []int32, f func([]int32)) {
	if len(cuts) == stages-1 {
		f(cuts)
		return
	}
	first := int32(1)
	if len(cuts) > 0 {
		first = cuts[len(cuts)-1] + 1
	}
	for c := first; c < int32(n); c++ {
		every(n, stages, append(slices.Clone(cuts), c), f)
	}
}

func TestEqualsBruteForce(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		span, size := rapid.IntRange(0, 100), rapid.Int64Range(0, 1000)
		layers := make([]workload.Layer, rapid.IntRange(1, 8).Draw(t, "layers"))
		for i := range layers {
			layers[i] = workload.Layer{Forward: unit.Duration(span.Draw(t, "forward")), Backward: unit.Duration(span.Draw(t, "backward")),
				ParamKiB: size.Draw(t, "params"), OutputKiB: size.Draw(t, "output"), ActivationKiB: size.Draw(t, "activations")}
		}
		stages := rapid.IntRange(1, min(4, len(layers))).Draw(t, "stages")
		p := pipeline.Params{Bandwidth: unit.Mbps(rapid.IntRange(0, 200_000).Draw(t, "bandwidth")), ParamCopies: 4,
			Memory: unit.MiB(rapid.IntRange(0, 20).Draw(t, "memory"))}
		for s := range stages {
			p.Speeds = append(p.Speeds, rapid.Float64Range(0.25, 4).Draw(t, "speed"))
			p.InFlight = append(p.InFlight, int32(stages-s))
		}
		best := [2]unit.Duration{unit.Forever, unit.Forever}
		every(len(layers), stages, nil, func(cuts []int32) {
			if v := value(layers, cuts, &p); slices.Compare(v[:], best[:]) < 0 {
				best = v
			}
		})
		cuts, why := Partitioner{}.Cut(layers, stages, p)
		if best[0] == unit.Forever {
			if !strings.Contains(string(why), "fits devices of") {
				t.Fatalf("nothing fits, but cut %v, %q", cuts, why)
			}
			return
		}
		if got := value(layers, cuts, &p); why != "" || got != best {
			t.Fatalf("cut %v (%q) is worth %v, the best %v", cuts, why, got, best)
		}
	})
}

// TestLinks: of two balanced places the one with less to send, and no way
// through, however short, over a link slower than the stages.
func TestLinks(t *testing.T) {
	layer := func(outputKiB int64) workload.Layer {
		return workload.Layer{Forward: 50, Backward: 50, OutputKiB: outputKiB}
	}
	for _, c := range []struct {
		layers []workload.Layer
		want   []int32
	}{
		{[]workload.Layer{layer(1), layer(9), layer(1)}, []int32{1}},
		{[]workload.Layer{layer(9), layer(1), layer(1)}, []int32{2}},
		{[]workload.Layer{layer(1), layer(3000), layer(1), layer(1)}, []int32{1}},
		// Links of 190us each, where 210us and nearly nothing would be less in all.
		{[]workload.Layer{layer(347), layer(384), layer(347), layer(1), layer(1)}, []int32{1, 3}},
	} {
		cuts, why := Partitioner{}.Cut(c.layers, len(c.want)+1, pipeline.Params{Bandwidth: 30_000})
		if why != "" || !slices.Equal(cuts, c.want) {
			t.Errorf("cuts %v, %q, want %v", cuts, why, c.want)
		}
	}
}
