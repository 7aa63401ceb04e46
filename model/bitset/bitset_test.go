package bitset_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterdl/muster/model/bitset"
)

// A set holds what a map holds to which the same was done.
func TestSet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		n := 1 + random.IntN(20_000)
		sets, maps := [3]bitset.Set{}, [3]map[int32]bool{{}, {}, {}}
		for k := range sets {
			sets[k] = bitset.New(n / (1 + random.IntN(2)))
			sets[k].Grow(n)
		}
		for range random.IntN(2000) {
			k, i := random.IntN(3), int32(random.IntN(n))
			if random.IntN(3) > 0 {
				sets[k].Add(i)
				maps[k][i] = true
			} else {
				sets[k].Remove(i)
				delete(maps[k], i)
			}
		}
		members := func(in func(i int32) bool) (list []int32) {
			for i := range int32(n) {
				if in(i) {
					list = append(list, i)
				}
			}
			return list
		}
		for k := range sets {
			want := members(func(i int32) bool { return maps[k][i] })
			var next []int32
			for i := sets[k].Next(0); i >= 0; i = sets[k].Next(i + 1) {
				next = append(next, i)
			}
			clone := sets[k].Clone()
			sets[k].Clear()
			if got := slices.Collect(clone.All()); !slices.Equal(got, want) || !slices.Equal(next, want) || clone.Empty() != (len(want) == 0) || !sets[k].Empty() || sets[k].Equal(&clone) != (len(want) == 0) {
				t.Fatalf("of %d: all %v, one after the other %v, want %v", n, got, next, want)
			}
			sets[k] = clone
		}
		want := members(func(i int32) bool { return maps[0][i] && maps[1][i] && !maps[2][i] })
		if got := slices.Collect(bitset.Common(&sets[0], &sets[1], &sets[2], &bitset.Set{})); !slices.Equal(got, want) {
			t.Fatalf("of %d: in two and not in the third %v, want %v", n, got, want)
		}
	}
}
