package clustering_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/clustering"
)

func newPlacer() allocate.Placer { return clustering.New() }

func TestConforms(t *testing.T) { allocatetest.Conform(t, newPlacer) }

func BenchmarkPlace(b *testing.B) { allocatetest.Bench(b, newPlacer) }

// A share goes to the node of shares, a whole device to the node of whole devices, and a
// kind that runs nowhere to a free node.
func TestKinds(t *testing.T) {
	type part = allocatetest.Part
	for _, test := range []struct {
		name  string
		shape plan.Shape
		want  string
	}{
		{"a share", allocatetest.Share(200, 0), "1/0:1"},
		{"one device", allocatetest.Gang(1), "2:1"},
		{"two devices for one worker", plan.Shape{Gang: 1, Devices: 2, Share: 1000, Models: ^uint64(0)}, "0:1"},
	} {
		s := allocatetest.Cluster(t, 2, 1, part{Devices: 2}, part{Shares: []int32{500, 600}}, part{Devices: 1})
		if got := allocatetest.Offer(t, s, clustering.New(), test.shape, 1); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
