package dotproduct_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/strategies/allocate/dotproduct"
)

func newPlacer() allocate.Placer { return dotproduct.New() }

func TestConforms(t *testing.T) { allocatetest.Conform(t, newPlacer) }

func BenchmarkPlace(b *testing.B) { allocatetest.Bench(b, newPlacer) }

// With little free on either, a node is better than one with much; a request for
// devices alone looks at devices alone.
func TestSmallestProduct(t *testing.T) {
	type part = allocatetest.Part
	s := allocatetest.Cluster(t, 8, 1, part{Devices: 4}, part{Devices: 2}, part{Devices: 3})
	if got := allocatetest.Offer(t, s, dotproduct.New(), allocatetest.Gang(2), 1); got != "1:2" {
		t.Errorf("got %q", got)
	}
}
