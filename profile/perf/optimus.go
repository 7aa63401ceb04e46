package perf

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Form is how workers exchange gradients in Optimus' model of speed.
type Form int

// The forms: workers that wait for each other at parameter servers, workers that do
// not, and workers that reduce among themselves.
const (
	Sync Form = iota
	Async
	AllReduce
)

// Sample is a measured speed, in steps a second.
type Sample struct {
	Workers, Servers int
	StepsPerSec      float64
}

// Speed is Optimus' model: the time of a step is a sum of terms in the workers w, the
// servers p and the batch of them all B, with factors that are not negative.
type Speed struct {
	Form  Form
	Batch float64
	Terms []float64
	Trust
}

// terms of the time of a step; with Async, of the time of one worker's step.
func (f Form) terms(workers, servers int, batch float64) []float64 {
	w, p := float64(workers), float64(servers)
	switch f {
	case Async:
		return []float64{1, w / p, w, p}
	case AllReduce:
		return []float64{batch / w, 1, w}
	}
	return []float64{batch / w, 1, w / p, w, p}
}

// steps is how many steps are made in one time of the model.
func (f Form) steps(workers int) float64 {
	if f == Async {
		return float64(workers)
	}
	return 1
}

// FitSpeed fits by non-negative least squares on relative errors. Optimus takes four
// samples at least of asynchronous training, five of synchronous.
func FitSpeed(form Form, batch float64, seen []Sample) Speed {
	rows, want := make([][]float64, len(seen)), make([]float64, len(seen))
	for i, s := range seen {
		rows[i], want[i] = form.terms(s.Workers, s.Servers, batch), 1
		for k := range rows[i] {
			rows[i][k] *= s.StepsPerSec / form.steps(s.Workers)
		}
	}
	m := Speed{Form: form, Batch: batch, Terms: nonNegative(rows, want)}
	squares, free := 0.0, 0
	for i, row := range rows {
		e := want[i]
		for k, x := range m.Terms {
			e -= x * row[k]
		}
		squares += e * e
	}
	for _, x := range m.Terms {
		if x > 0 {
			free++
		}
	}
	m.Trust = trust(len(seen), free, squares)
	return m
}

// StepsPerSec predicts the speed.
func (m *Speed) StepsPerSec(workers, servers int) float64 {
	seconds := 0.0
	for k, x := range m.Form.terms(workers, servers, m.Batch) {
		seconds += m.Terms[k] * x
	}
	return m.Form.steps(workers) / seconds
}

// Loss is Optimus' curve of the training loss over steps: 1/(A k + B) + C.
type Loss struct {
	A, B, C float64
	Trust
}

// At predicts the loss after k steps.
func (l *Loss) At(k float64) float64 { return 1/(l.A*k+l.B) + l.C }

// FitLoss fits the curve to losses after the given steps, both ascending in time. Later
// thirds weigh four times as much as the one before, since the tail is what is asked for.
func FitLoss(steps, losses []float64) Loss {
	least, most := slices.Min(losses), slices.Max(losses)
	weight := func(i int) float64 { return math.Pow(4, float64(3*i/len(losses))) }
	rows, want := make([][]float64, len(losses)), make([]float64, len(losses))
	at := func(c float64) (Loss, float64) {
		for i, l := range losses {
			// An error of 1/(l-c) is one of l times (l-c) squared.
			scale := math.Sqrt(weight(i)) * (l - c) * (l - c)
			rows[i] = append(rows[i][:0], scale*steps[i]/steps[len(steps)-1], scale)
			want[i] = scale / (l - c)
		}
		x := nonNegative(rows, want)
		fitted := Loss{A: x[0] / steps[len(steps)-1], B: max(x[1], 1e-12), C: c}
		sum := 0.0
		for i, l := range losses {
			e := fitted.At(steps[i]) - l
			sum += weight(i) * e * e
		}
		return fitted, sum
	}
	// The error over C has one valley in practice: a grid finds it, halving follows it.
	var best Loss
	lowest, width := math.Inf(1), least/32
	try := func(c float64) {
		if fitted, sum := at(c); sum < lowest {
			lowest, best = sum, fitted
		}
	}
	for i := range 32 {
		try(float64(i) * width)
	}
	for ; width > 1e-6*most; width /= 2 {
		center := best.C
		try(max(0, center-width/2))
		try(min(least*(1-1e-6), center+width/2))
	}
	squares := 0.0
	for i, l := range losses {
		e := best.At(steps[i])/l - 1
		squares += e * e
	}
	best.Trust = trust(len(losses), 3, squares)
	return best
}

