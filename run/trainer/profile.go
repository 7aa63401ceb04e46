package trainer

import (
	"fmt"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Speed turns operations into time for Profile.
type Speed struct {
	// Microbatches is the number of parts that a plan makes of the global batch.
	Microbatches int
	// GFLOPS is what one worker was measured to compute, in 10^9 operations per second.
	GFLOPS float64
}

// Profile returns the layers of the model, embedding to head, as step 4 wants them
// for a cut: times of one microbatch counted from the shapes, not measured.
func Profile(c Config, s Speed) []workload.Layer {
	layers := make([]workload.Layer, c.depth())
	tokens := (c.Batch + s.Microbatches - 1) / s.Microbatches * c.Seq
	for i := range layers {
		name := fmt.Sprintf("block%d", i)
		output := tokens * c.Dim
		switch i {
		case 0:
			name = "embedding"
		case c.depth() - 1:
			name, output = "head", 0
		}
		flop, kept := layerCost(c.Shape, i, tokens)
		forward := unit.Seconds(flop / (s.GFLOPS * 1e9))
		layers[i] = workload.Layer{
			Name:          name,
			Forward:       max(forward, unit.Microsecond),
			Backward:      max(2*forward, unit.Microsecond), // one product each for inputs and weights
			ParamKiB:      floatsKiB(newLayer(c.Shape, i, 1).size()),
			OutputKiB:     floatsKiB(output),
			ActivationKiB: floatsKiB(kept),
		}
	}
	return layers
}

// layerCost returns the operations of a forward pass and the floats it keeps for the
// backward pass.
func layerCost(s Shape, index, tokens int) (flop float64, floats int) {
	dim := s.Dim
	switch index {
	case 0:
		return float64(tokens * dim), tokens * dim
	case s.Layers + 1:
		return 2 * float64(tokens*dim) * float64(s.Vocab), tokens * (2*dim + 1 + s.Vocab)
	}
	weights := (3 + 1 + 2*mlpFactor) * dim
	attention := 2 * s.Seq // scores and mixing, over the whole square
	attended := tokens * s.Seq * s.Heads
	perToken := 2*(2*dim+1) + 3*dim + 3*dim + 3*mlpFactor*dim
	return 2 * float64(tokens*dim) * float64(weights+attention), tokens*perToken + attended
}

// floatsKiB is the size of n float32s, rounded up.
func floatsKiB(n int) int64 { return int64((4*n + 1023) / 1024) }
