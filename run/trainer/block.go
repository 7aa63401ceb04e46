package trainer

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas/blas32"
)

// block is one pre-norm transformer block: x + attention(norm(x)), then
// x + mlp(norm(x)). Its linear maps have no biases: the norms in front have some.
//
// A slice of a block has some of the attention's heads and a part of the MLP's hidden layer:
// columns of the maps into them and rows of those out of them, as Megatron cuts them. The
// outputs of the slices, and the gradients of their inputs, are summed over the workers that
// have them; the norms are on each.
type block struct {
	shape  Shape
	slices int
	// heads, the width of all of them together, and that of the hidden layer are the slice's.
	heads, inner, wide      int
	norm1, norm2            norm
	qkv, proj, up, down     []float32
	dQKV, dProj, dUp, dDown []float32
}

// mlpFactor is the width of the hidden layer of the MLP in units of Dim.
const mlpFactor = 4

func (l *block) pieces(k int) (all []piece) {
	d, at := l.shape.Dim, 0
	sliced := func(runs, width int) {
		for range runs {
			all = append(all, piece{at + k*width/l.slices, width / l.slices})
			at += width
		}
	}
	norm := func() { all, at = append(all, piece{at, 2 * d}), at+2*d }
	norm()
	sliced(d*3, d) // columns of queries, keys and values
	sliced(1, d*d) // rows
	norm()
	sliced(d, mlpFactor*d)
	sliced(1, mlpFactor*d*d)
	return all
}

func (l *block) size() int { d := l.shape.Dim; return 4*d + (3+1)*d*l.inner + 2*d*l.wide }

func (l *block) bind(w, g []float32) {
	d, c := l.shape.Dim, cutter{w, g}
	l.norm1 = c.norm(d)
	l.qkv, l.dQKV = c.next(3 * d * l.inner)
	l.proj, l.dProj = c.next(l.inner * d)
	l.norm2 = c.norm(d)
	l.up, l.dUp = c.next(d * l.wide)
	l.down, l.dDown = c.next(l.wide * d)
}

func (l *block) start(rng *rand.Rand) {
	d := l.shape.Dim
	ones(l.norm1.gain)
	ones(l.norm2.gain)
	normal(rng, l.qkv, 1/math.Sqrt(float64(d)))
	normal(rng, l.proj, residualDeviation(l.shape, d))
	normal(rng, l.up, 1/math.Sqrt(float64(d)))
	normal(rng, l.down, residualDeviation(l.shape, mlpFactor*d))
}

func (l *block) forward(m *microbatch, x []float32) ([]float32, backward) {
	middle, attentionBack := l.attention(m, x)
	y, mlpBack := l.mlp(m, middle)
	return y, func(dy []float32) []float32 { return attentionBack(mlpBack(dy)) }
}

func (l *block) attention(m *microbatch, x []float32) ([]float32, backward) {
	d, n, rows, a := l.shape.Dim, l.inner, m.rows(), &m.arena
	h, hat, scale := l.norm1.forward(a, x)
	qkv, o, y := a.take(rows*3*n), a.take(rows*n), m.residual(x)
	p := a.take(rows * l.shape.Seq * l.heads)
	mul(matrix(h, rows, d), matrix(l.qkv, d, 3*n), 0, matrix(qkv, rows, 3*n))
	l.mix(o, p, qkv)
	mul(matrix(o, rows, n), matrix(l.proj, n, d), 1, matrix(y, rows, d))
	m.sum(y)
	return y, func(dy []float32) []float32 {
		do, dqkv, dh := a.take(rows*n), a.take(rows*3*n), a.take(rows*d)
		m.linear(matrix(o, rows, n), matrix(dy, rows, d), matrix(l.dProj, n, d))
		mulT(matrix(dy, rows, d), matrix(l.proj, n, d), 0, matrix(do, rows, n))
		l.mixBackward(a, dqkv, do, p, qkv)
		m.linear(matrix(h, rows, d), matrix(dqkv, rows, 3*n), matrix(l.dQKV, d, 3*n))
		mulT(matrix(dqkv, rows, 3*n), matrix(l.qkv, d, 3*n), 0, matrix(dh, rows, d))
		m.sum(dh)
		l.norm1.backward(dy, dh, hat, scale) // dy is already the residual's part of dx
		return dy
	}
}

