package bestfit_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
)

func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return bestfit.New(bestfit.Default()) })
}

func TestTightest(t *testing.T) {
	type part = allocatetest.Part
	for _, test := range []struct {
		name  string
		shape plan.Shape
		free  []part
		want  string
	}{
		{"the node that is left with nothing", allocatetest.Gang(2), []part{{Devices: 8}, {Devices: 3}, {Devices: 2}, {Devices: 1}}, "2:2"},
		{"equals by id", allocatetest.Gang(2), []part{{Devices: 3}, {Devices: 3}}, "0:2"},
		{"few nodes where as little is left", allocatetest.Gang(5), []part{{Devices: 1}, {Devices: 3}, {Devices: 8}, {Devices: 4}, {Devices: 1}}, "3:4 0:1"},
		{"a device in part counts", allocatetest.Gang(2), []part{{Devices: 2, Shares: []int32{900}}, {Devices: 2, Shares: []int32{100}}}, "1:2"},
		{"the tightest device", allocatetest.Share(300, 0), []part{{Devices: 8}, {Shares: []int32{900, 300, 200, 400}}}, "1/5:1"},
		{"the tightest node before the tightest device", allocatetest.Share(300, 0), []part{{Devices: 1, Shares: []int32{300}}, {Shares: []int32{400}}}, "1/7:1"},
		{"the fewest cores", allocatetest.Share(300, 2), []part{{Shares: []int32{400}, Cores: 9}, {Shares: []int32{400}, Cores: 3}}, "1/7:1"},
		{"16 cores weigh a device", withCores(1, 2), []part{{Devices: 1, Cores: 20}, {Devices: 2, Cores: 3}}, "1:1"},
		{"and one core more does not", withCores(1, 2), []part{{Devices: 1, Cores: 18}, {Devices: 2, Cores: 3}}, "0:1"},
		{"cores alone go where no device is free", allocatetest.Cores(4), []part{{Devices: 1, Cores: 5}, {Cores: 20}}, "1:1"},
		{"not enough", allocatetest.Gang(4), []part{{Devices: 1}, {Devices: 2}}, ""},
	} {
		s := allocatetest.Cluster(t, 8, 1, test.free...)
		if got := allocatetest.Offer(t, s, bestfit.New(bestfit.Default()), test.shape, 1); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func withCores(workers, cores int32) plan.Shape {
	s := allocatetest.Gang(workers)
	s.CPU = cores * 1000
	return s
}

func TestConfig(t *testing.T) {
	for c, ok := range map[bestfit.Config]bool{bestfit.Default(): true, {}: true, {Look: -1}: false, {CoresPerDevice: -1}: false} {
		if err := strategy.Check(c); (err == nil) != ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func BenchmarkPlace(b *testing.B) {
	allocatetest.Bench(b, func() allocate.Placer { return bestfit.New(bestfit.Default()) })
}
