package trainer

import (
	"math"
	"math/rand/v2"
	"time"

	"gonum.org/v1/gonum/blas/blas32"
)

// layer is one unit that a plan may cut before: the embedding, a block or the head.
// Its parameters lie in flat arrays of the stage, so that all-reduce, Adam and
// checkpoints see plain vectors.
type layer interface {
	// pieces are the parameters of a whole layer that the k-th of its slices has, in order.
	pieces(k int) []piece
	// size is the number of parameters of a slice.
	size() int
	// bind gives the layer its parameters and their gradients.
	bind(w, g []float32)
	// start sets the first values of the parameters.
	start(rng *rand.Rand)
	// forward returns the output for x and the function that, given the output's
	// gradient, adds to the parameters' gradients and returns that of x.
	forward(m *microbatch, x []float32) (y []float32, back backward)
}

// piece is a run of consecutive parameters of a whole layer.
type piece struct{ from, n int }

// backward is the way back through one layer for one microbatch.
type backward func(dy []float32) (dx []float32)

// microbatch is some sequences on their way through a stage.
type microbatch struct {
	arena  arena
	inputs []byte // rows tokens, sequence after sequence
	target []byte // the token behind each input
	// weight is one token's part of the loss: 1 / tokens of the global batch.
	weight float32
	// loss is the weighted loss of these tokens, known behind the head.
	loss  float32
	backs []backward
	// halved is a backward pass whose gradients of parameters come later, as far as they are
	// much work; they wait in later.
	halved bool
	later  []func()
	// first is, where these sequences went forward as the second half of a microbatch, the first.
	first *microbatch
	// tensor are those with the other slices of the layers, waited for how long they were waited for, in
	// this pass and earlier ones; err is what went wrong between them.
	tensor *ring
	waited time.Duration
	err    error
}

// waiting is for how long it and its first half have waited so far.
func (m *microbatch) waiting() time.Duration {
	if m.first != nil {
		return m.waited + m.first.waited
	}
	return m.waited
}

// residual begins the sum of what a layer is given and what its slices make of it.
func (m *microbatch) residual(x []float32) []float32 {
	y := m.arena.take(len(x))
	if m.tensor.rank > 0 {
		clear(y)
	} else {
		copy(y, x)
	}
	return y
}

// sum replaces x by its sum over the slices of a layer. Who runs the pass asks for err behind it.
func (m *microbatch) sum(x []float32) {
	if m.tensor.world == 1 {
		return
	}
	began := time.Now()
	if err := m.tensor.allReduce(x); err != nil && m.err == nil {
		m.err = err
	}
	m.waited += time.Since(began)
}

// linear adds xT dy to the gradient of a linear map's parameters, now or in the second half of
// the backward pass. What dy holds may change meanwhile.
func (m *microbatch) linear(x, dy, dw blas32.General) {
	if !m.halved {
		tmul(x, dy, 1, dw)
		return
	}
	kept := matrix(m.arena.take(dy.Rows*dy.Cols), dy.Rows, dy.Cols)
	copy(kept.Data, dy.Data)
	m.later = append(m.later, func() { tmul(x, kept, 1, dw) })
}

// rows is the number of tokens.
func (m *microbatch) rows() int { return len(m.inputs) }

// newLayer returns the layer with this index of a model, whole or one of so many slices.
// Embedding and head are not sliced: each worker has all of them.
func newLayer(s Shape, index, slices int) layer {
	switch index {
	case 0:
		return &embedding{shape: s}
	case s.Layers + 1:
		return &head{shape: s}
	}
	return &block{shape: s, slices: slices, heads: s.Heads / slices, inner: s.Dim / slices, wide: mlpFactor * s.Dim / slices}
}

// cutter deals consecutive parameters out to tensors.
type cutter struct{ w, g []float32 }

func (c *cutter) next(n int) (w, g []float32) {
	w, g = c.w[:n:n], c.g[:n:n]
	c.w, c.g = c.w[n:], c.g[n:]
	return w, g
}

func (c *cutter) norm(dim int) (n norm) {
	n.gain, n.dgain = c.next(dim)
	n.bias, n.dbias = c.next(dim)
	return n
}

