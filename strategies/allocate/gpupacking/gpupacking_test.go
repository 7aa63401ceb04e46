package gpupacking_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/gpupacking"
)

func newPlacer() allocate.Placer { return gpupacking.New() }

func TestConforms(t *testing.T) { allocatetest.Conform(t, newPlacer) }

func BenchmarkPlace(b *testing.B) { allocatetest.Bench(b, newPlacer) }

// Shared devices come first, the fuller the better; then free devices of a used node;
// then a free node.
func TestCases(t *testing.T) {
	type part = allocatetest.Part
	for _, test := range []struct {
		name  string
		shape plan.Shape
		free  []part
		want  string
	}{
		{"the fuller of two shared devices", allocatetest.Share(200, 0), []part{{Devices: 8}, {Shares: []int32{700}}, {Shares: []int32{300}}}, "2/7:1"},
		{"a used node before a free one", allocatetest.Gang(1), []part{{Devices: 8}, {Devices: 3}}, "1:1"},
		{"a free node where nothing else is", allocatetest.Gang(1), []part{{Devices: 0}, {Devices: 8}}, "1:1"},
	} {
		s := allocatetest.Cluster(t, 8, 1, test.free...)
		if got := allocatetest.Offer(t, s, gpupacking.New(), test.shape, 1); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
