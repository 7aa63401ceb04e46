package bound

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/unit"
)

func (a wide) big() *big.Int {
	x := new(big.Int).SetUint64(a.hi)
	return x.Or(x.Lsh(x, 64), new(big.Int).SetUint64(a.lo))
}

func TestWideAgainstBig(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) uint64 { return rapid.Uint64Range(0, 1<<62).Draw(t, label) }
		a, b := product(draw("a"), draw("b")), product(draw("c"), draw("d"))
		if a.less(b) != (a.big().Cmp(b.big()) < 0) {
			t.Fatal("less")
		}
		if a.plus(b).big().Cmp(new(big.Int).Add(a.big(), b.big())) != 0 || a.plus(b).minus(b) != a {
			t.Fatal("plus, minus")
		}
		n := draw("n") + 1
		q := new(big.Int).Quo(a.big(), new(big.Int).SetUint64(n))
		if !q.IsInt64() {
			q.SetInt64(int64(unit.Forever))
		}
		if int64(a.over(n)) != q.Int64() {
			t.Fatalf("over: %d, want %s", a.over(n), q)
		}
	})
}
