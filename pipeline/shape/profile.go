package shape

import (
	"math"

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
	// Efficiency, where it is set, takes the place of that of the table.
	Efficiency float64
}

// New counts a shape, or says what is wrong with it.
func New(s Shape, p Precision) (*Profile, []pipeline.Why) {
	if whys := s.Check(); len(whys) > 0 {
		return nil, whys
	}
	return &Profile{shape: s, precision: p, layers: s.layers()}, nil
}

// Shape is what the profile is of.
func (p *Profile) Shape() *Shape { return &p.shape }

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

// Ways are how a layer can be passed: as it is, with attention's scores computed again, and
// with everything computed again.
func (p *Profile) Ways(layer int, on *parallel.Device, tensor, samples int) ([]parallel.Layer, pipeline.Why) {
	if why := p.shape.Splits(tensor); why != "" {
		return nil, why
	}
	if samples < 1 || !(on.TFlops > 0) || !(on.MemoryGBs > 0) {
		return nil, whyf("%d samples on %s with %g TFLOP/s and %g GB/s: expected more than 0 of each", samples, on.Name, on.TFlops, on.MemoryGBs)
	}
	efficiency := p.Efficiency
	if efficiency == 0 {
		efficiency = Efficiency(on.Name, p.precision)
	}
	t, n, parts := &p.layers[layer], float64(samples*p.shape.Sequence), float64(tensor)
	bytes, seq := p.precision.Bytes(), parts
	if p.Whole {
		seq = 1
	}
	kept := n * (bytes*t.wide/parts + (bytes*t.narrow+t.masks)/seq)
	// Of scores are kept what the softmax made of them and what the dropout left, with its mask.
	scores := n * t.scores * (2*bytes + 1) / parts
	if !p.shape.Dropout {
		scores = n * t.scores * bytes / parts
	}
	computes := func(ops float64) float64 { return n * ops / parts / (efficiency * on.TFlops * 1e6) } // in microseconds
	moves := func(bytes float64) float64 { return bytes / (on.MemoryGBs * 1e3) }

	// A kernel computes or moves: the two are added, and what they overlap is in the constant.
	forward := computes(t.linear+t.core) + moves(movedForward*(kept+scores))
	fast := parallel.Layer{
		Forward:       micros(forward),
		Input:         micros(computes(t.linear+2*t.core) + moves(movedBackward*(kept+scores))),
		Weight:        micros(computes(t.linear)), // attention has no weights between its products
		ParamKiB:      kib(bytes * (t.split/parts + t.whole)),
		ActivationKiB: kib(kept + scores),
		OutputKiB:     kib(n * bytes * t.output),
		GFlop:         3 * n * (t.linear + t.core) / parts / 1e9,
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
		selective.Again = micros(computes(t.core) + moves(movedForward*scores))
		ways = append(ways, selective)
	}
	// Only what came in is kept, where the tokens are divided in parts.
	full := fast
	full.Way, full.Again, full.ActivationKiB = "full", fast.Forward, kib(n*bytes*t.output/seq)
	return append(ways, full), ""
}

func kib(bytes float64) int64 { return int64(math.Ceil(bytes / 1024)) }

func micros(x float64) unit.Duration { return unit.Duration(math.Round(x)) }