// The published bounds on the epoch a job ends in.
const (
	flatLoss, flatEpochs    = .05, 10
	mostEpochs, unsureExtra = 100, 20
)

// Ends is the epoch in which the loss, relative to the largest seen, falls by less than
// .05 over ten epochs; 100 at most, and 20 from now where that is past already.
func (l *Loss) Ends(now int, stepsPerEpoch, largest float64) int {
	for e := flatEpochs; e <= mostEpochs; e++ {
		if fall := l.At(float64(e-flatEpochs)*stepsPerEpoch) - l.At(float64(e)*stepsPerEpoch); fall < flatLoss*largest {
			if e <= now {
				break
			}
			return e
		}
	}
	return min(now+unsureExtra, max(mostEpochs, now+1))
}

// nonNegative solves rows x = want in least squares with no x below zero, after Lawson
// and Hanson: let the unknown in that lowers the error fastest, solve for those that are
// in, and step back to where the first of them would turn negative.
func nonNegative(rows [][]float64, want []float64) []float64 {
	n := len(rows[0])
	norm := make([]float64, n)
	for _, row := range rows {
		for k, v := range row {
			norm[k] += v * v
		}
	}
	for k := range norm {
		norm[k] = max(math.Sqrt(norm[k]), 1e-300)
	}
	x, in := make([]float64, n), make([]bool, n)
	for range 3 * n {
		next, steepest := -1, 1e-10
		for k := range n {
			if s := slope(rows, want, x, norm, k); !in[k] && s > steepest {
				next, steepest = k, s
			}
		}
		if next < 0 {
			break
		}
		in[next] = true
		for {
			s := solve(rows, want, norm, in)
			back, limit := -1, 1.0
			for k := range n {
				if in[k] && s[k] <= 0 {
					if r := x[k] / (x[k] - s[k]); back < 0 || r < limit {
						back, limit = k, r
					}
				}
			}
			for k := range n {
				x[k] += limit * (s[k] - x[k])
			}
			if back < 0 {
				break
			}
			in[back], x[back] = false, 0
		}
	}
	for k := range x {
		x[k] /= norm[k]
	}
	return x
}

// slope is how fast the error falls with unknown k, columns scaled to norm 1.
func slope(rows [][]float64, want, x, norm []float64, k int) float64 {
	sum := 0.0
	for i, row := range rows {
		e := want[i]
		for q, v := range row {
			e -= v / norm[q] * x[q]
		}
		sum += e * row[k] / norm[k]
	}
	return sum
}

// solve is plain least squares over the unknowns that are in.
func solve(rows [][]float64, want, norm []float64, in []bool) []float64 {
	var columns []int
	for k := range in {
		if in[k] {
			columns = append(columns, k)
		}
	}
	s := make([]float64, len(in))
	// A little ridge keeps the normal equations solvable where columns coincide.
	a := mat.NewDense(len(rows)+len(columns), len(columns), nil)
	b := mat.NewVecDense(len(rows)+len(columns), nil)
	for i, row := range rows {
		for c, k := range columns {
			a.Set(i, c, row[k]/norm[k])
		}
		b.SetVec(i, want[i])
	}
	for c := range columns {
		a.Set(len(rows)+c, c, 1e-7)
	}
	var answer mat.VecDense
	_ = answer.SolveVec(a, b) // with the ridge, a warning about the condition at most
	for c, k := range columns {
		s[k] = answer.AtVec(c)
	}
	return s
}
