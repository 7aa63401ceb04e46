package consolidate_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/consolidate"
)

func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return consolidate.New() })
}

func TestTogether(t *testing.T) {
	type part = allocatetest.Part
	for _, test := range []struct {
		name  string
		shape plan.Shape
		free  []part
		want  string
	}{
		{"the tightest node that holds all", allocatetest.Gang(3), []part{{Devices: 8}, {Devices: 1}, {Devices: 4}, {Devices: 2}}, "2:3 | 0:3"},
		{"the fullest-free, then the tightest", allocatetest.Gang(11), []part{{Devices: 3}, {Devices: 7}, {Devices: 4}, {Devices: 8}}, "3:8 0:3 | 1:7 2:4"},
		{"one rack before two", allocatetest.Gang(12), []part{{Devices: 8}, {Devices: 0}, {Devices: 6}, {Devices: 6}}, "2:6 3:6 | 0:8 3:4"},
		{"fewer nodes before one rack", allocatetest.Gang(14), []part{{Devices: 8}, {Devices: 0}, {Devices: 6}, {Devices: 5}}, "0:8 2:6"},
		{"shares on one node", allocatetest.Share(500, 0), []part{{Devices: 8}, {Shares: []int32{400, 700, 500}}}, "1/7:1 | 0/0:1"},
		{"not enough", allocatetest.Gang(4), []part{{Devices: 1}, {Devices: 2}}, ""},
	} {
		s := allocatetest.Cluster(t, 8, 2, test.free...)
		if got := allocatetest.Offer(t, s, consolidate.New(), test.shape, 2); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func BenchmarkPlace(b *testing.B) {
	allocatetest.Bench(b, func() allocate.Placer { return consolidate.New() })
}
