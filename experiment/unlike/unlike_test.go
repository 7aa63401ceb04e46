package unlike

import (
	"testing"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"github.com/musterdl/muster/strategies/pipeline/ptdp"
)

// TestBothSides: on a model with a large head, cut by time is faster than by number, and joined
// models have the layers of both.
func TestBothSides(t *testing.T) {
	s := Sides{Planners: []parallel.Planner{ptdp.Planner{}}, Sequences: []parallel.Sequence{{Name: "1f1b", Order: onefoneb.Ordering{}}},
		Folded: func(int) pipeline.Ordering { return onefoneb.Ordering{} }}
	c := models()[0]
	x := c.simulator(0)
	base, best := s.byNumber(x, &c), s.planned(x, &c)
	if base.Step == 0 || best.Step == 0 || best.Step >= base.Step {
		t.Errorf("by number %v, planned %v", base.Step, best.Step)
	}
	two := joined{preset("vit-h"), preset("llama-3-8b")}
	if two.Layers() != two[0].Layers()+two[1].Layers() {
		t.Errorf("%d layers", two.Layers())
	}
	device := &x.On.Kinds[0]
	a, _ := two.Ways(two[0].Layers(), device, 1, 1)
	b, _ := two[1].Ways(0, device, 1, 1)
	if len(a) == 0 || a[0] != b[0] {
		t.Errorf("the first layer of the second model is %+v, want %+v", a, b)
	}
}
