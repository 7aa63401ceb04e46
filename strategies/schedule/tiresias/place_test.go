package tiresias_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/strategies/schedule/tiresias"
)

func newPlacer() allocate.Placer { return tiresias.NewPlacer(tiresias.Default()) }

func TestPlacerConforms(t *testing.T) { allocatetest.Conform(t, newPlacer) }

func BenchmarkPlace(b *testing.B) { allocatetest.Bench(b, newPlacer) }

// A skewed job waits until the fewest nodes that could ever hold it have room; any
// other takes the first room there is.
func TestSkewConsolidates(t *testing.T) {
	type part = allocatetest.Part
	for _, test := range []struct {
		name    string
		workers int32
		free    []part
		skewed  string
		even    string
	}{
		{"one node has room", 4, []part{{Devices: 3}, {Devices: 4}}, "1:4", "0:3 1:1"},
		{"no node has", 4, []part{{Devices: 3}, {Devices: 3}}, "", "0:3 1:1"},
		{"it needs two nodes", 12, []part{{Devices: 2}, {Devices: 8}, {Devices: 4}}, "1:8 2:4", "0:2 1:8 2:2"},
		{"it needs two nodes and has three", 12, []part{{Devices: 3}, {Devices: 8}, {Devices: 3}}, "", "0:3 1:8 2:1"},
		{"a single worker is together anywhere", 1, []part{{}, {Devices: 1}}, "1:1", "1:1"},
	} {
		for _, skew := range []int32{500, 501} {
			shape, want := allocatetest.Gang(test.workers), test.even
			if shape.Skew = skew; skew > 500 {
				want = test.skewed
			}
			if got := allocatetest.Offer(t, allocatetest.Cluster(t, 8, 1, test.free...), newPlacer(), shape, 1); got != want {
				t.Errorf("%s, skew %d: got %q, want %q", test.name, skew, got, want)
			}
		}
	}
}

// Shares of a skewed job are kept on one node as well.
func TestSkewedShares(t *testing.T) {
	shape := allocatetest.Share(500, 1)
	shape.Gang, shape.Skew = 3, 900
	free := []allocatetest.Part{{Shares: []int32{500, 500}}, {Devices: 1, Shares: []int32{600}, Cores: 3}}
	if got, want := allocatetest.Offer(t, allocatetest.Cluster(t, 8, 1, free...), newPlacer(), shape, 2), "1/6:1 1/7:2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
