package outoforder

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/overlap/overlaptest"
)

// TestReverseOrder: the first k layers' gradients of weights come last and in reverse, all
// others as usual; k = 0 is the usual order.
func TestReverseOrder(t *testing.T) {
	for k, want := range []string{
		"[2I0 2W0 1I0 1W0 0I0 0W0 0F1 1F1 2F1]",
		"[2I0 2W0 1I0 1W0 0I0 0W0 0F1 1F1 2F1]",
		"[2I0 2W0 1I0 0I0 0W0 1W0 0F1 1F1 2F1]",
		"[2I0 1I0 0I0 0W0 1W0 2W0 0F1 1F1 2F1]",
	} {
		p := first(3, k)
		if got := fmt.Sprint(p.Passes(3)); got != want {
			t.Errorf("k=%d: %s, want %s", k, got, want)
		}
	}
}

// TestReverse: no k is better than that which is chosen within the memory, and gradients are
// the same under each, which those of another order are not.
func TestReverse(t *testing.T) {
	bound := 0
	overlaptest.Stages(31, 300, func(c *overlap.Costs) {
		n := len(c.Layers)
		free := Reverse{}.Merge(c)
		c.Memory = 4
		p := Reverse{}.Merge(c)
		least := overlaptest.Iteration(&p, c)
		for k := range n + 1 {
			other := first(n, k)
			if got, _ := other.Time(c); got.Iteration < least && got.PeakKiB <= 4<<10 {
				t.Fatalf("%+v: k=%d takes %v, the chosen %d %v", c, k, got.Iteration, p.Reverse, least)
			}
		}
		if got, _ := p.Time(c); got.PeakKiB > 4<<10 && p.Reverse > 0 {
			t.Fatalf("%+v: k=%d needs %d KiB", c, p.Reverse, got.PeakKiB)
		}
		if p.Reverse != free.Reverse {
			bound++
		}
		passes := p.Passes(n)
		want := gradients(passes, n)
		slices.Reverse(passes)
		if slices.Equal(gradients(passes, n), want) {
			t.Fatal("the gradients of a reversed backward pass are the same")
		}
	})
	if bound == 0 {
		t.Error("the memory never matters: the draws tell nothing")
	}
}

// TestMeasureReverse: what the claim says must not be is not.
func TestMeasureReverse(t *testing.T) {
	m := MeasureReverse(3)
	if m["order_differs"] != 0 || m["gradients_differ"] != 0 || m["own_most"] > 1 || m["chosen"] == 0 {
		t.Errorf("%v", m)
	}
}
