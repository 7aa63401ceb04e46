package las_test

import (
	"testing"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/las"
)

func TestConforms(t *testing.T) {
	for name, c := range map[string]las.Config{"default": las.Default(), "patient": {Quantum: 20 * unit.Second, MinimumRun: 90 * unit.Second}} {
		t.Run(name, func(t *testing.T) {
			scheduletest.Conform(t, func() schedule.Order { return las.New(c) })
		})
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []las.Config{{}, {Quantum: -1}, {Quantum: 1, MinimumRun: -1}} {
		if strategy.Check(c) == nil {
			t.Errorf("%v is taken for valid", c)
		}
	}
}
