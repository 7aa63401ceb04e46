package lines

import (
	"iter"
	"math/bits"
)

// marks are some of a list: bit i for what stands at i.
type marks []uint64

// grow makes room for a list so long.
func (m *marks) grow(length int) {
	for len(*m) < (length+63)/64 {
		*m = append(*m, 0)
	}
}

func (m marks) has(i int32) bool { return m[i>>6]&(1<<(i&63)) != 0 }
func (m marks) set(i int32)      { m[i>>6] |= 1 << (i & 63) }
func (m marks) unset(i int32)    { m[i>>6] &^= 1 << (i & 63) }

// any reports whether anything is marked.
func (m marks) any() bool {
	for _, word := range m {
		if word != 0 {
			return true
		}
	}
	return false
}

// all are the places that are marked, in order; one may be unmarked on the way.
func (m marks) all() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for w, word := range m {
			for ; word != 0; word &= word - 1 {
				if !yield(int32(w<<6 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
