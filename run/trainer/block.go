package trainer

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas/blas32"
)

// block is one pre-norm transformer block: x + attention(norm(x)), then
// x + mlp(norm(x)). Its linear maps have no biases: the norms in front have some.
type block struct {
	shape                   Shape
	norm1, norm2            norm
	qkv, proj, up, down     []float32
	dQKV, dProj, dUp, dDown []float32
}

// mlpFactor is the width of the hidden layer of the MLP in units of Dim.
const mlpFactor = 4

func (l *block) size() int { d := l.shape.Dim; return 4*d + (3+1+2*mlpFactor)*d*d }

func (l *block) bind(w, g []float32) {
	d, c := l.shape.Dim, cutter{w, g}
	l.norm1 = c.norm(d)
	l.qkv, l.dQKV = c.next(3 * d * d)
	l.proj, l.dProj = c.next(d * d)
	l.norm2 = c.norm(d)
	l.up, l.dUp = c.next(mlpFactor * d * d)
	l.down, l.dDown = c.next(mlpFactor * d * d)
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
	d, rows, a := l.shape.Dim, m.rows(), &m.arena
	h, hat, scale := l.norm1.forward(a, x)
	qkv, o, y := a.take(rows*3*d), a.take(rows*d), a.take(rows*d)
	p := a.take(rows * l.shape.Seq * l.shape.Heads)
	mul(matrix(h, rows, d), matrix(l.qkv, d, 3*d), 0, matrix(qkv, rows, 3*d))
	l.mix(o, p, qkv)
	copy(y, x)
	mul(matrix(o, rows, d), matrix(l.proj, d, d), 1, matrix(y, rows, d))
	return y, func(dy []float32) []float32 {
		do, dqkv, dh := a.take(rows*d), a.take(rows*3*d), a.take(rows*d)
		m.linear(matrix(o, rows, d), matrix(dy, rows, d), matrix(l.dProj, d, d))
		mulT(matrix(dy, rows, d), matrix(l.proj, d, d), 0, matrix(do, rows, d))
		l.mixBackward(a, dqkv, do, p, qkv)
		m.linear(matrix(h, rows, d), matrix(dqkv, rows, 3*d), matrix(l.dQKV, d, 3*d))
		mulT(matrix(dqkv, rows, 3*d), matrix(l.qkv, d, 3*d), 0, matrix(dh, rows, d))
		l.norm1.backward(dy, dh, hat, scale) // dy is already the residual's part of dx
		return dy
	}
}

func (l *block) mlp(m *microbatch, x []float32) ([]float32, backward) {
	d, wide, rows, a := l.shape.Dim, mlpFactor*l.shape.Dim, m.rows(), &m.arena
	h, hat, scale := l.norm2.forward(a, x)
	u, t, g, y := a.take(rows*wide), a.take(rows*wide), a.take(rows*wide), a.take(rows*d)
	mul(matrix(h, rows, d), matrix(l.up, d, wide), 0, matrix(u, rows, wide))
	gelu(g, t, u)
	copy(y, x)
	mul(matrix(g, rows, wide), matrix(l.down, wide, d), 1, matrix(y, rows, d))
	return y, func(dy []float32) []float32 {
		dg, dh := a.take(rows*wide), a.take(rows*d)
		m.linear(matrix(g, rows, wide), matrix(dy, rows, d), matrix(l.dDown, wide, d))
		mulT(matrix(dy, rows, d), matrix(l.down, wide, d), 0, matrix(dg, rows, wide))
		geluBackward(dg, t, u)
		m.linear(matrix(h, rows, d), matrix(dg, rows, wide), matrix(l.dUp, d, wide))
		mulT(matrix(dg, rows, wide), matrix(l.up, d, wide), 0, matrix(dh, rows, d))
		l.norm2.backward(dy, dh, hat, scale)
		return dy
	}
}

// view is what one head sees of one sequence: its columns in the given part of
// data, whose rows hold that many parts of Dim columns.
func (l *block) view(data []float32, parts, part, sequence, head int) blas32.General {
	d, t := l.shape.Dim, l.shape.Seq
	width := d / l.shape.Heads
	from := (sequence*t*parts+part)*d + head*width
	return blas32.General{Rows: t, Cols: width, Stride: parts * d, Data: data[from : from+(t-1)*parts*d+width]}
}

// square is the attention of one head over one sequence.
func (l *block) square(p []float32, sequence, head int) blas32.General {
	t := l.shape.Seq
	from := (sequence*l.shape.Heads + head) * t * t
	return matrix(p[from:from+t*t], t, t)
}

// mix computes softmax(q kT / sqrt(width)) v for every head, where a token sees
// itself and the ones before it.
func (l *block) mix(o, p, qkv []float32) {
	scale, t := l.scale(), l.shape.Seq
	for s := range len(o) / (t * l.shape.Dim) {
		for h := range l.shape.Heads {
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
	for s := range len(do) / (t * l.shape.Dim) {
		for h := range l.shape.Heads {
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
