package easyscale

import (
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/allocate/divide"
	"github.com/musterdl/muster/mechanism/rank"
)

// Measure compares the gain of a proposal with the time that the job saves by each of the
// devices taken, if nothing else changes until it ends; the mean over drawn moments. The
// devices are the artefact's 32 V100, 16 P100 and 16 T4, 3.1, 2.4 and 1 fast.
func Measure(seed uint64) map[string]float64 {
	const moments, active = 40, 12
	relative, sizes := []float64{3.1, 2.4, 1}, []int32{4, 8, 16, 32}
	rng, sum := rand.New(rand.NewPCG(seed, 2)), 0.0
	for range moments {
		free, tenants, work := []int32{32, 16, 16}, make([]Tenant, active), make([]float64, active)
		for j := range tenants {
			logical := sizes[rng.IntN(len(sizes))]
			tenants[j] = Tenant{Least: 1, Most: logical, Counts: make([]int32, len(free)), Kinds: 1<<len(free) - 1, Speed: func(kind int, n int32) (speed, waste float64) {
				split, _ := Best(logical, relative[kind:kind+1], []int32{n})
				return split.Speed, split.Waste
			}}
			work[j] = float64(logical) * math.Exp(1.5*rng.NormFloat64())
			if k, ok := start(&tenants[j], free); ok {
				has := 1 + rng.Int32N(min(free[k], logical, 4))
				tenants[j].gain(k, has)
				free[k] -= has
			}
		}
		var proposals []divide.Proposal
		for j := range tenants {
			proposals = propose(j, &tenants[j], free, Default().MaxWaste, proposals)
		}
		var gains, saved []float64
		for _, p := range proposals {
			t := &tenants[p.Job]
			now, _ := t.Speed(t.on())
			then, _ := t.Speed(p.Kind, t.Counts[p.Kind]+p.Units)
			gains = append(gains, p.Gain)
			saved = append(saved, work[p.Job]*(1/now-1/then)/float64(p.Units))
		}
		sum += rank.Correlation(gains, saved) / moments
	}
	return map[string]float64{"inner_rank_correlation": sum}
}
