// Package interfere is the mechanism that says how fast the tenants of one device
// run, each in parts of its own speed alone. Two models: proportional sharing of SMs
// and of memory bandwidth, and a measured matrix of kinds of work.
//
// Proportional sharing: a ceiling first bounds what a tenant can ask for; where the
// tenants together ask for more of a resource than there is, all who use it slow
// down alike. A pair with different bottlenecks therefore hardly slows, which is its
// roofline bonus. Friction widens it: two tenants with the same bottleneck get in
// each other's way (caches, row buffers, issue slots) beyond what sums show, by the
// inner product of their demands.
//
// After the survey's M-INT; the formula is ours. Its promises are tested: one tenant
// alone is not slowed, no resource is used beyond what there is, and nobody gets
// faster because a neighbour came or wants more.
package interfere

import (
	"errors"
	"fmt"
)

// Demand is what a tenant uses of a device while it runs alone, in parts of the
// device: of the SMs, and of the memory bandwidth.
type Demand struct{ SM, Bandwidth float64 }

// Tenant is one demand under a ceiling on SMs; a ceiling of 0 is the whole device.
type Tenant struct {
	Demand
	Ceiling float64
}

// Proportional is the sharing model.
type Proportional struct {
	// Friction is the slow-down of each of two tenants that both use all of one
	// resource, beyond the sharing of it.
	Friction float64 `yaml:"friction"`
}

// Default has no friction: with utilisation as demand, the pairs that Lucid's authors
// measured are explained best without (see the test).
func Default() Proportional { return Proportional{} }

// Validate says what is wrong with a configuration.
func (p Proportional) Validate() error {
	if !(p.Friction >= 0) {
		return fmt.Errorf("friction is %g: it must not be negative", p.Friction)
	}
	return nil
}

// Rates appends the rate of each tenant, 1 being its speed alone.
func (p Proportional) Rates(tenants []Tenant, into []float64) []float64 {
	var sum Demand
	for _, t := range tenants {
		_, d := t.capped()
		sum.SM, sum.Bandwidth = sum.SM+d.SM, sum.Bandwidth+d.Bandwidth
	}
	for _, t := range tenants {
		rate, d := t.capped()
		crowd := 1.0
		if d.SM > 0 {
			crowd = max(crowd, sum.SM)
		}
		if d.Bandwidth > 0 {
			crowd = max(crowd, sum.Bandwidth)
		}
		others := Demand{sum.SM - d.SM, sum.Bandwidth - d.Bandwidth}
		into = append(into, rate/crowd/(1+p.Friction*(d.SM*others.SM+d.Bandwidth*others.Bandwidth)))
	}
	return into
}

// capped is how fast a tenant is under its ceiling alone, and what it then uses.
func (t Tenant) capped() (rate float64, use Demand) {
	rate = 1
	if t.Ceiling > 0 && t.SM > t.Ceiling {
		rate = t.Ceiling / t.SM
	}
	return rate, Demand{t.SM * rate, t.Bandwidth * rate}
}

// Matrix is measured: [a][b] is the rate of work of kind a beside one tenant of kind
// b. It must be square, with entries above 0 and at most 1.
type Matrix [][]float64

// Validate says what is wrong with a matrix.
func (m Matrix) Validate() error {
	for a, row := range m {
		if len(row) != len(m) {
			return errors.New("the matrix is not square")
		}
		for b, rate := range row {
			if !(rate > 0 && rate <= 1) {
				return fmt.Errorf("[%d][%d] is %g: it must be above 0 and at most 1", a, b, rate)
			}
		}
	}
	return nil
}

// Rates appends the rate of each tenant by its kind. Pairs are exact; beyond, the
// slow-downs multiply, which is an assumption.
func (m Matrix) Rates(kinds []int, into []float64) []float64 {
	for i, a := range kinds {
		rate := 1.0
		for j, b := range kinds {
			if i != j {
				rate *= m[a][b]
			}
		}
		into = append(into, rate)
	}
	return into
}
