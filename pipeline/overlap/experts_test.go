package overlap_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/overlap"
)

// layer is experts on 2 nodes of 4 devices; a KiB takes 1 us within a node and 4 us between.
func layer() *overlap.Experts {
	return &overlap.Experts{Compute: 1000, Launch: 10, KiB: 800, Nodes: 2, PerNode: 4,
		Within: pipeline.Link{Bandwidth: 8192, Latency: 5}, Between: pipeline.Link{Bandwidth: 2048, Latency: 20},
		Codecs: []overlap.Codec{{Name: "half", Part: .5, Compress: 100, Decompress: 200}}}
}

// TestAllToAll: three of eight parts stay in the node and four leave it; in two legs, three of
// four go within the node and then half to the other, with fewer beginnings.
func TestAllToAll(t *testing.T) {
	within, between := unit.Duration(3*5+300), unit.Duration(4*20+4*400)
	for kind, want := range map[overlap.Kind]unit.Duration{
		overlap.Pairwise: within + between, overlap.Pipe: max(within, between), overlap.Hierarchical: 3*5 + 600 + 20 + 4*400,
	} {
		if got := layer().Takes(kind, 800); got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
	alone := overlap.Experts{Nodes: 1, PerNode: 1, Within: pipeline.Link{Bandwidth: 1}}
	if got := alone.Takes(overlap.Pairwise, 1000); got != 0 {
		t.Errorf("a device sends to itself for %v", got)
	}
}

// TestChain: each chunk has its part of everything and the whole of a launch.
func TestChain(t *testing.T) {
	e := layer()
	if got, want := e.Chain(overlap.Choice{Chunks: 2, Kind: overlap.Pipe}), (overlap.Chain{0, 80 + 800, 0, 510, 0, 80 + 800, 0}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := e.Chain(overlap.Choice{Chunks: 2, Kind: overlap.Pipe, Codec: 1}), (overlap.Chain{60, 80 + 400, 110, 510, 60, 80 + 400, 110}); got != want {
		t.Errorf("with a codec %v, want %v", got, want)
	}
	got, why := e.Time(overlap.Choice{Chunks: 2, Kind: overlap.Pipe})
	if why != "" || got.Iteration != 4*880 || got.Overlap != 2*510 {
		t.Errorf("two chunks: %+v (%s)", got, why)
	}
}

// TestOrder: an order that has the stream and the channel wait for each other, or that lacks a
// piece, is refused.
func TestOrder(t *testing.T) {
	var c overlap.Chain
	o := overlap.ByStage(2)
	if _, why := c.Time(o); why != "" {
		t.Fatal(why)
	}
	circle := overlap.Order{Stream: slices.Clone(o.Stream), Channel: slices.Clone(o.Channel)}
	slices.Reverse(circle.Channel)
	if _, why := c.Time(circle); !strings.Contains(string(why), "in a circle") {
		t.Errorf("a circle: %q", why)
	}
	for _, o := range []overlap.Order{{Stream: o.Stream}, {Stream: o.Stream, Channel: slices.Repeat(o.Channel[:1], 4)}} {
		if _, why := c.Time(o); !strings.Contains(string(why), "each of a chunk once") {
			t.Errorf("%v: %q", o, why)
		}
	}
}

// TestExpertsCheck: what cannot be is said.
func TestExpertsCheck(t *testing.T) {
	for want, spoil := range map[string]func(*overlap.Experts, *overlap.Choice){
		"0 chunks and codec 0":    func(_ *overlap.Experts, c *overlap.Choice) { c.Chunks = 0 },
		"1 chunks and codec 2":    func(_ *overlap.Experts, c *overlap.Choice) { c.Codec = 2 },
		"0 nodes of 4 devices":    func(e *overlap.Experts, _ *overlap.Choice) { e.Nodes = 0 },
		"bandwidth -1":            func(e *overlap.Experts, _ *overlap.Choice) { e.Between.Bandwidth = -1 },
		"codec half leaves 1.5":   func(e *overlap.Experts, _ *overlap.Choice) { e.Codecs[0].Part = 1.5 },
		"experts of -1 and 10 mi": func(e *overlap.Experts, _ *overlap.Choice) { e.Compute = -1 },
	} {
		e, c := layer(), overlap.Choice{Chunks: 1, Kind: overlap.Pipe}
		spoil(e, &c)
		if _, why := e.Time(c); !strings.Contains(string(why), want) {
			t.Errorf("%q, want that it says %q", why, want)
		}
	}
}
