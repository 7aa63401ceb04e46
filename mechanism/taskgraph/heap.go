package taskgraph

import "cmp"

// item is what a heap holds: the lowest key comes first, then the lowest id.
type item[K cmp.Ordered] struct {
	key  K
	id   int32
	what int32
}

// heap is a binary heap without the boxing and the calls of container/heap, which
// would cost more than the events themselves.
type heap[K cmp.Ordered] []item[K]

func (h *heap[K]) push(x item[K]) {
	s := append(*h, x)
	*h = s
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if p := &s[up]; x.key > p.key || x.key == p.key && x.id >= p.id {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = x
}

func (h *heap[K]) pop() item[K] {
	s := *h
	top, n := s[0], len(s)-1
	x := s[n]
	s = s[:n]
	*h = s
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if other := child + 1; other < n && (s[other].key < s[child].key || s[other].key == s[child].key && s[other].id < s[child].id) {
			child = other
		}
		if c := &s[child]; x.key < c.key || x.key == c.key && x.id <= c.id {
			break
		}
		s[i] = s[child]
		i = child
	}
	if n > 0 {
		s[i] = x
	}
	return top
}
