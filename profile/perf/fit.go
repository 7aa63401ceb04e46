package perf

import (
	"math"

	"gonum.org/v1/gonum/optimize"
)

// Observation is one measured step.
type Observation struct {
	Nodes, Replicas, Local int
	// PassSeconds is one pass without exchange, StepSeconds a pass with it.
	PassSeconds, StepSeconds float64
}

// least stands for nothing: what a cost that was never observed is pinned to, so that
// the model is optimistic about what it has not seen.
const least = 1e-8

// the parameters in the order of the fit
const (
	alphaC = iota
	betaC
	alphaN
	betaN
	alphaR
	betaR
	gamma
	parameters
)

// Fit fits the model to observations: the root mean squared errors of the logarithms
// of the pass and of the step, with a mild preference for little overlap and for
// exchanges that do not grow. Costs of regimes never observed are pinned to nothing;
// with a single local batch half the pass is taken to be constant; and until several
// nodes were seen, they are taken to be at least a tenth slower than one. There must be
// an observation.
func Fit(seen []Observation) (Params, Trust) {
	f := newFit(seen)
	x := make([]float64, 0, parameters)
	for i, free := range f.free {
		switch {
		case free && i == gamma:
			x = append(x, math.Sqrt(f.theta[i]-1))
		case free:
			x = append(x, math.Log(f.theta[i]))
		}
	}
	problem := optimize.Problem{
		Func: func(x []float64) float64 { return f.value(x, nil) },
		Grad: func(grad, x []float64) { f.value(x, grad) },
	}
	settings := &optimize.Settings{MajorIterations: 200, Converger: &optimize.FunctionConverge{Absolute: 1e-7, Iterations: 8}}
	// An error means that the line search found no more descent: the place is good.
	if r, _ := optimize.Minimize(problem, x, settings, &optimize.LBFGS{}); r != nil && f.value(r.X, nil) < f.value(x, nil) {
		x = r.X
	}
	f.set(x)
	t := f.theta
	p := Params{t[alphaC], t[betaC], t[alphaN], t[betaN], t[alphaR], t[betaR], t[gamma]}
	if !f.several {
		p.AlphaN, p.BetaN = max(p.AlphaN, 1.1*p.AlphaR), max(p.BetaN, 1.1*p.BetaR)
	}
	squares := 0.0
	for _, o := range seen {
		e := math.Log(p.Step(o.Nodes, o.Replicas, o.Local, 1) / o.StepSeconds)
		squares += e * e
	}
	return p, trust(len(seen), len(x), squares)
}

// fit is a fit in progress. Free parameters are sought in logarithms, the overlap as
// the square root of its excess over 1, so that bounds need no care.
type fit struct {
	seen    []Observation
	logPass []float64
	logStep []float64
	theta   [parameters]float64
	free    [parameters]bool
	several bool // nodes were observed
}

func newFit(seen []Observation) *fit {
	f := &fit{seen: seen, theta: [parameters]float64{.1, .01, least, least, least, least, 1.001}}
	within, many, locals, sum := false, false, false, 0.0
	for _, o := range seen {
		f.logPass, f.logStep = append(f.logPass, math.Log(o.PassSeconds)), append(f.logStep, math.Log(o.StepSeconds))
		f.several = f.several || o.Nodes > 1
		within = within || o.Nodes == 1 && o.Replicas > 1
		many = many || o.Replicas > 2
		locals = locals || o.Local != seen[0].Local
		sum += o.PassSeconds
	}
	f.free = [parameters]bool{alphaC: locals, betaC: true, alphaN: f.several, betaN: f.several && many,
		alphaR: within, betaR: within && many, gamma: f.several || within}
	if !locals {
		f.theta[alphaC] = sum / float64(len(seen)) / 2
	}
	for i, start := range [...]float64{alphaN: .1, betaN: .01, alphaR: .1, betaR: .01} {
		if start > 0 && f.free[i] {
			f.theta[i] = start
		}
	}
	return f
}

func (f *fit) set(x []float64) {
	k := 0
	for i, free := range f.free {
		if !free {
			continue
		}
		if i == gamma {
			f.theta[i] = min(1+x[k]*x[k], 10)
		} else {
			f.theta[i] = math.Exp(max(x[k], math.Log(least)))
		}
		k++
	}
}

// value is the objective, and its gradient where one is asked for.
func (f *fit) value(x, grad []float64) float64 {
	f.set(x)
	t := &f.theta
	var squares1, squares2 float64
	var d1, d2 [parameters]float64 // by logarithms of the parameters, by gamma itself
	for i := range f.seen {
		o := &f.seen[i]
		local := float64(o.Local)
		pass := t[alphaC] + t[betaC]*local
		a := math.Log(pass)
		r1 := a - f.logPass[i]
		squares1 += r1 * r1
		constant, sample := t[alphaC]/pass, t[betaC]*local/pass
		d1[alphaC] += r1 * constant
		d1[betaC] += r1 * sample
		step, part := a, 1.0
		alpha, beta := alphaR, betaR
		if o.Nodes > 1 {
			alpha, beta = alphaN, betaN
		}
		if o.Replicas > 1 {
			more := t[beta] * max(float64(o.Replicas-2), least)
			exchange := t[alpha] + more
			n, g := math.Log(exchange), t[gamma]
			e := math.Exp(-g * math.Abs(a-n))
			step = max(a, n) + math.Log1p(e)/g
			if part = 1 / (1 + e); n > a {
				part = 1 - part
			}
			r2 := step - f.logStep[i]
			d2[alpha] += r2 * (1 - part) * t[alpha] / exchange
			d2[beta] += r2 * (1 - part) * more / exchange
			d2[gamma] += r2 * (part*a + (1-part)*n - step) / g
		}
		r2 := step - f.logStep[i]
		squares2 += r2 * r2
		d2[alphaC] += r2 * part * constant
		d2[betaC] += r2 * part * sample
	}
	// A root has no slope at zero; the floor rounds it off well below any noise.
	const floor = 1e-10
	n := float64(len(f.seen))
	e1, e2 := math.Sqrt(squares1/n+floor), math.Sqrt(squares2/n+floor)
	between, within := t[betaN]/t[alphaN], t[betaR]/t[alphaR]
	if grad != nil {
		for i := range d1 {
			d1[i] = d1[i]/(n*e1) + d2[i]/(n*e2)
		}
		d1[alphaN], d1[betaN] = d1[alphaN]-2e-2*between*between, d1[betaN]+2e-2*between*between
		d1[alphaR], d1[betaR] = d1[alphaR]-2e-2*within*within, d1[betaR]+2e-2*within*within
		d1[gamma] += 2e-3 * (t[gamma] - 1)
		f.slope(grad, x, d1)
	}
	return e1 + e2 + 1e-3*(t[gamma]-1)*(t[gamma]-1) + 1e-2*(between*between+within*within)
}

// slope turns derivatives by parameter into those by x, flat where a bound holds.
func (f *fit) slope(grad, x []float64, d [parameters]float64) {
	k := 0
	for i, free := range f.free {
		if !free {
			continue
		}
		switch {
		case i == gamma && f.theta[i] < 10:
			grad[k] = d[i] * 2 * x[k]
		case i != gamma && x[k] > math.Log(least):
			grad[k] = d[i]
		default:
			grad[k] = 0
		}
		k++
	}
}
