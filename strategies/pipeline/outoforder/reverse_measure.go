package outoforder

import (
	_ "embed" // for ReverseClaim
	"math"
	"slices"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/overlap/overlaptest"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// ReverseClaim is what is known of reverse first-k, as data, for muster reproduce.
//
//go:embed reverse.yaml
var ReverseClaim []byte

// MeasureReverse holds reverse first-k against the usual order, for 1,000 drawn stages.
func MeasureReverse(seed uint64) map[string]float64 {
	r := pipelinetest.Range{"order_differs": 0, "gradients_differ": 0, "chosen": 0}
	overlaptest.Stages(seed, 1000, func(c *overlap.Costs) {
		n := len(c.Layers)
		usual, none := overlap.Single(n), first(n, 0)
		if !slices.Equal(none.Passes(n), usual.Passes(n)) || !slices.Equal(none.Order(n), usual.Order(n)) {
			r["order_differs"]++
		}
		want := gradients(usual.Passes(n), n)
		for k := range n + 1 {
			p := first(n, k)
			if !slices.Equal(gradients(p.Passes(n), n), want) {
				r["gradients_differ"]++
			}
		}
		chosen := Reverse{}.Merge(c)
		if chosen.Reverse > 0 {
			r["chosen"]++
		}
		found := float64(overlaptest.Iteration(&chosen, c))
		r.Note("own", found, float64(overlaptest.Iteration(&none, c)))
		r.Note("all", found, float64(overlaptest.Iteration(&usual, c)))
	})
	return r
}

// gradients are what passes make of the weights of a chain of layers y = tanh(w x): NaN where
// one is not made, or before what it needs.
func gradients(passes []pipeline.Op, n int) []float64 {
	unknown := func(n int) []float64 { return slices.Repeat([]float64{math.NaN()}, n) }
	w, x, outputs, weights := make([]float64, n), make([]float64, n+1), unknown(n+1), unknown(n)
	x[0] = 1
	for l := range w {
		w[l] = 1 + float64(l)/float64(n)
		x[l+1] = math.Tanh(w[l] * x[l])
	}
	outputs[n] = x[n] - 1
	for _, op := range passes {
		l := op.Stage
		behind := outputs[l+1] * (1 - x[l+1]*x[l+1])
		switch op.Kind {
		case pipeline.Input:
			outputs[l] = behind * w[l]
		case pipeline.Weight:
			weights[l] = behind * x[l]
		}
	}
	return weights
}
