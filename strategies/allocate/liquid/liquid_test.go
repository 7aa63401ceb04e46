package liquid_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/liquid"
)

func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return liquid.New(liquid.Default()) })
}

func TestPlaces(t *testing.T) {
	type part = allocatetest.Part
	for _, test := range []struct {
		name  string
		shape plan.Shape
		free  []part
		want  string
	}{
		{"on one node if it fits", allocatetest.Gang(3), []part{{Devices: 2}, {Devices: 3}, {Devices: 4}, {Devices: 1}}, "1:3"},
		{"in one rack if it fits", allocatetest.Gang(5), []part{{Devices: 4}, {Devices: 0}, {Devices: 3}, {Devices: 2}}, "3:2 2:3"},
		{"the fewest pairs over racks", allocatetest.Gang(6), []part{{Devices: 4}, {Devices: 0}, {Devices: 1}, {Devices: 1}}, "2:1 3:1 0:4"},
		{"a share on the tightest device", allocatetest.Share(300, 0), []part{{Shares: []int32{700, 400}}, {}, {Devices: 4}, {}}, "0/3:1"},
		{"not enough", allocatetest.Gang(4), []part{{Devices: 1}, {Devices: 2}}, ""},
	} {
		s := allocatetest.Cluster(t, 4, 2, test.free...)
		if got := allocatetest.Offer(t, s, liquid.New(liquid.Default()), test.shape, 1); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	if strategy.Check(liquid.Config{RacksPerDomain: -1}) == nil || strategy.Check(liquid.Default()) != nil {
		t.Error("a domain must not have less than no racks, and has not by default")
	}
}

func BenchmarkPlace(b *testing.B) {
	allocatetest.Bench(b, func() allocate.Placer { return liquid.New(liquid.Default()) })
}
