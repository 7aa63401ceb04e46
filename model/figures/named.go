package figures

import "strconv"

// Named are the figures of a T that go by names, as members of a JSON object, in the order
// in which they are written. A record has one such list, whoever writes and reads it.
type Named[T any] []Name[T]

// Name is one figure of a T.
type Name[T any] struct {
	name   string
	unsaid int64
	get    func(*T) int64
	set    func(*T, int64) bool
}

// By names a figure of a T. Where it is unsaid it is not written, and where it is not
// written it is read as that.
func By[T any, N ~int16 | ~int32 | ~int64 | ~uint8](name string, unsaid N, at func(*T) *N) Name[T] {
	return Name[T]{name: name, unsaid: int64(unsaid),
		get: func(t *T) int64 { return int64(*at(t)) },
		set: func(t *T, x int64) bool { *at(t) = N(x); return int64(N(x)) == x }}
}

// Append appends those figures of t that are to be said, each behind a comma.
func (n Named[T]) Append(b []byte, t *T) []byte {
	for i := range n {
		if x := n[i].get(t); x != n[i].unsaid {
			b = append(append(append(b, `,"`...), n[i].name...), `":`...)
			b = strconv.AppendInt(b, x, 10)
		}
	}
	return b
}

// Object is a JSON object of the figures of t that are to be said.
func (n Named[T]) Object(t *T) []byte {
	b := n.Append([]byte{'{'}, t)
	if len(b) > 1 {
		b = append(b[:1], b[2:]...) // the first has no comma before it
	}
	return append(b, '}')
}

// Clear makes all figures of t what they are unsaid.
func (n Named[T]) Clear(t *T) {
	for i := range n {
		n[i].set(t, n[i].unsaid)
	}
}

// Take reads the value of a member into t, if the member is one of these.
func (n Named[T]) Take(name []byte, value *Text, t *T) bool {
	for i := range n {
		if n[i].name == string(name) {
			value.cut = !n[i].set(t, value.Int()) || value.cut
			return true
		}
	}
	return false
}
