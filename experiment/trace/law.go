package trace

import (
	"math"
	"math/rand/v2"
)

// law is a distribution of durations, in seconds. The mean is exact, so that a
// number of days can be turned into a number of jobs without drawing any.
type law interface {
	draw(r *rand.Rand) float64
	mean() float64
}

// lognormal is clipped: what falls outside becomes the bound itself.
type lognormal struct {
	medianS, sigma, lowS, highS float64
}

func (l lognormal) draw(r *rand.Rand) float64 {
	return min(max(l.medianS*math.Exp(l.sigma*r.NormFloat64()), l.lowS), l.highS)
}

func (l lognormal) mean() float64 {
	below := func(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }
	a, b := math.Log(l.lowS/l.medianS)/l.sigma, math.Log(l.highS/l.medianS)/l.sigma
	middle := l.medianS * math.Exp(l.sigma*l.sigma/2) * (below(b-l.sigma) - below(a-l.sigma))
	return l.lowS*below(a) + middle + l.highS*(1-below(b))
}

// steps are the probabilities of a quantiles law.
var steps = [...]float64{0, .05, .10, .25, .50, .75, .90, .95, .98, .99, .995, .999, 1}

// quantiles is a measured distribution: its values at steps, joined by straight
// lines in the logarithm. It keeps median, percentiles and maximum as measured
// and the mean within a few percent, which no one lognormal does for these traces.
type quantiles [len(steps)]float64

func (q *quantiles) draw(r *rand.Rand) float64 {
	p := r.Float64()
	i := 1
	for p >= steps[i] {
		i++
	}
	part := (p - steps[i-1]) / (steps[i] - steps[i-1])
	return q[i-1] * math.Pow(q[i]/q[i-1], part)
}

func (q *quantiles) mean() float64 {
	var sum float64
	for i := 1; i < len(steps); i++ {
		value := q[i]
		if q[i] != q[i-1] {
			value = (q[i] - q[i-1]) / math.Log(q[i]/q[i-1])
		}
		sum += (steps[i] - steps[i-1]) * value
	}
	return sum
}
