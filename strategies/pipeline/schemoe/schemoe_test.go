package schemoe

import (
	"os"
	"testing"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/overlap/overlaptest"
)

// TestOrder: of all orders of two chunks none is shorter, and there are as many as two chains
// of five and two of two have.
func TestOrder(t *testing.T) {
	cases := 15
	if os.Getenv("MUSTER_LONG") == "1" {
		cases = 150
	}
	overlaptest.Chains(41, cases, true, func(c *overlap.Chain) {
		least, orders := overlaptest.OfTwo(c)
		if got, why := c.Time(overlap.ByStage(2)); why != "" || got.Iteration != least || orders != 252*6 {
			t.Errorf("%v: %v (%s), the best of %d is %v", c, got.Iteration, why, orders, least)
		}
	})
}

// TestOneChunk: the pieces of one chunk come one after the other.
func TestOneChunk(t *testing.T) {
	c := overlap.Chain{1, 20, 300, 4000, 50000, 600000, 7000000}
	if got, _ := c.Time(overlap.ByStage(1)); got.Iteration != 7654321 || got.Overlap != 0 {
		t.Errorf("%+v", got)
	}
}

// TestChunk: nothing that could be chosen takes less than what is.
func TestChunk(t *testing.T) {
	e := &overlap.Experts{Compute: 2000, Launch: 20, KiB: 1 << 14, Nodes: 2, PerNode: 4,
		Within: pipeline.Link{Bandwidth: 400_000, Latency: 5}, Between: pipeline.Link{Bandwidth: 50_000, Latency: 10},
		Codecs: []overlap.Codec{{Name: "int8", Part: .5, Compress: 100, Decompress: 100}, {Name: "lossless", Part: .9, Compress: 1000, Decompress: 500}}}
	chosen, why := e.Time(Scheduler{}.Chunk(e))
	one, again := e.Time(One{}.Chunk(e))
	if why+again != "" || chosen.Iteration >= one.Iteration {
		t.Errorf("%v, one chunk takes %v (%s)", chosen.Iteration, one.Iteration, why+again)
	}
	for chunks := range most {
		for _, kind := range overlap.Kinds {
			for codec := range 3 {
				choice := overlap.Choice{Chunks: chunks + 1, Kind: kind, Codec: codec}
				if got, _ := e.Time(choice); got.Iteration < chosen.Iteration {
					t.Errorf("%+v takes %v, the chosen %v", choice, got.Iteration, chosen.Iteration)
				}
			}
		}
	}
}
