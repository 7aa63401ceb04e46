// Package figures writes whole figures down and reads them back, short and quickly: what
// a strategy remembers (schedule.Remembering) and what it asks outside (schedule.Asker).
// Small figures take little room, of either sign.
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

// Reader reads what Put wrote. Behind the first figure that is missing all are 0, so
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
	if n <= 0 {
		r.rest, r.cut = nil, true
		return 0
	}
	r.rest = r.rest[n:]
	return x
}

// Count is the next figure as the number of things to come. Each takes a byte at least:
// a number that cannot be true is damage, and nothing is made room for.
func (r *Reader) Count() int {
	n := r.Next()
	if n < 0 || n > int64(len(r.rest)) {
		r.rest, r.cut = nil, true
		return 0
	}
	return int(n)
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
