package overlap

import (
	"math"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// ExpertsPart says in how many chunks the tokens of a mixture of experts go through a layer.
var ExpertsPart = strategy.NewPart[Chunker](strategy.Part{Name: "experts", Rank: 94, Step: "pipeline", Null: "one-chunk", Default: "one-chunk"})

// Chunker cuts the tokens of a layer into chunks.
type Chunker interface {
	// Chunk returns a choice for experts that Check finds nothing wrong with.
	Chunk(e *Experts) Choice
}

// Experts are a layer of experts that are spread evenly over devices, as one of them sees it.
type Experts struct {
	// Compute is what the experts take for all tokens at once, and Launch what each piece of
	// work takes besides, so that small chunks cost more.
	Compute, Launch unit.Duration
	// KiB is what a device sends of its tokens in one of the two all-to-alls, as much to each
	// device, itself included.
	KiB int64 `yaml:"kib"`
	// Nodes and PerNode are the devices over which the experts are spread. Within and Between
	// are the links of a device to those of its node and to the others.
	Nodes, PerNode  int
	Within, Between pipeline.Link
	// Codecs are the ways there are to compress tokens, besides none.
	Codecs []Codec
}

// Codec is a way to compress tokens, as it was measured.
type Codec struct {
	Name string
	// Part is what is left of the tokens, above 0 and at most 1.
	Part float64
	// Compress and Decompress are for all tokens at once.
	Compress, Decompress unit.Duration
}

// Kind is how an all-to-all goes.
type Kind string

// The kinds of all-to-all.
const (
	Pairwise     Kind = "pairwise"     // to one device after the other
	Pipe         Kind = "pipe"         // as pairwise, within the node and between nodes at once
	Hierarchical Kind = "hierarchical" // within the node to whom shares the place of the receiver, then between nodes
)

// Kinds lists them all.
var Kinds = []Kind{Pairwise, Pipe, Hierarchical}

// Choice is how the tokens of a layer go.
type Choice struct {
	Chunks int
	Kind   Kind
	// Codec is the number of one, from 1; 0 is none.
	Codec int
}

// Check says what is wrong with a layer of experts.
func (e *Experts) Check() pipeline.Why {
	for _, link := range []pipeline.Link{e.Within, e.Between} {
		if link.Bandwidth < 0 || link.Latency < 0 || link.Latency > longest {
			return whyf("a link of bandwidth %d and latency %d: expected nothing negative, and an hour at most", int64(link.Bandwidth), int64(link.Latency))
		}
	}
	if min(e.Compute, e.Launch) < 0 || max(e.Compute, e.Launch) > longest || e.KiB < 0 || e.KiB > largestKiB || min(e.Nodes, e.PerNode) < 1 || max(e.Nodes, e.PerNode) > mostDevices {
		return whyf("experts of %d and %d microseconds, %d KiB, %d nodes of %d devices: expected 0 to an hour, 0 to %d KiB and 1 to %d of each",
			int64(e.Compute), int64(e.Launch), e.KiB, e.Nodes, e.PerNode, int64(largestKiB), mostDevices)
	}
	for _, k := range e.Codecs {
		if !(k.Part > 0 && k.Part <= 1) || min(k.Compress, k.Decompress) < 0 || max(k.Compress, k.Decompress) > longest {
			return whyf("codec %s leaves %g in %d and %d microseconds: expected more than 0, at most 1, and 0 to an hour", k.Name, k.Part, int64(k.Compress), int64(k.Decompress))
		}
	}
	return ""
}

const (
	mostDevices = 1 << 20
	mostChunks  = 1 << 12
)

// Takes is how long an all-to-all of so much takes, on a device that sends as much to each,
// itself included.
func (e *Experts) Takes(kind Kind, kib int64) unit.Duration {
	nodes, per := e.Nodes, e.PerNode
	leg := func(link pipeline.Link, steps int, part float64) unit.Duration {
		begun := unit.Duration(steps-1) * link.Latency // all but the last, whose latency is in what the link takes
		return begun + link.Takes(int64(math.Ceil(float64(kib)*part)))
	}
	if kind == Hierarchical {
		return leg(e.Within, per-1, float64(per-1)/float64(per)) + leg(e.Between, nodes-1, float64(nodes-1)/float64(nodes))
	}
	all := float64(nodes * per)
	within, between := leg(e.Within, per-1, float64(per-1)/all), leg(e.Between, nodes*per-per, float64(nodes*per-per)/all)
	if kind == Pipe {
		return max(within, between)
	}
	return within + between
}

// Chain is what a chunk of a choice takes, piece by piece.
func (e *Experts) Chain(c Choice) Chain {
	piece := func(whole unit.Duration) unit.Duration {
		if whole == 0 {
			return 0 // there is no such piece
		}
		return e.Launch + ceil(int64(whole), c.Chunks)
	}
	kib, codec := e.KiB, Codec{Part: 1}
	if c.Codec > 0 {
		codec = e.Codecs[c.Codec-1]
		kib = int64(math.Ceil(float64(kib) * codec.Part))
	}
	send := e.Takes(c.Kind, int64(ceil(kib, c.Chunks)))
	in, out := piece(codec.Compress), piece(codec.Decompress)
	return Chain{in, send, out, piece(e.Compute), in, send, out}
}

// ceil is the size of a chunk, if need be rounded up.
func ceil(whole int64, chunks int) unit.Duration {
	return unit.Duration((whole + int64(chunks) - 1) / int64(chunks))
}

// Time runs a choice through the task graph, or says why it cannot.
func (e *Experts) Time(c Choice) (Timing, pipeline.Why) {
	if c.Chunks < 1 || c.Chunks > mostChunks || c.Codec < 0 || c.Codec > len(e.Codecs) {
		return Timing{}, whyf("%d chunks and codec %d: expected 1 to %d and one of %d", c.Chunks, c.Codec, mostChunks, len(e.Codecs))
	}
	if why := e.Check(); why != "" {
		return Timing{}, why
	}
	chain, order := e.Chain(c), ByStage(c.Chunks)
	return chain.Time(order)
}
