package figures

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

// TestReader: figures come back as they went out; cut short or gone on with, they are
// refused, and no count makes room that there are no bytes for.
func TestReader(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Int64(), 1, 20).Draw(t, "figures")
		b := Put(PutCount(nil, len(want)), want...)
		r := Read(b)
		got := r.List(r.Count())
		if err := r.End(); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v came back as %v, %v", want, got, err)
		}
		for _, wrong := range [][]byte{b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")], append(b, 0)} {
			r = Read(wrong)
			for range r.Counted {
				r.Next()
			}
			if r.End() == nil {
				t.Fatalf("%d bytes are taken for %d", len(wrong), len(b))
			}
		}
	})
	for _, n := range []int{1, math.MaxInt64, -1} {
		if r := Read(PutCount(nil, n)); r.Count() != 0 || r.End() == nil {
			t.Errorf("a count of %d of nothing is taken", n)
		}
	}
	r := Read(PutBytes(PutBytes(nil, []byte("abc")), nil))
	if a, b := r.Bytes(), r.Bytes(); string(a) != "abc" || b != nil || r.End() != nil {
		t.Errorf("bytes came back as %q and %q, %v", a, b, r.End())
	}
}
