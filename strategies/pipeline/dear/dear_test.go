package dear

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/overlap/overlaptest"
)

// TestGroups: layers are merged from the first one on, and what has no parameters goes with
// any; the messages are listed from the last on.
func TestGroups(t *testing.T) {
	c := &overlap.Costs{}
	for _, mib := range []int64{0, 10, 14, 0, 1, 30, 30, 5, 5, 5, 5} {
		c.Layers = append(c.Layers, pipeline.Stage{ParamKiB: mib << 10})
	}
	for name, x := range map[string]struct {
		merger overlap.Merger
		want   []int32
	}{
		"25 MiB": {Sized{}, []int32{4, 1, 1, 1, 4}},
		"four":   {Numbered{}, []int32{1, 4, 6}},
	} {
		p := x.merger.Merge(c)
		if !slices.Equal(p.Sizes, x.want) || !p.Split || !p.Own || p.Check(len(c.Layers)) != "" {
			t.Errorf("%s: %+v, want %v", name, p, x.want)
		}
	}
}

// TestSearched: no size is better than that which is searched.
func TestSearched(t *testing.T) {
	better := 0
	overlaptest.Stages(21, 100, func(c *overlap.Costs) {
		for i := range c.Layers {
			c.Layers[i].ParamKiB <<= 5
		}
		c.MicrosPerKiB /= 64
		searched, sized := Searched{}.Merge(c), Sized{}.Merge(c)
		least := overlaptest.Iteration(&searched, c)
		for size := unit.MiB(1); size <= 100; size++ {
			if p := upTo(c, size); overlaptest.Iteration(&p, c) < least {
				t.Fatalf("%+v: %v is better than %+v", c, size, searched)
			}
		}
		if least < overlaptest.Iteration(&sized, c) {
			better++
		}
	})
	if better == 0 {
		t.Error("25 MiB is always the best: the draws tell nothing")
	}
}

// TestMeasure: halves are never slower where a forward pass takes half of a backward one, and
// all is hidden where it fits under the passes and nowhere else.
func TestMeasure(t *testing.T) {
	m := Measure(3)
	if m["slower"] != 0 || m["hidden_wrong"] != 0 || m["hidden"] == 0 || m["hidden"] == 3000 {
		t.Errorf("%v", m)
	}
}
