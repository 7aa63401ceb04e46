package muster

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

// drawn is a past in which so many jobs of a group ended and go on in drawn steps.
func drawn(dice *rand.Rand, g group, n int) *past {
	p := newPast(Config{Refresh: unit.Hour, Prior: 1 + 30*dice.Float64()})
	for range n {
		step, goes := dice.IntN(steps-20), dice.IntN(3) == 0
		p.count(g, func(c *counts) {
			if goes {
				c.open[step]++
			} else {
				c.ended[step]++
			}
		})
	}
	return p
}

// TestIndex: from any step the index is the least of all look-aheads, each played out in full: the
// mean time until the job ends or the look-ahead does, over the chance that it ends.
func TestIndex(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	g := group{gang: 4}
	for range 200 {
		table := drawn(dice, g, dice.IntN(60)).tableOf(g)
		from := dice.IntN(steps / 2)
		left := 0.
		for _, x := range table.ends[from:] {
			left += x
		}
		best := math.Inf(1)
		for until := from + 1; until <= steps; until++ {
			ends, mean := 0., 0.
			for s := from; s < steps; s++ {
				p := table.ends[s] / left
				if s < until {
					ends += p
					mean += p * ((begins(s)+begins(s+1))/2 - begins(from))
				} else {
					mean += p * (begins(until) - begins(from))
				}
			}
			if ends > 0 {
				best = min(best, mean/ends)
			}
		}
		if got, chance := table.index(from); math.Abs(got-best) > 1e-6*best || chance <= 0 || chance > 1+1e-9 {
			t.Fatalf("from step %d: a completion costs %g s with chance %g, want %g", from, got, chance, best)
		}
	}
}

// TestKnownNothing: before anything is known whoever has run longer ranks behind, as under LAS.
func TestKnownNothing(t *testing.T) {
	table, last := newPast(Default()).tableOf(group{}), 0.
	for s := range stepOf(14 * 24 * 3600) {
		cost, _ := table.index(s)
		if cost <= last && s > 0 {
			t.Errorf("after %.0f s a completion costs %.0f s, before it %.0f s", begins(s), cost, last)
		}
		last = cost
	}
}

// TestTable: a table is a distribution; with many jobs of a group their own part of endings is
// what it says, and with few what all jobs say, also in steps that only the many have come to.
func TestTable(t *testing.T) {
	p, many, few := newPast(Default()), group{gang: 1}, group{gang: 2}
	for range 10_000 {
		p.count(many, func(c *counts) { c.ended[40]++ })
		p.count(many, func(c *counts) { c.ended[60]++ })
	}
	p.count(few, func(c *counts) { c.ended[20]++ })
	sum := 0.
	for _, x := range p.tableOf(few).ends {
		sum += x
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the parts of a table come to %g", sum)
	}
	for g, want := range map[group][2]float64{many: {.49, .51}, few: {.45, .5}} {
		if got := p.tableOf(g).ends[40]; got < want[0] || got > want[1] {
			t.Errorf("of %v a part of %g ends in step 40, want %v", g, got, want)
		}
	}
}

// TestOpen: jobs that go on make those expected to last longer that have come as far.
func TestOpen(t *testing.T) {
	g := group{gang: 1}
	cost := func(open int) float64 {
		p := newPast(Default())
		for range 100 {
			p.count(g, func(c *counts) { c.ended[40]++ })
		}
		for range open {
			p.count(g, func(c *counts) { c.open[50]++ })
		}
		cost, _ := p.tableOf(g).index(30)
		return cost
	}
	if a, b := cost(0), cost(100); b <= a*1.2 {
		t.Errorf("a completion costs %.0f s where a hundred jobs go on, %.0f s where none does", b, a)
	}
}