func normal(rng *rand.Rand, w []float32, deviation float64) {
	for i := range w {
		w[i] = float32(rng.NormFloat64() * deviation)
	}
}

func ones(w []float32) {
	for i := range w {
		w[i] = 1
	}
}

// embedding adds a vector for the token and one for its position.
type embedding struct {
	shape        Shape
	token, pos   []float32
	dToken, dPos []float32
}

func (l *embedding) pieces(int) []piece { return []piece{{0, l.size()}} }

func (l *embedding) size() int { return (l.shape.Vocab + l.shape.Seq) * l.shape.Dim }

func (l *embedding) bind(w, g []float32) {
	c := cutter{w, g}
	l.token, l.dToken = c.next(l.shape.Vocab * l.shape.Dim)
	l.pos, l.dPos = c.next(l.shape.Seq * l.shape.Dim)
}

func (l *embedding) start(rng *rand.Rand) {
	normal(rng, l.token, 0.1)
	normal(rng, l.pos, 0.1)
}

func (l *embedding) forward(m *microbatch, _ []float32) ([]float32, backward) {
	dim := l.shape.Dim
	y := m.arena.take(m.rows() * dim)
	for r, id := range m.inputs {
		token, pos := l.token[int(id)*dim:], l.pos[r%l.shape.Seq*dim:]
		for i := range dim {
			y[r*dim+i] = token[i] + pos[i]
		}
	}
	return y, func(dy []float32) []float32 {
		for r, id := range m.inputs {
			token, pos := l.dToken[int(id)*dim:], l.dPos[r%l.shape.Seq*dim:]
			for i := range dim {
				token[i] += dy[r*dim+i]
				pos[i] += dy[r*dim+i]
			}
		}
		return nil
	}
}

// head normalises, projects to the vocabulary and measures the cross-entropy.
type head struct {
	shape     Shape
	norm      norm
	out, dOut []float32
}

func (l *head) pieces(int) []piece { return []piece{{0, l.size()}} }

func (l *head) size() int { return 2*l.shape.Dim + l.shape.Dim*l.shape.Vocab }

func (l *head) bind(w, g []float32) {
	c := cutter{w, g}
	l.norm = c.norm(l.shape.Dim)
	l.out, l.dOut = c.next(l.shape.Dim * l.shape.Vocab)
}

// start keeps the logits small, so that training begins at the loss of guessing.
func (l *head) start(rng *rand.Rand) {
	ones(l.norm.gain)
	normal(rng, l.out, 0.02)
}

func (l *head) forward(m *microbatch, x []float32) ([]float32, backward) {
	dim, vocab, rows := l.shape.Dim, l.shape.Vocab, m.rows()
	h, hat, scale := l.norm.forward(&m.arena, x)
	p := m.arena.take(rows * vocab)
	mul(matrix(h, rows, dim), matrix(l.out, dim, vocab), 0, matrix(p, rows, vocab))
	loss := 0.0
	for r, id := range m.target {
		row := p[r*vocab : (r+1)*vocab]
		logit := float64(row[id])
		loss += softmax(row) - logit
	}
	m.loss = float32(loss * float64(m.weight))
	return nil, func([]float32) []float32 {
		for r, id := range m.target {
			row := p[r*vocab : (r+1)*vocab]
			row[id]--
			for i := range row {
				row[i] *= m.weight
			}
		}
		m.linear(matrix(h, rows, dim), matrix(p, rows, vocab), matrix(l.dOut, dim, vocab))
		dh, dx := m.arena.take(rows*dim), m.arena.take(rows*dim)
		mulT(matrix(p, rows, vocab), matrix(l.out, dim, vocab), 0, matrix(dh, rows, dim))
		clear(dx)
		l.norm.backward(dx, dh, hat, scale)
		return dx
	}
}

// residualDeviation shrinks what each block adds to the residual stream, so that
// the stream's variance does not grow with depth.
func residualDeviation(s Shape, inputs int) float64 {
	return 1 / math.Sqrt(float64(inputs)*2*float64(s.Layers))
}
