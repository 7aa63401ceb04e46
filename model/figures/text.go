package figures

import (
	"bytes"
	"fmt"
	"strconv"
)

// Text reads JSON of which the shape is known, in one pass and without copies: objects,
// lists, whole numbers and words without escapes. Behind the first thing that is not as
// expected all are nothing, so that whoever reads asks only End whether it was all so.
type Text struct {
	rest []byte
	all  int
	cut  bool
}

// ReadText returns a reader of b.
func ReadText(b []byte) *Text { return &Text{rest: b, all: len(b)} }

// Members yields the name of each member of an object; the loop reads its value.
func (t *Text) Members(yield func(name []byte) bool) {
	t.each('{', '}', func() bool {
		name := t.Word()
		t.need(':')
		return !t.cut && yield(name)
	})
}

// Elements yields once for each element of a list; the loop reads it.
func (t *Text) Elements(yield func() bool) { t.each('[', ']', yield) }

func (t *Text) each(open, end byte, one func() bool) {
	t.need(open)
	for first := true; !t.cut && !t.next(end); first = false {
		if !first {
			t.need(',')
		}
		if t.cut || !one() {
			return
		}
	}
}

// Int is a whole number.
func (t *Text) Int() int64 {
	x, err := strconv.ParseInt(string(t.literal()), 10, 64)
	t.cut = t.cut || err != nil
	return x
}

// Word is a text without escapes; it shares the memory of what is read.
func (t *Text) Word() []byte {
	t.need('"')
	n := bytes.IndexByte(t.rest, '"')
	if t.cut = t.cut || n < 0 || bytes.IndexByte(t.rest[:n], '\\') >= 0; t.cut {
		return nil
	}
	word := t.rest[:n]
	t.rest = t.rest[n+1:]
	return word
}

// Skip passes a value, whatever it is.
func (t *Text) Skip() {
	t.space()
	switch {
	case t.cut || len(t.rest) == 0:
		t.cut = true
	case t.rest[0] == '{':
		for range t.Members {
			t.Skip()
		}
	case t.rest[0] == '[':
		for range t.Elements {
			t.Skip()
		}
	case t.rest[0] == '"':
		t.Word()
	default:
		t.cut = t.cut || len(t.literal()) == 0
	}
}

// End says what is wrong once all should have been read.
func (t *Text) End() error {
	if t.space(); t.cut || len(t.rest) > 0 {
		return fmt.Errorf("it is not as expected at byte %d of %d", t.all-len(t.rest), t.all)
	}
	return nil
}

// literal is what stands up to the end of a value that has no ends of its own.
func (t *Text) literal() []byte {
	t.space()
	n := 0
	for n < len(t.rest) && t.rest[n] > ' ' && t.rest[n] != ',' && t.rest[n] != ']' && t.rest[n] != '}' {
		n++
	}
	b := t.rest[:n]
	t.rest = t.rest[n:]
	return b
}

// space passes white space.
func (t *Text) space() {
	for len(t.rest) > 0 && (t.rest[0] == ' ' || t.rest[0] == '\n' || t.rest[0] == '\r' || t.rest[0] == '\t') {
		t.rest = t.rest[1:]
	}
}

// next passes a character if it comes next.
func (t *Text) next(c byte) bool {
	if t.space(); len(t.rest) == 0 || t.rest[0] != c {
		return false
	}
	t.rest = t.rest[1:]
	return true
}

func (t *Text) need(c byte) { t.cut = !t.next(c) || t.cut }
