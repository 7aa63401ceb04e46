package spread_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/spread"
)

func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return spread.New(spread.Default()) })
}

func TestApart(t *testing.T) {
	type part = allocatetest.Part
	for _, test := range []struct {
		name  string
		shape plan.Shape
		free  []part
		want  string
	}{
		{"one worker a node", allocatetest.Gang(3), []part{{Devices: 8}, {Devices: 8}, {Devices: 8}, {Devices: 8}}, "0:1 1:1 2:1"},
		{"the emptiest until they are level", allocatetest.Gang(5), []part{{Devices: 2}, {Devices: 5}, {Devices: 3}}, "1:3 2:1 0:1"},
		{"an empty device before a part of one", allocatetest.Share(300, 0), []part{{Shares: []int32{900}}, {Devices: 1}}, "1/7:1"},
		{"the emptiest part", allocatetest.Share(300, 0), []part{{Shares: []int32{400, 700}}, {Shares: []int32{800, 600}}}, "1/6:1"},
		{"cores on the node with the most devices", allocatetest.Cores(4), []part{{Devices: 1, Cores: 5}, {Devices: 2, Cores: 4}}, "1:1"},
		{"not enough", allocatetest.Gang(4), []part{{Devices: 1}, {Devices: 2}}, ""},
	} {
		s := allocatetest.Cluster(t, 8, 1, test.free...)
		if got := allocatetest.Offer(t, s, spread.New(spread.Default()), test.shape, 1); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	if strategy.Check(spread.Config{}) == nil || strategy.Check(spread.Default()) != nil {
		t.Error("a search must look at one node at least, and does by default")
	}
}

func BenchmarkPlace(b *testing.B) {
	allocatetest.Bench(b, func() allocate.Placer { return spread.New(spread.Default()) })
}
