package trainer

import (
	"math"
	"testing"
	"unsafe"
)

// reference is the model once more, in float64 and plain loops, without a line in
// common with the trainer: the oracle for its losses and, by central differences,
// for its gradients.
type reference struct {
	shape Shape
	w     []float64 // all layers, in the trainer's order
}

// take cuts the next rows x cols parameters off.
func (r *reference) take(rows, cols int) [][]float64 {
	out := make([][]float64, rows)
	for i := range out {
		out[i], r.w = r.w[:cols], r.w[cols:]
	}
	return out
}

func product(x, w [][]float64) [][]float64 {
	y := make([][]float64, len(x))
	for i := range x {
		y[i] = make([]float64, len(w[0]))
		for j := range y[i] {
			for k := range w {
				y[i][j] += x[i][k] * w[k][j]
			}
		}
	}
	return y
}

func (r *reference) normed(x [][]float64) [][]float64 {
	d := float64(r.shape.Dim)
	parameters := r.take(2, r.shape.Dim)
	y := make([][]float64, len(x))
	for i, row := range x {
		mean, variance := 0.0, 0.0
		for _, v := range row {
			mean += v / d
		}
		for _, v := range row {
			variance += (v - mean) * (v - mean) / d
		}
		for k, v := range row {
			y[i] = append(y[i], (v-mean)/math.Sqrt(variance+1e-5)*parameters[0][k]+parameters[1][k])
		}
	}
	return y
}

func addTo(x, y [][]float64) {
	for i := range x {
		for k := range x[i] {
			x[i][k] += y[i][k]
		}
	}
}

func (r *reference) attended(qkv [][]float64) [][]float64 {
	d, width := r.shape.Dim, r.shape.Dim/r.shape.Heads
	out := make([][]float64, len(qkv))
	for i := range qkv {
		out[i] = make([]float64, d)
		for h := range r.shape.Heads {
			var weights []float64
			sum := 0.0
			for j := 0; j <= i; j++ {
				dot := 0.0
				for k := range width {
					dot += qkv[i][h*width+k] * qkv[j][d+h*width+k]
				}
				weights = append(weights, math.Exp(dot/math.Sqrt(float64(width))))
				sum += weights[j]
			}
			for j, p := range weights {
				for k := range width {
					out[i][h*width+k] += p / sum * qkv[j][2*d+h*width+k]
				}
			}
		}
	}
	return out
}

// loss is the summed cross-entropy of one sequence in nats.
func (r reference) loss(q sequence) float64 {
	d := r.shape.Dim
	token, pos := r.take(r.shape.Vocab, d), r.take(r.shape.Seq, d)
	x := make([][]float64, r.shape.Seq)
	for i := range x {
		for k := range d {
			x[i] = append(x[i], token[q[i]][k]+pos[i][k])
		}
	}
	for range r.shape.Layers {
		h := r.normed(x)
		o := r.attended(product(h, r.take(d, 3*d)))
		addTo(x, product(o, r.take(d, d)))
		u := product(r.normed(x), r.take(d, 4*d))
		for _, row := range u {
			for k, v := range row {
				row[k] = v / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
			}
		}
		addTo(x, product(u, r.take(4*d, d)))
	}
	logits := product(r.normed(x), r.take(d, r.shape.Vocab))
	total := 0.0
	for i, row := range logits {
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(v)
		}
		total += math.Log(sum) - row[q[i+1]]
	}
	return total
}

func (r reference) mean(batch []sequence) float64 {
	total := 0.0
	for _, q := range batch {
		total += r.loss(q)
	}
	return total / float64(len(batch)*r.shape.Seq)
}

func TestGradientsAgreeWithFiniteDifferences(t *testing.T) {
	c := Default()
	c.Shape = Shape{Vocab: 11, Dim: 6, Layers: 2, Heads: 2, Seq: 5}
	c.Batch = 3
	text := make([]byte, 200)
	for i := range text {
		text[i] = byte(i * i % 11)
	}
	w := newWorker(c, text, nil, newMesh(place{world: 1}))
	s := w.stages[0]
	for i := range s.w { // away from the special values of the start
		s.w[i] += 0.2 * float32(math.Sin(float64(3*i)))
	}
	ref := reference{shape: c.Shape}
	for _, v := range s.w {
		ref.w = append(ref.w, float64(v))
	}
	batch := draw(text, c, 1)
	o, err := w.step(1, false, false)
	if err != nil {
		t.Fatal(err)
	}
	if want := ref.mean(batch); math.Abs(float64(o.loss)-want) > 1e-5 {
		t.Errorf("loss %g, reference %g", o.loss, want)
	}
	const h = 1e-5
	for i, got := range s.g {
		v := ref.w[i]
		ref.w[i] = v + h
		above := ref.mean(batch)
		ref.w[i] = v - h
		below := ref.mean(batch)
		ref.w[i] = v
		want := (above - below) / (2 * h)
		if math.Abs(float64(got)-want) > 2e-6+1e-4*math.Abs(want) {
			t.Errorf("gradient of parameter %d is %g, by differences %g", i, got, want)
		}
	}
}

func TestAdamAgreesWithTextbook(t *testing.T) {
	s := &stage{w: []float32{1, -2}, g: make([]float32, 2), m: make([]float32, 2), v: make([]float32, 2)}
	w, m, v := []float64{1, -2}, []float64{0, 0}, []float64{0, 0}
	for step := 1; step <= 30; step++ {
		for i := range w {
			g := math.Sin(float64(step * (i + 1)))
			s.g[i] = float32(g)
			m[i] = 0.9*m[i] + 0.1*g
			v[i] = 0.999*v[i] + 0.001*g*g
			mean, square := m[i]/(1-math.Pow(0.9, float64(step))), v[i]/(1-math.Pow(0.999, float64(step)))
			w[i] -= 0.01 * mean / (math.Sqrt(square) + 1e-8)
		}
		s.update(step, 0.01)
	}
	for i := range w {
		if math.Abs(w[i]-float64(s.w[i])) > 1e-5 {
			t.Errorf("w[%d] = %g, want %g", i, s.w[i], w[i])
		}
	}
}

func TestTheFutureIsHidden(t *testing.T) {
	c := Default()
	c.Shape = Shape{Vocab: 256, Dim: 8, Layers: 2, Heads: 2, Seq: 6}
	s := newStage(c, 0, c.Layers+1, &ring{world: 1}) // no head: the output is the residual stream
	output := func(text string) []float32 {
		m := s.begin([]sequence{sequence(text)}, 1)
		defer s.finish(m)
		return append([]float32(nil), s.forward(m, nil)...)
	}
	a, b := output("abcdefg"), output("abcdxxg")
	for i := range a {
		if same, early := a[i] == b[i], i < 4*c.Dim; same != early {
			t.Fatalf("float %d: equal is %t, but only the first 4 tokens are equal", i, same)
		}
	}
}

func TestArenaIsAligned(t *testing.T) {
	odd := func(x []float32) bool { return uintptr(unsafe.Pointer(&x[0]))%64 != 0 }
	var a arena
	for range 2 {
		for _, n := range []int{1, 3, 17, 64, 1000} {
			x := a.take(n)
			if len(x) != n || cap(x) != n || odd(x) {
				t.Errorf("take(%d): %d floats, room for %d, misaligned %t", n, len(x), cap(x), odd(x))
			}
		}
		a.reset()
	}
}
