package perf

import (
	"math"

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
