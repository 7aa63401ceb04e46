// Package paralleltest draws models and devices, small enough that every plan can be tried.
package paralleltest

import (
	"fmt"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Chain is a profile of layers as one device of speed 1 (TFlops 1) runs a sample; a device of
// n devices, or n times as fast, takes an n-th of the time, and its launch besides.
type Chain []parallel.Layer

// Layers is their number.
func (c Chain) Layers() int { return len(c) }

// Ways are how a layer runs: everything kept or, where it keeps anything, computed again.
func (c Chain) Ways(layer int, on *parallel.Device, tensor, samples int) ([]parallel.Layer, parallel.Why) {
	if tensor > 2 {
		return nil, parallel.Why(fmt.Sprintf("layer %d over %d devices: expected 1 or 2", layer, tensor))
	}
	l := c[layer]
	e := &l.Mixture
	for _, d := range []*unit.Duration{&l.Forward, &l.Input, &l.Weight, &e.Forward, &e.Input, &e.Weight} {
		*d = unit.Duration(float64(*d) * float64(samples) / float64(tensor) / on.TFlops)
	}
	l.ParamKiB, l.ActivationKiB = l.ParamKiB/int64(tensor), l.ActivationKiB*int64(samples)/int64(tensor)
	l.OutputKiB, l.ReduceKiB = l.OutputKiB*int64(samples), l.ReduceKiB*int64(samples)
	e.ParamKiB, e.SendKiB, e.GatherKiB = e.ParamKiB/int64(tensor), e.SendKiB*int64(samples)/int64(tensor), e.GatherKiB*int64(samples)
	l.Forward, l.Input = l.Forward+on.Launch, l.Input+on.Launch
	l.GFlop *= float64(samples) / float64(tensor)
	lean := l
	lean.Mixture.Again = e.Forward
	lean.Way, lean.Again, lean.ActivationKiB = "full", l.Forward, min(l.ActivationKiB, l.OutputKiB)
	return []parallel.Layer{l, lean}, ""
}
