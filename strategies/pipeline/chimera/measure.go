package chimera

import (
	_ "embed" // for the claims

	"math/rand/v2"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is published of Chimera in closed form, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// MixClaim is what MixPipe is to be beside Chimera.
//
//go:embed mixpipe.yaml
var MixClaim []byte

// Measure holds both ways to have more microbatches than ranks against the published idle
// share, (D-2)/(2N+D-2), and what the ranks keep against D/2+1 to D, for up to 16 ranks.
func Measure(uint64) map[string]float64 {
	r := pipelinetest.Range{}
	for d := 4; d <= 16; d += 2 {
		for n := d; n <= 4*d; n += d {
			published := float64(d-2) / float64(2*n+d-2)
			equal := pipelinetest.Case{Ranks: d, Microbatches: n, Forward: 10, Input: 5, Weight: 5}
			long := pipelinetest.Case{Ranks: d, Microbatches: n, Forward: 10, Input: 10, Weight: 10}
			t := equal.Time(New(Default()))
			r.Note("equal", t.IdleShare(), published)
			for rank, peak := range t.Peak {
				r.Note("kept", float64(peak.Total()), float64(d/2+1+min(rank, d-1-rank)))
			}
			t = long.Time(New(Default()))
			if n == d {
				r.Note("one", t.IdleShare(), float64(d-2)/(1.5*float64(n)+float64(d-2)))
				continue
			}
			r.Note("units", t.IdleShare(), published)
			t = long.Time(New(Config{Pairs}))
			r.Note("pairs", t.IdleShare(), published)
			r.Note("pairs_kept", float64(pipelinetest.Most(t)), float64(2*d))
		}
	}
	return r
}

// MeasureMix compares what MixPipe finds with Chimera's order, on drawn stages that are not
// alike, without a limit of memory and in the memory of Chimera.
func MeasureMix(seed uint64) map[string]float64 {
	r, dice := pipelinetest.Range{}, rand.New(rand.NewPCG(seed, 2))
	for range 100 {
		d := 2 * (1 + dice.IntN(4))
		n, c := 1+dice.IntN(4*d), pipeline.Like(d)
		for i := range c.Stages {
			pass := func() unit.Duration { return unit.Duration(10 + dice.IntN(10)) }
			c.Stages[i] = pipeline.Stage{Forward: pass(), Input: pass(), Weight: pass(), ActivationKiB: 1 << 10}
		}
		takes := func(o pipeline.Ordering) pipeline.Score {
			s, why := o.Schedule(d, n, &c)
			score, again := s.Score(&c)
			if why+again != "" {
				panic(why + again) // every number of microbatches has an order
			}
			return score
		}
		base := takes(New(Default()))
		r.Note("free", float64(takes(Mix{}).Makespan), float64(base.Makespan))
		c.Memory = unit.MiB(base.PeakKiB >> 10)
		limited := takes(Mix{})
		r.Note("limited", float64(limited.Makespan), float64(base.Makespan))
		r.Note("kept", float64(limited.PeakKiB), float64(base.PeakKiB))
	}
	return r
}
