// Package figures writes whole figures and bytes down and reads them back, short and
// quickly: what a strategy remembers (strategy.Remembering) and asks outside
// (strategy.Asker), and the batches of the journal. Small figures take little room, of
// either sign.
package figures

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Put appends figures.
func Put(b []byte, figures ...int64) []byte {
	for _, x := range figures {
		b = binary.AppendVarint(b, x)
	}
	return b
}

// PutCount appends the number of things to come.
func PutCount(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// PutBytes appends bytes, and before them how many they are.
func PutBytes(b, data []byte) []byte { return append(PutCount(b, len(data)), data...) }

// Reader reads what was put. Behind the first thing that is missing all are nothing, so
// that whoever reads asks only End whether it was all there.
type Reader struct {
	rest []byte
	cut  bool
}

// Read returns a reader of b.
func Read(b []byte) *Reader { return &Reader{rest: b} }

// Next is the next figure.
func (r *Reader) Next() int64 {
	x, n := binary.Varint(r.rest)
	r.pass(n)
	return x
}

// pass goes on behind n bytes; none is damage.
func (r *Reader) pass(n int) {
	if n <= 0 {
		r.rest, r.cut = nil, true
		return
	}
	r.rest = r.rest[n:]
}

// Count is the number of things to come. Each takes a byte at least, so one that exceeds
// what is left is damage, and refusing it here bounds every allocation.
func (r *Reader) Count() int {
	x, n := binary.Uvarint(r.rest)
	if r.pass(n); x > uint64(len(r.rest)) {
		r.rest, r.cut = nil, true
		return 0
	}
	return int(x)
}

// Counted yields once for each of the things to come, which are counted, until one is
// missing.
func (r *Reader) Counted(yield func() bool) {
	for n := r.Count(); n > 0 && !r.cut && yield(); n-- {
	}
}

// List is the next n figures.
func (r *Reader) List(n int) []int64 {
	if n == 0 || n > len(r.rest) {
		r.cut = r.cut || n > 0
		return nil
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = r.Next()
	}
	return list
}

// Bytes are the next bytes; they share the memory of what is read. None is nil.
func (r *Reader) Bytes() []byte {
	n := r.Count()
	if n == 0 {
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Rest is all that is left.
func (r *Reader) Rest() []byte {
	b := r.rest
	r.rest = nil
	return b
}

// Cut reports whether something was missing so far.
func (r *Reader) Cut() bool { return r.cut }

// More reports whether figures are left.
func (r *Reader) More() bool { return len(r.rest) > 0 }

// errCut is what is wrong with figures that end too early.
var errCut = errors.New("it is cut off")

// End says what is wrong once all should have been read.
func (r *Reader) End() error {
	if r.cut {
		return errCut
	}
	if len(r.rest) > 0 {
		return fmt.Errorf("%d bytes are left over", len(r.rest))
	}
	return nil
}
