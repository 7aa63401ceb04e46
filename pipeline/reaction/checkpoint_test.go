package reaction

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

// played is the part of the time that a run loses when it is played with drawn failures.
func played(interval, cost, restart, between unit.Duration, seed uint64) float64 {
	dice := rand.New(rand.NewPCG(seed, 1))
	useful, total := 0., 0.
	for range 20_000 {
		up := dice.ExpFloat64() * between.Seconds() // until the next failure
		total += up
		if up -= restart.Seconds(); up > 0 {
			useful += math.Floor(up/(interval+cost).Seconds()) * interval.Seconds()
		}
	}
	return 1 - useful/total
}

// TestInterval: the interval wastes no more than others do, in Daly's model and in play, and the
// model is what is played.
func TestInterval(t *testing.T) {
	for _, c := range []struct{ cost, between unit.Duration }{
		{10 * unit.Second, 3 * unit.Hour}, {unit.Minute, 3 * unit.Hour}, {5 * unit.Minute, 3 * unit.Hour}, {unit.Second, 10 * unit.Minute},
	} {
		best := Interval(c.cost, c.between)
		least := Waste(best, c.cost, unit.Minute, c.between)
		if got := played(best, c.cost, unit.Minute, c.between, 1); math.Abs(got-least) > .02 {
			t.Errorf("%v every %v: %.4f wasted in play, %.4f by the model", c.cost, best, got, least)
		}
		for _, factor := range []float64{.25, .5, .8, 1.25, 2, 4} {
			other := unit.Duration(factor * float64(best))
			if got := Waste(other, c.cost, unit.Minute, c.between); got < least-1e-3 {
				t.Errorf("%v every %v wastes %.4f, every %v %.4f", c.cost, best, least, other, got)
			}
		}
	}
	if got := Interval(unit.Hour, unit.Minute); got != unit.Minute {
		t.Errorf("checkpoints that take longer than failures let them: every %v, expected %v", got, unit.Minute)
	}
}

// TestSpares: with as many spares as are said, one more would be needed for less of the time than
// it costs; with one fewer, for more.
func TestSpares(t *testing.T) {
	const nodes, idle = 128, 8
	between, away := 100*unit.Day, unit.Day
	k := Spares(nodes, between, away, idle)
	short := func(k int) float64 { // part of the time in which more than k are away
		dice, over := rand.New(rand.NewPCG(3, 3)), 0.
		const draws = 40_000
		for range draws {
			n := 0
			for range nodes {
				if dice.Float64() < float64(away)/float64(between) {
					n++
				}
			}
			if n > k {
				over++
			}
		}
		return over / draws
	}
	if short(k)*idle > 1.1 || short(k-1)*idle < .9 {
		t.Errorf("%d spares: one more is needed for %.3f of the time, with one fewer for %.3f; expected about an eighth between", k, short(k), short(k-1))
	}
}
