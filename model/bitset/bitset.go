// Package bitset is sets of small numbers, as nodes and jobs have them, that are kept while they
// change: to add, to remove and to find the next one costs about the same whatever is in the set.
package bitset

import (
	"iter"
	"math/bits"
	"slices"
)

// Set is a set of numbers from 0 on, 64 to a word, and which words are not empty, 64 to a word again. The zero Set
// has no room for any.
type Set struct{ low, high []uint64 }

// New returns an empty set with room for the numbers below n.
func New(n int) (s Set) {
	s.Grow(n)
	return s
}

// Grow makes room for the numbers below n.
func (s *Set) Grow(n int) {
	if words := (n + 63) / 64; words > len(s.low) {
		s.low = append(s.low, make([]uint64, words-len(s.low))...)
		s.high = append(s.high, make([]uint64, (words+63)/64-len(s.high))...)
	}
}

// Clone returns a set of the same numbers.
func (s *Set) Clone() Set { return Set{slices.Clone(s.low), slices.Clone(s.high)} }

// Equal reports whether two sets are the same, with the same room.
func (s *Set) Equal(o *Set) bool { return slices.Equal(s.low, o.low) && slices.Equal(s.high, o.high) }

// Clear removes all numbers, and keeps the room.
func (s *Set) Clear() {
	clear(s.low)
	clear(s.high)
}

// Add adds a number.
func (s *Set) Add(i int32) {
	s.low[i>>6] |= 1 << (i & 63)
	s.high[i>>12] |= 1 << (i >> 6 & 63)
}

// Remove removes a number, if it is there.
func (s *Set) Remove(i int32) {
	if s.low[i>>6] &^= 1 << (i & 63); s.low[i>>6] == 0 {
		s.high[i>>12] &^= 1 << (i >> 6 & 63)
	}
}

// Empty reports whether there is none.
func (s *Set) Empty() bool {
	return !slices.ContainsFunc(s.high, func(word uint64) bool { return word != 0 })
}

// Next returns the first number at or after one, or -1.
func (s *Set) Next(from int32) int32 {
	w := int(from >> 6)
	if w >= len(s.low) {
		return -1
	}
	if x := s.low[w] >> (from & 63); x != 0 {
		return from + int32(bits.TrailingZeros64(x))
	}
	w++
	for h := w >> 6; h < len(s.high); h++ {
		x := s.high[h]
		if h == w>>6 {
			x &= ^uint64(0) << (w & 63)
		}
		if x != 0 {
			low := h<<6 + bits.TrailingZeros64(x)
			return int32(low<<6 + bits.TrailingZeros64(s.low[low]))
		}
	}
	return -1
}

// All are the numbers, in order.
func (s *Set) All() iter.Seq[int32] { return Common(s, s) }

// Common are the numbers that are in two sets and in no others, in order.
func Common(a, b *Set, but ...*Set) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for h := range min(len(a.high), len(b.high)) {
			for words := a.high[h] & b.high[h]; words != 0; words &= words - 1 {
				w := h<<6 + bits.TrailingZeros64(words)
				word := a.low[w] & b.low[w]
				for _, others := range but {
					if w < len(others.low) {
						word &^= others.low[w]
					}
				}
				for ; word != 0; word &= word - 1 {
					if !yield(int32(w<<6 + bits.TrailingZeros64(word))) {
						return
					}
				}
			}
		}
	}
}