func (l *block) mlp(m *microbatch, x []float32) ([]float32, backward) {
	d, n, rows, a := l.shape.Dim, l.wide, m.rows(), &m.arena
	h, hat, scale := l.norm2.forward(a, x)
	u, t, g, y := a.take(rows*n), a.take(rows*n), a.take(rows*n), m.residual(x)
	mul(matrix(h, rows, d), matrix(l.up, d, n), 0, matrix(u, rows, n))
	gelu(g, t, u)
	mul(matrix(g, rows, n), matrix(l.down, n, d), 1, matrix(y, rows, d))
	m.sum(y)
	return y, func(dy []float32) []float32 {
		dg, dh := a.take(rows*n), a.take(rows*d)
		m.linear(matrix(g, rows, n), matrix(dy, rows, d), matrix(l.dDown, n, d))
		mulT(matrix(dy, rows, d), matrix(l.down, n, d), 0, matrix(dg, rows, n))
		geluBackward(dg, t, u)
		m.linear(matrix(h, rows, d), matrix(dg, rows, n), matrix(l.dUp, d, n))
		mulT(matrix(dg, rows, n), matrix(l.up, d, n), 0, matrix(dh, rows, d))
		m.sum(dh)
		l.norm2.backward(dy, dh, hat, scale)
		return dy
	}
}

// view is what one head sees of one sequence: its columns in the given part of
// data, whose rows hold that many parts, each as wide as all heads here.
func (l *block) view(data []float32, parts, part, sequence, head int) blas32.General {
	d, t := l.inner, l.shape.Seq
	width := d / l.heads
	from := (sequence*t*parts+part)*d + head*width
	return blas32.General{Rows: t, Cols: width, Stride: parts * d, Data: data[from : from+(t-1)*parts*d+width]}
}

// square is the attention of one head over one sequence.
func (l *block) square(p []float32, sequence, head int) blas32.General {
	t := l.shape.Seq
	from := (sequence*l.heads + head) * t * t
	return matrix(p[from:from+t*t], t, t)
}

// mix computes softmax(q kT / sqrt(width)) v for every head, where a token sees
// itself and the ones before it.
func (l *block) mix(o, p, qkv []float32) {
	scale, t := l.scale(), l.shape.Seq
	for s := range len(o) / (t * l.inner) {
		for h := range l.heads {
			prob := l.square(p, s, h)
			mulT(l.view(qkv, 3, 0, s, h), l.view(qkv, 3, 1, s, h), 0, prob)
			for r := range t {
				row := prob.Data[r*t : (r+1)*t]
				for i := range row[:r+1] {
					row[i] *= scale
				}
				softmax(row[:r+1])
				clear(row[r+1:])
			}
			mul(prob, l.view(qkv, 3, 2, s, h), 0, l.view(o, 1, 0, s, h))
		}
	}
}

// mixBackward fills dqkv from the gradient do of the mixed values.
func (l *block) mixBackward(a *arena, dqkv, do, p, qkv []float32) {
	scale, t := l.scale(), l.shape.Seq
	dp := matrix(a.take(t*t), t, t)
	for s := range len(do) / (t * l.inner) {
		for h := range l.heads {
			prob, dOut := l.square(p, s, h), l.view(do, 1, 0, s, h)
			tmul(prob, dOut, 0, l.view(dqkv, 3, 2, s, h))
			mulT(dOut, l.view(qkv, 3, 2, s, h), 0, dp)
			for r := range t {
				softmaxBackward(dp.Data[r*t:(r+1)*t], prob.Data[r*t:(r+1)*t], scale)
			}
			mul(dp, l.view(qkv, 3, 1, s, h), 0, l.view(dqkv, 3, 0, s, h))
			tmul(dp, l.view(qkv, 3, 0, s, h), 0, l.view(dqkv, 3, 1, s, h))
		}
	}
}

func (l *block) scale() float32 {
	return float32(1 / math.Sqrt(float64(l.shape.Dim/l.shape.Heads)))
}
