package rank

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Things come in the order of a stable sort, also when they are sorted by a second key after.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var o Order
	for range 200 {
		figures, second := make([]float64, r.IntN(300)), make([]int, 300)
		for i := range figures {
			figures[i], second[i] = [...]float64{0, math.Copysign(0, -1), -1, math.Inf(1), math.Inf(-1), r.NormFloat64(), r.NormFloat64() * 1e300}[r.IntN(7)], r.IntN(5)
		}
		want := make([]int32, len(figures))
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortStableFunc(want, func(a, b int32) int {
			return cmp.Or(cmp.Compare(figures[a], figures[b]), cmp.Compare(second[a], second[b]))
		})
		o.Begin(len(figures))
		for i := range figures {
			o.Keys[i] = uint64(second[i])
		}
		o.Sort()
		for i, x := range figures {
			o.Keys[i] = Float(x)
		}
		if got := o.Sort(); !slices.Equal(got, want) {
			t.Fatalf("%v: got %v, want %v", figures, got, want)
		}
	}
}
