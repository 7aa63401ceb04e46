package piper

import (
	_ "embed" // for Claim

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is expected of the program, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// printed is what algo.cpp of msr-fiddle/piper (commit d7fc8cf9, g++ -O3) prints as the time per
// sample, for its input with so many devices, so much memory and so many microbatches.
var printed = []struct {
	file         string
	devices      int
	memoryGiB    float64
	microbatches int
	takes        float64
}{
	{"bert32a100", 8, 8, 960, 0.166904267},
	{"bert32a100", 64, 8, 960, 0.020357099},
	{"bert32a100", 64, 4, 512, 0.026964672},
	{"bert32a100", 256, 8, 960, 0.005155649},
}

// Measure holds the program against what Piper's own prints for its own inputs, and its plans,
// counted anew, against what it says.
func Measure(open figures.Open, _ uint64) (map[string]float64, error) {
	r := pipelinetest.Range{}
	for _, p := range printed {
		g, err := Read(open, "pipeline-profiles/piper/"+p.file+".json.gz")
		if err != nil {
			return nil, err
		}
		g.Devices, g.Memory, g.Microbatches = p.devices, p.memoryGiB*(1<<30), p.microbatches
		sums := min(p.devices, p.microbatches)
		v, err := Solve(g, sums)
		if err != nil {
			return nil, err
		}
		r.Note("published", v.Best(sums), p.takes)
		r.Note("again", g.Evaluate(v.Stages(sums)), v.Best(sums))
	}
	return r, nil
}
