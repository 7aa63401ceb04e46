package mgwfbp

import (
	"os"
	"slices"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/overlap/overlaptest"
)

// cases are how many stages are drawn.
func cases() int {
	if os.Getenv("MUSTER_LONG") == "1" {
		return 3000
	}
	return 300
}

// TestOptimal: the program is as good as the best of all ways to merge neighbours; the rule is
// never better, and sometimes worse.
func TestOptimal(t *testing.T) {
	worse := 0
	overlaptest.Stages(11, cases(), func(c *overlap.Costs) {
		program, rule, least := Optimal{}.Merge(c), Rule{}.Merge(c), overlaptest.Soonest(c)
		if got := overlaptest.Iteration(&program, c); got != least {
			t.Fatalf("%+v: the program takes %v, %v is possible", c, got, least)
		}
		switch got := overlaptest.Iteration(&rule, c); {
		case got < least:
			t.Fatalf("%+v: the rule takes %v, less than the best, %v", c, got, least)
		case got > least:
			worse++
		}
	})
	if worse == 0 {
		t.Error("the rule is always the best: the draws tell nothing")
	}
}

// TestEmptyLayers: the program stays the best where layers have no parameters.
func TestEmptyLayers(t *testing.T) {
	overlaptest.Stages(12, 200, func(c *overlap.Costs) {
		for i := range c.Layers {
			if c.Layers[i].ParamKiB%2 == 0 {
				c.Layers[i].ParamKiB = 0
			}
		}
		program, least := Optimal{}.Merge(c), overlaptest.Soonest(c)
		if got := overlaptest.Iteration(&program, c); got != least {
			t.Fatalf("%+v: the program takes %v, %v is possible", c, got, least)
		}
	})
}

// published is the rule as MG-WFBP writes it: arrays of when gradients are there, when messages
// begin and what they take, all computed anew after each merge.
func published(c *overlap.Costs) (sizes []int32) {
	n, ready := len(c.Layers), c.Ready()
	kib, takes, begins := make([]int64, n), make([]unit.Duration, n), make([]unit.Duration, n)
	start := func() {
		begins[n-1] = ready[n-1]
		for l := n - 2; l >= 0; l-- {
			begins[l] = max(begins[l+1]+takes[l+1], ready[l])
		}
	}
	for l := range kib {
		kib[l] = c.Layers[l].ParamKiB
		takes[l] = c.Takes(kib[l])
	}
	start()
	size := int32(0)
	for l := n - 1; l >= 1; l-- {
		size++
		if ready[l-1] < begins[l]+takes[l] && (begins[l] > ready[l-1] || ready[l-1]-begins[l] < c.Start) {
			takes[l] = 0
			kib[l-1] += kib[l]
			takes[l-1] = c.Takes(kib[l-1])
			start()
			continue
		}
		sizes, size = append(sizes, size), 0
	}
	return append(sizes, size+1)
}

// TestRule: the rule merges what the published one merges.
func TestRule(t *testing.T) {
	merged := 0
	overlaptest.Stages(13, cases(), func(c *overlap.Costs) {
		got, want := Rule{}.Merge(c).Sizes, published(c)
		if !slices.Equal(got, want) {
			t.Fatalf("%+v: %v, want %v", c, got, want)
		}
		if len(got) > 1 && len(got) < len(c.Layers) {
			merged++
		}
	})
	if merged == 0 {
		t.Error("some are never merged and others not: the draws tell nothing")
	}
}
