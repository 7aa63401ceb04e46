package unit

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

func (t DeviceTime) big() *big.Int {
	x := new(big.Int).SetUint64(t.Hi)
	return x.Or(x.Lsh(x, 64), new(big.Int).SetUint64(t.Lo))
}

func TestDeviceTimeAgainstBig(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		draw := func(label string) uint64 { return rapid.Uint64Range(0, 1<<62).Draw(t, label) }
		use := func(a, b string) DeviceTime { return Use(int64(draw(a)), Duration(draw(b))) }
		a, b := use("a", "b"), use("c", "d")
		if a.Less(b) != (a.big().Cmp(b.big()) < 0) {
			t.Fatal("less")
		}
		if a.Plus(b).big().Cmp(new(big.Int).Add(a.big(), b.big())) != 0 || a.Plus(b).Minus(b) != a {
			t.Fatal("plus, minus")
		}
		n := draw("n") + 1
		q := new(big.Int).Quo(a.big(), new(big.Int).SetUint64(n))
		if !q.IsInt64() {
			q.SetInt64(int64(Forever))
		}
		if int64(a.Over(n)) != q.Int64() {
			t.Fatalf("over: %d, want %s", a.Over(n), q)
		}
	})
}
