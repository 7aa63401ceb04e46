package divide_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate/divide"
	"github.com/musterdl/muster/internal/draws"
)

// splits calls f with every way to hand at most so many units to so many jobs.
func splits(jobs int, units int32, f func(shares []int32)) {
	shares := make([]int32, jobs)
	var next func(j int, left int32)
	next = func(j int, left int32) {
		if j == jobs {
			f(shares)
			return
		}
		for shares[j] = 0; shares[j] <= left; shares[j]++ {
			next(j+1, left-shares[j])
		}
	}
	next(0, units)
}

// amdahl is the rate n/(1+b(n-1)), whose gains fall with n.
func amdahl(b []float64) divide.Rate {
	return func(j int, n int32) float64 { return float64(n) / (1 + b[j]*float64(max(0, n-1))) }
}

func parts(t *rapid.T, n int) []float64 {
	return rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(t, "b")
}

// sums returns the completion times of two jobs, summed, where the next unit is x's until
// x ends and then y's, and where it is y's from now on. That x ends first is given.
func sums(x, y divide.Side) (first, second float64) {
	xEnds := x.Left / x.More
	first = 2*xEnds + (y.Left-xEnds*y.Now)/y.More
	return first, x.Left/x.Now + y.Left/y.More
}

// The pair rule says of any two jobs what trying both ways says.
func TestFirstIsBruteForce(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		rate := amdahl(parts(t, 2))
		var side [2]divide.Side
		for j := range side {
			n := rapid.Int32Range(1, 32).Draw(t, "n")
			side[j] = divide.Side{Left: rapid.Float64Range(0.1, 100).Draw(t, "left"), First: rate(j, 1), Now: rate(j, n), More: rate(j, n+1)}
		}
		a, b := side[0], side[1]
		if a.Left/a.Now > b.Left/b.Now {
			a, b = b, a
		}
		toA, toB := sums(a, b)
		if math.Abs(toA-toB) < 1e-9*toB {
			return // as good
		}
		if got := divide.First(a, b); got != (toA < toB) {
			t.Errorf("a %+v, b %+v: the rule says a first: %v; the completion times sum to %g and %g", a, b, got, toA, toB)
		}
		if divide.First(a, b) == divide.First(b, a) {
			t.Errorf("a %+v, b %+v: the order in which they are named decides", a, b)
		}
	})
}

// However many jobs there are, whatever their rates, ties among them: the division is that of a
// knock-out of all of them for every unit.
func TestPairsIsTheKnockout(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 80).Draw(t, "jobs")
		rates, jobs := make([][]float64, n), make([]divide.Claimant, n)
		for j := range jobs {
			jobs[j] = divide.Claimant{Left: float64(rapid.IntRange(1, 9).Draw(t, "left")), Most: rapid.Int32Range(0, 6).Draw(t, "most")}
			steps := rapid.SampledFrom([][]float64{{1, 1, 1, 1, 1, 1, 1}, {4, 3, 2, 1, .5, 0, 0}, {0, 2, 2, 2, 0, 0, 1}, {1, 2, 3, 4, 3, 2, 1}, {1, .9, .8, .7, .6, .5, .4}}).Draw(t, "steps")
			rates[j] = []float64{0}
			for _, more := range steps {
				rates[j] = append(rates[j], rates[j][len(rates[j])-1]+more)
			}
		}
		rate := func(job int, n int32) float64 { return rates[job][min(int(n), len(rates[job])-1)] }
		units := rapid.Int32Range(0, 200).Draw(t, "units")
		got, want := new(divide.Knockout).Pairs(jobs, units, rate), make([]int32, n)
		for range units {
			side := func(j int) divide.Side {
				return divide.Side{Left: jobs[j].Left, First: rate(j, 1), Now: rate(j, want[j]), More: rate(j, want[j]+1)}
			}
			winner := -1
			for j := range jobs {
				if s := side(j); want[j] < jobs[j].Most && s.More > s.Now && (winner < 0 || !divide.First(side(winner), s)) {
					winner = j
				}
			}
			if winner < 0 {
				break
			}
			want[winner]++
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// Two jobs on up to 4 units: the division agrees with the one that no single unit can
// improve, tried by brute force from the empty one up.
func TestPairsIsBruteForceOfTwo(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		rate := amdahl(parts(t, 2))
		left := []float64{rapid.Float64Range(0.1, 100).Draw(t, "a"), rapid.Float64Range(0.1, 100).Draw(t, "b")}
		units := rapid.Int32Range(1, 4).Draw(t, "units")
		got := new(divide.Knockout).Pairs([]divide.Claimant{{left[0], 4}, {left[1], 4}}, units, rate)
		want := make([]int32, 2)
		for range units {
			j, sure := tryBoth(left, want, rate)
			if !sure {
				return // as good
			}
			want[j]++
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, brute force %v", got, want)
		}
	})
}

