package trainer

import (
	"math"
	"unsafe" // to know an address, not to use it

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// alignFloats is one cache line.
const alignFloats = 16

// aligned returns n zeros that start at a cache line. The dot product below sums
// what precedes a 16-byte boundary on its own, so results would depend on where the
// allocator puts a slice, and a rerun would not repeat every bit.
func aligned(n int) []float32 {
	b := make([]float32, n+alignFloats)
	const line = 4 * alignFloats
	skip := (line - int(uintptr(unsafe.Pointer(&b[0]))%line)) % line / 4
	return b[skip : skip+n : skip+n]
}

// arena hands out the activations of one microbatch and takes them all back at
// once. After the first step it allocates nothing.
type arena struct {
	buf  []float32
	used int
}

// take returns n floats of unspecified content, aligned.
func (a *arena) take(n int) []float32 {
	from := a.used
	a.used += (n + alignFloats - 1) / alignFloats * alignFloats
	if a.used > len(a.buf) {
		return aligned(n)
	}
	return a.buf[from : from+n : from+n]
}

// reset takes everything back and remembers how much was needed.
func (a *arena) reset() {
	if a.used > len(a.buf) {
		a.buf = aligned(a.used)
	}
	a.used = 0
}

// matrix views data as rows x cols, one row behind the other.
func matrix(data []float32, rows, cols int) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

// The three products that layers need. beta is 0 to overwrite c, 1 to add to it.

// mul computes c = a b + beta c.
func mul(a, b blas32.General, beta float32, c blas32.General) {
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, a, b, beta, c)
}

// mulT computes c = a bT + beta c.
func mulT(a, b blas32.General, beta float32, c blas32.General) {
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, a, b, beta, c)
}

// tmul computes c = aT b + beta c.
func tmul(a, b blas32.General, beta float32, c blas32.General) {
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, a, b, beta, c)
}

// norm is a layer normalisation with its parameters and their gradients.
type norm struct {
	gain, bias   []float32
	dgain, dbias []float32
}

// normEpsilon keeps the scale of a constant row finite.
const normEpsilon = 1e-5

// forward normalises the rows of x. It returns the result and what backward needs.
func (n *norm) forward(a *arena, x []float32) (y, hat, scale []float32) {
	dim := len(n.gain)
	rows := len(x) / dim
	y, hat, scale = a.take(len(x)), a.take(len(x)), a.take(rows)
	for r := range rows {
		xr, yr, hr := x[r*dim:(r+1)*dim], y[r*dim:(r+1)*dim], hat[r*dim:(r+1)*dim]
		var sum, squares float32
		for _, v := range xr {
			sum += v
		}
		mean := sum / float32(dim)
		for i, v := range xr {
			hr[i] = v - mean
			squares += hr[i] * hr[i]
		}
		s := 1 / float32(math.Sqrt(float64(squares/float32(dim)+normEpsilon)))
		scale[r] = s
		for i := range hr {
			hr[i] *= s
			yr[i] = hr[i]*n.gain[i] + n.bias[i]
		}
	}
	return y, hat, scale
}

// backward adds the gradient of the input to dx.
func (n *norm) backward(dx, dy, hat, scale []float32) {
	dim := len(n.gain)
	for r := range len(scale) {
		dxr, dyr, hr := dx[r*dim:(r+1)*dim], dy[r*dim:(r+1)*dim], hat[r*dim:(r+1)*dim]
		var mean, dot float32
		for i, d := range dyr {
			n.dgain[i] += d * hr[i]
			n.dbias[i] += d
			d *= n.gain[i]
			mean += d
			dot += d * hr[i]
		}
		mean /= float32(dim)
		dot /= float32(dim)
		for i, d := range dyr {
			dxr[i] += scale[r] * (d*n.gain[i] - mean - hr[i]*dot)
		}
	}
}

// The tanh form of GELU: u/2 (1 + tanh(c (u + k u^3))).
const (
	geluC = 0.7978845608028654 // sqrt(2/pi)
	geluK = 0.044715
)

// gelu fills y, and t with the tangents that geluBackward reuses.
func gelu(y, t, u []float32) {
	for i, v := range u {
		t[i] = float32(math.Tanh(float64(geluC * (v + geluK*v*v*v))))
		y[i] = 0.5 * v * (1 + t[i])
	}
}

// geluBackward turns the gradient d of the output into that of the input.
func geluBackward(d, t, u []float32) {
	for i, v := range u {
		d[i] *= 0.5*(1+t[i]) + 0.5*v*(1-t[i]*t[i])*geluC*(1+3*geluK*v*v)
	}
}

// softmax replaces x by its softmax and returns the log of the normaliser.
func softmax(x []float32) float64 {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float32
	for i, v := range x {
		x[i] = float32(math.Exp(float64(v - top)))
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
	return float64(top) + math.Log(float64(sum))
}

// softmaxBackward turns the gradient d of the probabilities p into scale times that
// of their logits. Where p is 0 the result is 0, which keeps a causal mask.
func softmaxBackward(d, p []float32, scale float32) {
	var dot float32
	for i, v := range d {
		dot += v * p[i]
	}
	for i, v := range d {
		d[i] = p[i] * (v - dot) * scale
	}
}
