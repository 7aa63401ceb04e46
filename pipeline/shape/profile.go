package shape

import (
	"cmp"
	"math"

	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Precision is what the passes compute in.
type Precision string

// The precisions.
const (
	Half   Precision = "half"   // bf16 or fp16, on the units for matrices
	TF32   Precision = "tf32"   // single precision kept, shorter when multiplied
	Single Precision = "single" // fp32
)

// Precisions lists them.
var Precisions = []Precision{Half, TF32, Single}

// Bytes are those of a figure.
func (p Precision) Bytes() float64 {
	if p == Half {
		return 2
	}
	return 4
}

// Profile is a shape in some precision.
type Profile struct {
	shape     Shape
	precision Precision
	layers    []tally
	// How Megatron-LM splits the rest of a layer is the user's choice.
	// Whole has every device that splits a layer do what is not split for all tokens; without,
	// the tokens are divided there (sequence parallel).
	Whole bool
	// Repeats has each device that splits a layer send all that comes out of it to the next rank;
	// without, each sends its part.
	Repeats bool
}

// New counts a shape, or says what is wrong with it.
func New(s Shape, p Precision) (*Profile, []objection.Objection) {
	if wrong := s.Check(); len(wrong) > 0 {
		return nil, wrong
	}
	return &Profile{shape: s, precision: p, layers: s.layers()}, nil
}

// Model is the shape as those programs train it whose steps were measured: both ends of a border wait.
func (p *Profile) Model(name string, batch int, state parallel.State) *parallel.Model {
	return &parallel.Model{Name: name, Profile: p, Batch: batch, State: state, Waits: true}
}

// Shape is what the profile is of.
func (p *Profile) Shape() *Shape { return &p.shape }

// Precision is what its passes compute in.
func (p *Profile) Precision() Precision { return p.precision }

// Layers is how many there are: the embedding, the blocks and the head.
func (p *Profile) Layers() int { return len(p.layers) }

// Kind is what a layer is, such as "block".
func (p *Profile) Kind(layer int) string { return p.layers[layer].name }

// Of the bytes that a pass moves: what is kept is written and read by the next kernel; on the
// way back it is read, and gradients as large are written and read, and added up.
const (
	movedForward  = 2
	movedBackward = 4
)

// scoring is what becomes of a score of attention, in bytes: what is kept of it, and what the
// pass forward and its gradient move.
type scoring struct{ kept, forward, backward float64 }

// scoring is of kernels in half precision that scale, mask and normalise at once; where figures
// are longer, frameworks do each by itself: forward products write, and scaling, mask, softmax
// and dropout read and write, and the next product reads; the gradient goes the same way back.
func (p *Profile) scoring() scoring {
	bytes, dropout := p.precision.Bytes(), 0.
	if p.shape.Dropout { // what it left is kept beside what came in, with a mask of a byte
		dropout = bytes + 1
	}
	s := scoring{kept: bytes + dropout}
	if p.precision == Half {
		s.forward, s.backward = movedForward*s.kept, movedBackward*s.kept
		return s
	}
	s.forward, s.backward = 8*bytes, 11*bytes
	if p.shape.Dropout {
		s.forward, s.backward = s.forward+bytes+dropout, s.backward+bytes+dropout
	}
	return s
}

// Ways are how a layer can be passed: as it is, with attention's scores computed again, and
// with everything computed again.
func (p *Profile) Ways(layer int, on *parallel.Device, tensor, samples int) ([]parallel.Layer, pipeline.Why) {
	if why := p.shape.Splits(tensor); why != "" {
		return nil, why
	}
	if samples < 1 || !(on.TFlops > 0) || !(on.MemoryGBs > 0) {
		return nil, whyf("%d samples on %s with %g TFLOP/s and %g GB/s: expected more than 0 of each", samples, on.Name, on.TFlops, on.MemoryGBs)
	}
	reach := cmp.Or(on.Reach, 1)
	t, n, parts := &p.layers[layer], float64(samples*p.shape.Sequence), float64(tensor)
	bytes, seq := p.precision.Bytes(), parts
	if p.Whole {
		seq = 1
	}
	kept := n * (bytes*t.wide/parts + (bytes*t.narrow+t.masks)/seq)
	each, scores := p.scoring(), n*t.scores/parts
	computes := func(ops float64) float64 { return n * ops / parts / (reach * on.TFlops * 1e6) } // in microseconds
	moves := func(bytes float64) float64 { return bytes / (reach * on.MemoryGBs * 1e3) }

	// A kernel computes or moves: the two are added, and one constant says how well both go.
	forward := computes(t.linear+t.core) + moves(movedForward*kept+each.forward*scores)
	backward := computes(t.linear+2*t.core) + moves(movedBackward*kept+each.backward*scores)
	if t.core > 0 {
		forward, backward = forward+float64(on.Launch), backward+float64(on.Launch)
	}
	fast := parallel.Layer{
		Forward:       micros(forward),
		Input:         micros(backward),
		Weight:        micros(computes(t.linear)), // attention has no weights between its products
		ParamKiB:      kib(bytes * (t.split/parts + t.whole)),
		ActivationKiB: kib(kept + each.kept*scores),
		OutputKiB:     kib(n * bytes * t.output),
		GFlop:         3 * n * (t.linear + t.core) / parts / 1e9,
	}
	if e := &t.mixture; e.count > 0 {
		fast.Mixture = parallel.Mixture{Count: e.count, ParamKiB: kib(bytes * (e.split/parts + e.whole)),
			Forward: micros(computes(e.linear) + moves(movedForward*n*bytes*e.wide/parts)),
			Input:   micros(computes(e.linear) + moves(movedBackward*n*bytes*e.wide/parts)), Weight: micros(computes(e.linear)),
			SendKiB: kib(n * bytes * e.chosen * float64(p.shape.Hidden) / seq)}
		if seq > 1 { // experts that are split need the tokens of all that split them, once for each choice
			fast.Mixture.GatherKiB = kib(n * bytes * (e.chosen - 1) * float64(p.shape.Hidden))
		}
	}
	if p.Repeats {
		fast.OutputKiB *= int64(tensor)
	}
	if tensor > 1 {
		fast.ReduceKiB = kib(n * bytes * t.sums * float64(p.shape.Hidden))
	}
	// To compute an embedding or a head again saves next to nothing.
	if t.core == 0 {
		return []parallel.Layer{fast}, ""
	}
	ways := []parallel.Layer{fast}
	if scores > 0 {
		selective := fast
		selective.Way, selective.ActivationKiB = "selective", kib(kept)
		selective.Again = micros(computes(t.core) + moves(each.forward*scores))
		ways = append(ways, selective)
	}
	// Only what came in is kept, where the tokens are divided in parts.
	full := fast
	full.Mixture.Again = full.Mixture.Forward
	full.Way, full.Again, full.ActivationKiB = "full", fast.Forward, kib(n*bytes*t.output/seq)
	return append(ways, full), ""
}

func kib(bytes float64) int64 { return int64(math.Ceil(bytes / 1024)) }

func micros(x float64) unit.Duration { return unit.Duration(math.Round(x)) }