// tryBoth says which of two jobs should have the next unit, by completion times alone;
// a job on nothing never ends, so that it comes first.
func tryBoth(left []float64, has []int32, rate divide.Rate) (job int, sure bool) {
	switch {
	case has[0] == 0 && has[1] == 0:
		if left[0] <= left[1] {
			return 0, true
		}
		return 1, true
	case has[0] == 0:
		return 0, gainsLess(1, has, rate)
	case has[1] == 0:
		return 1, gainsLess(0, has, rate)
	}
	a := 0
	if left[1]/rate(1, has[1]) < left[0]/rate(0, has[0]) {
		a = 1
	}
	side := func(j int) divide.Side {
		return divide.Side{Left: left[j], First: rate(j, 1), Now: rate(j, has[j]), More: rate(j, has[j]+1)}
	}
	toA, toB := sums(side(a), side(1-a))
	if math.Abs(toA-toB) < 1e-9*toB || math.Abs(left[0]/rate(0, has[0])-left[1]/rate(1, has[1])) < 1e-9 {
		return 0, false
	}
	if toA < toB {
		return a, true
	}
	return 1 - a, true
}

// gainsLess: by less than double, surely; a job that doubles leaves the other waiting.
func gainsLess(j int, has []int32, rate divide.Rate) bool {
	return rate(j, has[j]+1) < 2*rate(j, has[j])*(1-1e-9)
}

func TestPairsKeepsBounds(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5).Draw(t, "jobs")
		rate := amdahl(parts(t, n))
		jobs := make([]divide.Claimant, n)
		for j := range jobs {
			jobs[j] = divide.Claimant{Left: rapid.Float64Range(0, 100).Draw(t, "left"), Most: rapid.Int32Range(0, 4).Draw(t, "most")}
		}
		units := rapid.Int32Range(0, 12).Draw(t, "units")
		total, room := int32(0), int32(0)
		for j, s := range new(divide.Knockout).Pairs(jobs, units, rate) {
			if s < 0 || s > jobs[j].Most {
				t.Errorf("job %d has %d of at most %d", j, s, jobs[j].Most)
			}
			total += s
			if rate(j, 2) > rate(j, 1) {
				room += jobs[j].Most
			} else {
				room += min(1, jobs[j].Most)
			}
		}
		if total != min(units, room) {
			t.Errorf("%d units given, want %d", total, min(units, room))
		}
	})
}

func TestAccept(t *testing.T) {
	free := []int32{3, 2}
	got := divide.Accept([]divide.Proposal{{0, 0, 2, 1.1}, {1, 0, 2, 1.5}, {1, 1, 1, 1.4}, {2, 1, 2, 1.1}, {0, 1, 1, 1.05}, {3, 0, 1, 1}}, free)
	want := []divide.Proposal{{1, 0, 2, 1.5}, {2, 1, 2, 1.1}, {3, 0, 1, 1}}
	if !slices.Equal(got, want) || !slices.Equal(free, []int32{0, 0}) {
		t.Errorf("got %v with %v free, want %v with none", got, free, want)
	}
}

// How far the rule is from the best division of 4 units between two jobs, where the
// second has all units once the first has ended: it is optimal for one unit at a time,
// not for all at once, and this keeps count of what that costs.
func TestPairsAgainstAllDivisionsOfTwo(t *testing.T) {
	worst := 1.0
	draws.Check(t, func(t *rapid.T) {
		const units = 4
		rate := amdahl(parts(t, 2))
		left := []float64{rapid.Float64Range(1, 100).Draw(t, "a"), rapid.Float64Range(1, 100).Draw(t, "b")}
		sum := func(shares []int32) float64 {
			first, ends := 0, []float64{left[0] / rate(0, shares[0]), left[1] / rate(1, shares[1])}
			if ends[1] < ends[0] {
				first = 1
			}
			rest := left[1-first] - ends[first]*rate(1-first, shares[1-first])
			return 2*ends[first] + rest/rate(1-first, units)
		}
		best := math.Inf(1)
		splits(2, units, func(s []int32) {
			if s[0]+s[1] == units {
				best = min(best, sum(s))
			}
		})
		got := sum(new(divide.Knockout).Pairs([]divide.Claimant{{left[0], units}, {left[1], units}}, units, rate))
		if got < best*(1-1e-9) {
			t.Fatalf("better than the best: %g and %g", got, best)
		}
		worst = max(worst, got/best)
	})
	t.Logf("at worst %.3f times the best", worst)
	if worst > 1.5 {
		t.Errorf("at worst %.3f times the best", worst)
	}
}
