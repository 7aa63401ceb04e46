package assign

import (
	"math"
	"math/bits"
	"slices"
)

// mostPlaces is for how many places the shortest way is found: that takes 2^n steps.
const mostPlaces = 16

// Path is the shortest way through all places, from any to any other, and its length. The cost is
// that between two places, the same both ways. It panics for more than 16.
func Path(cost [][]float64) (length float64, order []int) {
	n := len(cost)
	if n > mostPlaces {
		panic("assign: a path through more places than it can be found for")
	}
	if n == 0 {
		return 0, nil
	}
	// least[seen][at]: through the places seen, ending at one of them.
	least := slices.Repeat([]float64{math.Inf(1)}, n<<n)
	from := make([]int8, n<<n)
	for i := range n {
		least[(1<<i)*n+i] = 0
	}
	for seen := 1; seen < 1<<n; seen++ {
		for in := seen; in != 0; in &= in - 1 {
			at := bits.TrailingZeros(uint(in))
			for out := ^seen & (1<<n - 1); out != 0; out &= out - 1 {
				to := bits.TrailingZeros(uint(out))
				next := (seen|1<<to)*n + to
				if d := least[seen*n+at] + cost[at][to]; d < least[next] {
					least[next], from[next] = d, int8(at)
				}
			}
		}
	}
	// The way back from the best of the ends.
	seen, at := 1<<n-1, 0
	for i := range n {
		if least[seen*n+i] < least[seen*n+at] {
			at = i
		}
	}
	length = least[seen*n+at]
	for len(order) < n {
		order = append(order, at)
		before := int(from[seen*n+at])
		seen, at = seen&^(1<<at), before
	}
	return length, order
}
