package maxmin_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/mechanism/maxmin"
)

// over is a flow that takes its rate of each of the links.
func over(links ...int32) maxmin.Flow {
	var f maxmin.Flow
	for _, l := range links {
		f.Uses = append(f.Uses, maxmin.Use{Link: l, Per: 1})
	}
	return f
}

func with(f maxmin.Flow, change func(f *maxmin.Flow)) maxmin.Flow {
	change(&f)
	return f
}

func TestThreeLinks(t *testing.T) {
	class := func(c int32) func(f *maxmin.Flow) { return func(f *maxmin.Flow) { f.Class = c } }
	weight := func(w float64) func(f *maxmin.Flow) { return func(f *maxmin.Flow) { f.Weight = w } }
	limit := func(l float64) func(f *maxmin.Flow) { return func(f *maxmin.Flow) { f.Limit = l } }
	per := func(p float64) func(f *maxmin.Flow) { return func(f *maxmin.Flow) { f.Uses[0].Per = p } }
	for _, test := range []struct {
		name  string
		links []float64
		flows []maxmin.Flow
		want  []float64
	}{
		{"one long flow and one on each link", []float64{1, 1, 1}, []maxmin.Flow{over(0, 1, 2), over(0), over(1), over(2)}, []float64{.5, .5, .5, .5}},
		{"the narrow link holds the long flow back", []float64{1, 2, 10}, []maxmin.Flow{over(0, 1, 2), over(0), over(1), over(2)}, []float64{.5, .5, 1.5, 9.5}},
		{"a triangle", []float64{10, 6, 4}, []maxmin.Flow{over(0, 1), over(1, 2), over(2, 0)}, []float64{4, 2, 2}},
		{"weights", []float64{12, 9, 9}, []maxmin.Flow{with(over(0, 1), weight(2)), over(0), over(1, 2)}, []float64{6, 6, 3}},
		{"a limit frees room", []float64{9, 9, 1}, []maxmin.Flow{with(over(0), limit(1)), over(0, 1), over(1, 2)}, []float64{1, 8, 1}},
		{"the first class takes what it can", []float64{10, 4, 1}, []maxmin.Flow{over(0), with(over(0, 1), class(-1)), with(over(0), class(1))}, []float64{6, 4, 0}},
		{"what a unit of rate takes differs", []float64{8, 100, 1}, []maxmin.Flow{with(over(0, 1), per(3)), over(0)}, []float64{2, 2}},
		{"a link that is down", []float64{0, 5, 5}, []maxmin.Flow{over(0, 1), over(1), with(over(2), limit(1))}, []float64{0, 5, 1}},
		{"nothing used", []float64{1, 1, 1}, []maxmin.Flow{with(over(), limit(3)), over()}, []float64{3, math.Inf(1)}},
		{"nobody", []float64{1, 1, 1}, nil, nil},
	} {
		if got := maxmin.Fill(test.links, test.flows); !slices.EqualFunc(got, test.want, near) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func near(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-6*max(1, math.Abs(a), math.Abs(b)) }

// TestMaxMin holds random networks against the definition and against a slow search.
func TestMaxMin(t *testing.T) {
	var again maxmin.Filler // buffers of earlier calls must not matter
	draws.Check(t, func(t *rapid.T) {
		capacities := make([]float64, rapid.IntRange(1, 5).Draw(t, "links"))
		for i := range capacities {
			capacities[i] = float64(rapid.IntRange(0, 20).Draw(t, "capacity"))
		}
		flows := make([]maxmin.Flow, rapid.IntRange(1, 7).Draw(t, "flows"))
		for i := range flows {
			flows[i].Weight = float64(rapid.IntRange(0, 4).Draw(t, "weight"))
			flows[i].Class = int32(rapid.IntRange(0, 1).Draw(t, "class"))
			flows[i].Limit = float64(rapid.IntRange(1, 30).Draw(t, "limit"))
			for l := range capacities {
				if rapid.Bool().Draw(t, "uses") {
					flows[i].Uses = append(flows[i].Uses, maxmin.Use{Link: int32(l), Per: float64(rapid.IntRange(1, 3).Draw(t, "per"))})
				}
			}
		}
		got := again.Fill(capacities, flows, nil)
		checkMaxMin(t, capacities, flows, got)
		if want := search(capacities, flows); !slices.EqualFunc(got, want, near) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// checkMaxMin: no link is overfull, and every flow has its limit or a full link on
// which no flow of its class has more for its weight and no lower class has anything.
func checkMaxMin(t *rapid.T, capacities []float64, flows []maxmin.Flow, rates []float64) {
	load := make([]float64, len(capacities))
	for i, f := range flows {
		for _, u := range f.Uses {
			load[u.Link] += u.Per * rates[i]
		}
	}
	for l := range load {
		if load[l] > capacities[l]+1e-9 {
			t.Fatalf("link %d carries %g of %g", l, load[l], capacities[l])
		}
	}
	level := func(i int) float64 { return rates[i] / max(1, flows[i].Weight) }
	stopped := func(i int, l int32) bool {
		if load[l] < capacities[l]-1e-9 {
			return false
		}
		for j, other := range flows {
			on := slices.ContainsFunc(other.Uses, func(u maxmin.Use) bool { return u.Link == l })
			if on && (other.Class == flows[i].Class && level(j) > level(i)+1e-9 || other.Class > flows[i].Class && rates[j] > 1e-9) {
				return false
			}
		}
		return true
	}
	for i, f := range flows {
		if rates[i] < f.Limit-1e-9 && !slices.ContainsFunc(f.Uses, func(u maxmin.Use) bool { return stopped(i, u.Link) }) {
			t.Fatalf("flow %d could have more than %g", i, rates[i])
		}
	}
}

// search raises the open flows of a class together as far as a bisection finds room,
// fixes those that could not get more alone, and so on.
func search(capacities []float64, flows []maxmin.Flow) []float64 {
	rates := make([]float64, len(flows))
	feasible := func(rates []float64) bool {
		load := make([]float64, len(capacities))
		for i, f := range flows {
			if rates[i] > f.Limit+1e-12 {
				return false
			}
			for _, u := range f.Uses {
				load[u.Link] += u.Per * rates[i]
			}
		}
		for l := range load {
			if load[l] > capacities[l]+1e-12 {
				return false
			}
		}
		return true
	}
	for class := range int32(2) {
		fixed := make([]bool, len(flows))
		for range flows {
			raised := func(level float64) []float64 {
				r := slices.Clone(rates)
				for i, f := range flows {
					if f.Class == class && !fixed[i] {
						r[i] = level * max(1, f.Weight)
					}
				}
				return r
			}
			low, high := 0.0, 100.0
			for range 60 {
				if middle := (low + high) / 2; feasible(raised(middle)) {
					low = middle
				} else {
					high = middle
				}
			}
			rates = raised(low)
			for i, f := range flows {
				alone := slices.Clone(rates)
				alone[i] += 1e-7
				fixed[i] = fixed[i] || f.Class == class && !feasible(alone)
			}
		}
	}
	return rates
}

// BenchmarkFill has so many flows between random pairs of 1,000 ports: a flow costs
// much the same among many and among few.
func BenchmarkFill(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint("flows=", n), func(b *testing.B) {
			dice := rand.New(rand.NewPCG(1, 1))
			capacities := make([]float64, 2000)
			for i := range capacities {
				capacities[i] = 100 + dice.Float64()
			}
			flows := make([]maxmin.Flow, n)
			for i := range flows {
				flows[i] = over(dice.Int32N(1000), 1000+dice.Int32N(1000))
			}
			var f maxmin.Filler
			var rates []float64
			for b.Loop() {
				rates = f.Fill(capacities, flows, rates)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/flow")
		})
	}
}
