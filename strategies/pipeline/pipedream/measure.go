package pipedream

import (
	_ "embed" // for the claims

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is published of PipeDream without a flush, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// HetClaim is what is published of HetPipe's waves.
//
//go:embed hetpipe.yaml
var HetClaim []byte

// Measure holds the versions of each stage's weights against n-s, those of the orders.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	pipelinetest.Draw(seed, 50, func(c pipelinetest.Case) {
		s := full(c.Ranks, c.Microbatches, c.Ranks, 1)
		for stage, order := range s.Orders {
			r.Note("versions", float64(versions(order)), float64(c.Ranks-stage))
		}
		t := c.Time(New(Config{1}))
		r.Note("makespan", float64(t.Makespan), float64(c.All())*float64(c.Microbatches+c.Ranks-1))
	})
	return r
}

// versions counts the weights that a stage holds at most, where each backward pass makes new ones.
func versions(order []pipeline.Op) (most int) {
	under := 0
	for _, op := range order {
		if op.Kind == pipeline.Backward {
			under--
			continue
		}
		under++
		most = max(most, under)
	}
	return most
}

// MeasureHet holds how many microbatches before it one lacks against 2 Nm - 2.
func MeasureHet(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	pipelinetest.Draw(seed, 50, func(c pipelinetest.Case) {
		for wave := 2; wave <= 2*c.Ranks; wave++ {
			s := full(c.Ranks, 3*wave, wave, wave)
			most := 0
			for _, order := range s.Orders {
				finished := 0
				for _, op := range order {
					if op.Kind == pipeline.Forward {
						most = max(most, int(op.Micro)-finished/wave*wave)
					} else {
						finished++
					}
				}
			}
			r.Note("lacks", float64(most), float64(2*wave-2))
		}
	})
	return r
}
