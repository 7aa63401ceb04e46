package pipeswitch

import (
	"math/rand/v2"

	"github.com/musterdl/muster/allocate/switching"
	"github.com/musterdl/muster/model/unit"
)

// Measure counts the models, of 20 with up to 14 layers, of which some grouping finishes
// before the one that was found.
func Measure(seed uint64) map[string]float64 {
	dice, path, missed := rand.New(rand.NewPCG(seed, 0)), Default().switching().Path, 0.0
	for range 20 {
		layers := make([]switching.Layer, 2+dice.IntN(13))
		for i := range layers {
			layers[i] = switching.Layer{Bytes: dice.Int64N(4 << 20), Compute: unit.Duration(dice.IntN(400))}
		}
		found := path.Group(layers).Finish
		for cuts := range 1 << (len(layers) - 1) {
			var ends []int
			for i := range len(layers) - 1 {
				if cuts&(1<<i) != 0 {
					ends = append(ends, i+1)
				}
			}
			if path.Finish(layers, append(ends, len(layers))) < found {
				missed++
				break
			}
		}
	}
	return map[string]float64{"missed_optima": missed}
}
