package switching_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate/switching"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
)

// Two layers of 1 ms each that take 1 ms to move: moved together they finish after
// 4 ms, one by one after 3, unless a hand-over costs more than a layer.
func TestTwoLayers(t *testing.T) {
	layers := []switching.Layer{{Bytes: 1 << 20, Compute: 1000}, {Bytes: 1 << 20, Compute: 1000}}
	p := switching.Path{Links: []switching.Link{{BytesPerSec: 1000 << 20}}}
	for sync, want := range map[unit.Duration]string{0: "{[1 2] 3ms}", 100: "{[1 2] 3.2ms}", 1500: "{[2] 5.5ms}"} {
		p.Sync = sync
		if got := fmt.Sprint(p.Group(layers)); got != want {
			t.Errorf("with a hand-over of %d us: %s, want %s", sync, got, want)
		}
	}
	if got := p.Group(nil); got.Finish != 0 {
		t.Errorf("no layers finish at %v", got)
	}
}

func draw(t *rapid.T, most int) ([]switching.Layer, switching.Path) {
	var layers []switching.Layer
	for range rapid.IntRange(1, most).Draw(t, "layers") {
		layers = append(layers, switching.Layer{Bytes: rapid.Int64Range(0, 1000).Draw(t, "bytes"), Compute: unit.Duration(rapid.IntRange(0, 1000).Draw(t, "compute"))})
	}
	p := switching.Path{Sync: unit.Duration(rapid.IntRange(0, 200).Draw(t, "sync"))}
	for range rapid.IntRange(0, 2).Draw(t, "links") {
		p.Links = append(p.Links, switching.Link{Fixed: unit.Duration(rapid.IntRange(0, 300).Draw(t, "fixed")), BytesPerSec: rapid.Float64Range(1e5, 1e7).Draw(t, "bandwidth")})
	}
	return layers, p
}

// With up to 12 layers and one to three stages, no grouping finishes earlier.
func TestGroupAgainstAll(t *testing.T) {
	draws.Check(t, func(t *rapid.T) { against(t, 12) })
}

func against(t *rapid.T, most int) {
	layers, p := draw(t, most)
	got := p.Group(layers)
	if f := p.Finish(layers, got.Ends); f != got.Finish {
		t.Fatalf("%v finishes at %d", got, f)
	}
	best := unit.Forever
	for cuts := range 1 << (len(layers) - 1) {
		var ends []int
		for i := range len(layers) - 1 {
			if cuts&(1<<i) != 0 {
				ends = append(ends, i+1)
			}
		}
		best = min(best, p.Finish(layers, append(ends, len(layers))))
	}
	if got.Finish != best {
		t.Fatalf("%v over %v: %v, the best is %d", layers, p, got, best)
	}
}

// The end of three stages is no earlier than the work of the busiest one, and no
// later than all work in a row.
func TestStages(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		layers, p := draw(t, 30)
		g := p.Group(layers)
		serial, busiest := 0.0, 0.0
		for i := range p.Links {
			stage := 0.0
			begin := 0
			for _, end := range g.Ends {
				bytes := int64(0)
				for _, l := range layers[begin:end] {
					bytes += l.Bytes
				}
				stage, begin = stage+float64(p.Links[i].Fixed)+1e6*float64(bytes)/p.Links[i].BytesPerSec, end
			}
			serial, busiest = serial+stage, max(busiest, stage)
		}
		compute := float64(len(g.Ends)) * float64(p.Sync)
		for _, l := range layers {
			compute += float64(l.Compute)
		}
		serial, busiest = serial+compute, max(busiest, compute)
		if f := float64(g.Finish); f < busiest-1 || f > serial+1 {
			t.Fatalf("%g is not between %g and %g", f, busiest, serial)
		}
	})
}

// 500 layers over one link, or 150 over two, are exact and fast.
func TestManyLayers(t *testing.T) {
	links := []switching.Link{{Fixed: 20, BytesPerSec: 12e9}, {Fixed: 10, BytesPerSec: 3e9}}
	for hops, n := range map[int]int{1: 500, 2: 150} {
		layers := make([]switching.Layer, n)
		for i := range layers {
			layers[i] = switching.Layer{Bytes: int64(100_000 + i*i%700_000), Compute: unit.Duration(20 + i*37%100)}
		}
		p := switching.Path{Sync: 20, Links: links[:hops]}
		g := p.Group(layers)
		if whole, single := p.Finish(layers, switching.Whole(layers)), p.Finish(layers, switching.Single(layers)); g.Finish >= min(whole, single) {
			t.Errorf("grouped %d, whole %d, single %d", g.Finish, whole, single)
		}
	}
}

func TestSwitch(t *testing.T) {
	s := switching.Switch{Stop: 100, Save: switching.Link{Fixed: 10, BytesPerSec: 1e6}, Path: switching.Path{Links: []switching.Link{{BytesPerSec: 1e6}}}}
	for _, c := range []struct {
		changed int64
		layers  []switching.Layer
		want    unit.Duration
	}{{0, nil, 100}, {5, nil, 115}, {0, []switching.Layer{{Bytes: 7, Compute: 50}}, 107}, {5, []switching.Layer{{Bytes: 7, Compute: 50}, {Bytes: 20, Compute: 9}}, 122}} {
		if got := s.Cost(c.changed, c.layers); got != c.want {
			t.Errorf("%+v costs %d", c, got)
		}
	}
}
