package las_test

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/las"
)

func TestConforms(t *testing.T) {
	for name, c := range map[string]las.Config{"default": las.Default(), "patient": {Quantum: 20 * unit.Second, Growth: 1, MinimumRun: 90 * unit.Second}} {
		t.Run(name, func(t *testing.T) {
			scheduletest.Conform(t, func() schedule.Order { return las.New(c) })
		})
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []las.Config{{}, {Quantum: -1, Growth: 1}, {Quantum: 1}, {Quantum: 1, Growth: 1, MinimumRun: -1}} {
		if strategy.Check(c) == nil {
			t.Errorf("%v is taken for valid", c)
		}
	}
}

// Whatever a job has attained lies in its quantum, which begins where another ends; the
// ends are what repeated growth of the first makes them, and none is beyond what counts.
func TestQuanta(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		c := las.Config{Quantum: unit.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "quantum")), Growth: rapid.OneOf(rapid.Int64Range(1, 4), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "growth")}
		milli := rapid.Int64Range(1, 1<<30).Draw(t, "milli")
		served := rapid.Int64Range(0, math.MaxInt64-1).Draw(t, "served")
		from, to := las.Quantum(c, served, milli)
		if from > served || to <= served {
			t.Fatalf("the quantum from %d to %d does not hold %d", from, to, served)
		}
		first, exact := new(big.Int).Mul(big.NewInt(int64(c.Quantum)), big.NewInt(milli)), big.NewInt(to)
		if c.Growth == 1 {
			exact.Sub(exact, big.NewInt(from))
		}
		for c.Growth > 1 && first.Cmp(exact) < 0 {
			first.Mul(first, big.NewInt(c.Growth))
		}
		if first.Cmp(exact) != 0 && to != math.MaxInt64 {
			t.Fatalf("a quantum ends at %d, none of %s of thousandths %d growing %d times does", to, c.Quantum, milli, c.Growth)
		}
		if before, _ := las.Quantum(c, max(0, from-1), milli); from > 0 && before >= from {
			t.Fatalf("the quantum before %d begins at %d", from, before)
		}
	})
}
