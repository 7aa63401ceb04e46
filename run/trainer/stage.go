package trainer

import (
	"math"
	"math/rand/v2"
)

// extras are the floats that every all-reduce carries behind the gradients, so that
// all workers learn the loss and decide about checkpoints at the same boundary.
const (
	extraLoss  = iota
	extraSave  // workers that were asked to save
	extraStop  // workers that were asked to stop
	extraAsked // workers that were asked for a batch
	extraBatch // the sum of what they were asked for
	extraPlan  // workers that were asked to go by another plan
	extraCount
)

// stage is a run of consecutive layers: all of them, or one pipeline stage.
type stage struct {
	shape    Shape
	from, to int   // layers from..to-1
	tensor   *ring // those with the other slices of the layers
	layers   []layer
	starts   []int // of each layer in the flat arrays, and their length
	// Parameters, gradients and Adam's moments; shared holds g and the extras.
	w, g, m, v []float32
	shared     []float32
	spare      []*microbatch
}

// newStage returns layers from..to-1, or this worker's slices of them, with their first
// parameters, which depend on the seed and the layer only: every way to cut the model starts
// from the same one.
func newStage(c Config, from, to int, tensor *ring) *stage {
	s := emptyStage(c, from, to, tensor)
	for i := range s.layers {
		whole := newLayer(c.Shape, from+i, 1)
		w := make([]float32, whole.size())
		whole.bind(w, w)
		whole.start(rand.New(rand.NewPCG(c.Seed, uint64(from+i))))
		s.takeSlice(s.w, i, w)
	}
	return s
}

// emptyStage is a stage whose parameters are still to come.
func emptyStage(c Config, from, to int, tensor *ring) *stage {
	s := &stage{shape: c.Shape, from: from, to: to, tensor: tensor, starts: []int{0}}
	total := 0
	for i := from; i < to; i++ {
		l := newLayer(c.Shape, i, tensor.world)
		total += l.size()
		s.layers, s.starts = append(s.layers, l), append(s.starts, total)
	}
	s.w, s.m, s.v = aligned(total), aligned(total), aligned(total)
	s.shared = aligned(total + extraCount)
	s.g = s.shared[:total]
	for i, l := range s.layers {
		l.bind(s.layer(s.w, i), s.layer(s.g, i))
	}
	return s
}

// takeSlice copies what is this worker's of the i-th layer here from an array of the whole layer.
func (s *stage) takeSlice(flat []float32, i int, whole []float32) {
	own := s.layer(flat, i)
	for _, p := range s.layers[i].pieces(s.tensor.rank) {
		own = own[copy(own, whole[p.from:p.from+p.n]):]
	}
}

// gather returns the i-th layer here as a whole. All who have slices of it call it at once.
func (s *stage) gather(flat []float32, i int) ([]float32, error) {
	own := s.layer(flat, i)
	if s.tensor.world == 1 {
		return own, nil
	}
	slices := make([]float32, s.tensor.world*len(own))
	copy(slices[s.tensor.rank*len(own):], own)
	err := s.tensor.allReduce(slices)
	whole := make([]float32, newLayer(s.shape, s.from+i, 1).size())
	for k := range s.tensor.world {
		for _, p := range s.layers[i].pieces(k) {
			slices = slices[copy(whole[p.from:p.from+p.n], slices):]
		}
	}
	return whole, err
}

// layer returns the part of a flat array that belongs to the i-th layer here.
func (s *stage) layer(flat []float32, i int) []float32 { return flat[s.starts[i]:s.starts[i+1]] }

func (s *stage) extras() []float32 { return s.shared[len(s.g):] }

// begin returns an empty microbatch for these sequences; weight is one token's part
// of the loss.
func (s *stage) begin(sequences []sequence, weight float32) *microbatch {
	m := &microbatch{}
	if n := len(s.spare); n > 0 {
		m, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	m.weight, m.tensor, m.first, m.inputs, m.target = weight, s.tensor, nil, m.inputs[:0], m.target[:0]
	for _, q := range sequences {
		m.inputs = append(m.inputs, q[:len(q)-1]...)
		m.target = append(m.target, q[1:]...)
	}
	return m
}

// forward sends a microbatch through the stage; x is nil where the embedding is
// first. At the head it adds to the step's loss, which all slices know and one tells.
func (s *stage) forward(m *microbatch, x []float32) []float32 {
	y := s.compute(m, x)
	if s.tensor.rank == 0 {
		s.extras()[extraLoss] += m.loss
	}
	return y
}

// compute is a forward pass, the first or once more, that leaves the loss to the microbatch.
func (s *stage) compute(m *microbatch, x []float32) []float32 {
	m.loss = 0
	for _, l := range s.layers {
		var back backward
		x, back = l.forward(m, x)
		m.backs = append(m.backs, back)
	}
	return x
}

// backward returns the gradient of the stage's input. It is valid until finish. The first half
// of a halved one leaves to weights what nobody waits for.
func (s *stage) backward(m *microbatch, dy []float32) []float32 {
	for i := len(m.backs) - 1; i >= 0; i-- {
		dy = m.backs[i](dy)
	}
	return dy
}

// weights is the second half of a backward pass.
func (m *microbatch) weights() {
	for _, add := range m.later {
		add()
	}
	clear(m.later)
	m.later, m.halved = m.later[:0], false
}

// finish ends what a microbatch does at the stage, and takes its memory back.
func (s *stage) finish(m *microbatch) {
	m.arena.reset()
	clear(m.backs)
	m.backs = m.backs[:0]
	s.spare = append(s.spare, m)
}

// Adam's constants.
const (
	adamMean    = 0.9
	adamSquare  = 0.999
	adamEpsilon = 1e-8
)

// update makes one step of Adam; step counts from 1.
func (s *stage) update(step int, lr float64) {
	rate := float32(lr * math.Sqrt(1-math.Pow(adamSquare, float64(step))) / (1 - math.Pow(adamMean, float64(step))))
	m, v, w := s.m, s.v, s.w
	for i, g := range s.g {
		m[i] = adamMean*m[i] + (1-adamMean)*g
		v[i] = adamSquare*v[i] + (1-adamSquare)*g*g
		w[i] -= rate * m[i] / (float32(math.Sqrt(float64(v[i]))) + adamEpsilon)
	}
}
