package bound

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
)

// little draws jobs that all schedules can be tried for: times in whole seconds.
func little(n func(low, high int) int) (jobs []Job, devices int) {
	devices = n(1, 4)
	for range n(1, 5) {
		jobs = append(jobs, job(n(0, 4), n(1, 4), n(1, devices)))
	}
	slices.SortFunc(jobs, func(x, y Job) int { return int(x.Submit - y.Submit) })
	first := jobs[0].Submit
	for i := range jobs {
		jobs[i].Submit -= first
	}
	return jobs, devices
}

// optimum is the least sum of completion times in seconds.
func optimum(jobs []Job, devices int) float64 {
	search := best{jobs: jobs, devices: devices, sums: map[string]int{}, ends: map[string]int{}}
	var left []int
	for _, j := range jobs {
		left = append(left, int(j.Duration/unit.Second))
	}
	sum, _ := search.search(0, left)
	return float64(sum)
}

// TestAnyPrices: whatever the prices of whatever cells, the bound is not above the best
// schedule. That is the proof, tried.
func TestAnyPrices(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		jobs, devices := little(func(low, high int) int { return rapid.IntRange(low, high).Draw(t, "n") })
		begins := []float64{0}
		for range rapid.IntRange(1, 12).Draw(t, "cells") {
			begins = append(begins, begins[len(begins)-1]+float64(unit.Second)*rapid.Float64Range(.1, 3).Draw(t, "long"))
		}
		m := open(jobs, uint64(devices)*uint64(unit.Whole), begins)
		for i := range m.rows {
			for k := range begins[:len(begins)-1] {
				m.rows[i].price[k] = rapid.SampledFrom([]float64{0, 0, .5, 1, 1.5, 2, 5, 20}).Draw(t, "price")
			}
		}
		sum, gross := m.sell(m.buyers(jobs))
		if best := optimum(jobs, devices); sum > best*float64(unit.Second)+gross*1e-12 {
			t.Fatalf("%g at prices %v of cells %v, the best is %g", sum/float64(unit.Second), m.rows, begins, best)
		}
		for s := range m.sizes {
			sold, worked := 0.0, 0.0
			for k := range begins {
				sold += m.bought[s][k]
			}
			for _, j := range jobs {
				if j.Devices == m.sizes[s] {
					worked += float64(j.Duration)
				}
			}
			if math.Abs(sold-worked) > 1e-3 {
				t.Fatalf("jobs of %d thousandths bought %g us for %g us of work", m.sizes[s], sold, worked)
			}
		}
	})
}

// TestBuy: a job pays what the cheapest set of seconds and the wait for its last one cost.
func TestBuy(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		const horizon = 12
		one := job(rapid.IntRange(0, 3).Draw(t, "submit"), rapid.IntRange(1, 4).Draw(t, "duration"), 1)
		var begins []float64
		for k := range horizon + 1 {
			begins = append(begins, float64(k)*float64(unit.Second))
		}
		m := open([]Job{one}, uint64(unit.Whole), begins)
		for k := range horizon {
			m.rows[0].price[k] = float64(rapid.IntRange(0, 6).Draw(t, "price")) / 2
		}
		_, _ = m.sell(m.buyers([]Job{one})) // sets prices by size
		got, _ := m.buy(&m.buyers([]Job{one})[0])
		want, submit, work := math.Inf(1), int(one.Submit.Seconds()), int(one.Duration/unit.Second)
		for end := submit + work; end <= horizon+work; end++ {
			var prices []float64
			for k := submit; k < end; k++ {
				price := 0.0
				if k < horizon {
					price = m.rows[0].price[k]
				}
				prices = append(prices, price)
			}
			slices.Sort(prices)
			cost := float64(end - submit)
			for _, price := range prices[:work] {
				cost += price
			}
			want = min(want, cost)
		}
		if math.Abs(got/float64(unit.Second)-want) > 1e-9 {
			t.Fatalf("pays %g, the cheapest is %g", got/float64(unit.Second), want)
		}
	})
}

// TestGap says how far the bounds are below the best of all schedules.
func TestGap(t *testing.T) {
	draws := 300
	if os.Getenv("MUSTER_LONG") != "" {
		draws = 4000
	}
	r := rand.New(rand.NewPCG(3, 3))
	var isolated, older, with, worst float64
	for range draws {
		jobs, devices := little(func(low, high int) int { return low + r.IntN(high-low+1) })
		b, best := Compute(jobs, Room{Devices: devices}), optimum(jobs, devices)/float64(len(jobs))
		if b.MeanJCT.Seconds() > best+1e-9 {
			t.Fatalf("%+v of %+v is above the best, %g", b, jobs, best)
		}
		isolated += best / b.Isolated.Seconds() / float64(draws)
		older += best / max(b.Isolated, b.SquashedSRPT).Seconds() / float64(draws)
		with += best / b.MeanJCT.Seconds() / float64(draws)
		worst = max(worst, best/b.MeanJCT.Seconds())
	}
	t.Logf("the best schedule over the isolated bound %.3f, over the better of isolated and squashed %.3f, over all %.3f in the mean and %.3f at worst, %d draws",
		isolated, older, with, worst, draws)
	if with > 1.06 || older-1 < 2*(with-1) {
		t.Errorf("the gap is %.4f in the mean, that without queueing %.4f", with-1, older-1)
	}
}

// TestGangs: of two gangs that do not fit beside each other one waits, though there is area.
func TestGangs(t *testing.T) {
	b := Compute([]Job{job(0, 4, 3), job(0, 4, 3)}, Room{Devices: 4})
	if got := b.Queueing.Seconds(); got < 5.9 || got > 6 {
		t.Errorf("bounded by %g, the best is 6", got)
	}
}

// TestQueue: many jobs alike on few devices wait for each other: none of the simple bounds sees
// the whole of it.
func TestQueue(t *testing.T) {
	var jobs []Job
	for range 40 {
		jobs = append(jobs, job(0, 100, 1))
	}
	b := Compute(jobs, Room{Devices: 10})
	if got := b.Queueing.Seconds(); got < 248 || got > 250 || b.SquashedSRPT.Seconds() > 206 {
		t.Errorf("bounded by %g, the best is 250: %+v", got, b)
	}
}
