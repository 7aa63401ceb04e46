package overlap

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/mechanism/taskgraph"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Piece is a piece of work of a chunk, by its number in a Chain.
type Piece int8

// The pieces, in the order of a chunk: tokens are compressed and sent to the devices of their
// experts, and what becomes of them comes back the same way.
const (
	Compress Piece = iota
	Send
	Decompress
	Expert
	CompressBack
	SendBack
	DecompressBack
)

// Chain is what each piece of a chunk takes.
type Chain [DecompressBack + 1]unit.Duration

// Step is a piece of a chunk.
type Step struct {
	Piece Piece
	Chunk int
}

// String names a step, as in E1 for the expert of the second chunk.
func (s Step) String() string {
	return fmt.Sprint([]string{"C", "A", "D", "E", "c", "a", "d"}[s.Piece], s.Chunk)
}

// Order is in which order the stream computes, and in which the channel sends.
type Order struct{ Stream, Channel []Step }

// ByStage is the order of ScheMoE: all tokens are compressed first and decompressed last, and
// between that the chunks take their turns; all of them are sent before any comes back.
func ByStage(chunks int) (o Order) {
	each := func(into *[]Step, pieces ...Piece) {
		for k := range chunks {
			for _, p := range pieces {
				*into = append(*into, Step{p, k})
			}
		}
	}
	each(&o.Stream, Compress)
	each(&o.Stream, Decompress, Expert, CompressBack)
	each(&o.Stream, DecompressBack)
	each(&o.Channel, Send)
	each(&o.Channel, SendBack)
	return o
}

// Time runs chunks of a chain through the task graph, in an order that has each piece of each
// of them once. It says why it cannot: the stream and the channel may wait for each other.
func (c *Chain) Time(o Order) (Timing, pipeline.Why) {
	all := len(o.Stream) + len(o.Channel)
	g, tasks := newGraph(all), slices.Repeat([]int32{-1}, all)
	for resource, steps := range [][]Step{stream: o.Stream, channel: o.Channel} {
		for _, s := range steps {
			at := s.Chunk*len(c) + int(s.Piece)
			if at < 0 || at >= all || all%len(c) != 0 || tasks[at] >= 0 {
				return Timing{}, whyf("piece %v of %d: expected each of a chunk once", s, all)
			}
			tasks[at] = g.AddTask(taskgraph.Task{Resource: int32(resource), Duration: c[s.Piece]})
		}
	}
	for i := range tasks {
		if i%len(c) > 0 {
			g.Edges = append(g.Edges, taskgraph.Edge{Before: tasks[i-1], After: tasks[i]})
		}
	}
	return run(g)
}
