package measured

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/internal/planning"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/strategies/pipeline/ptdp"
)

// TestThePlanSaysWhatTheClaimSays: muster plan, asked for the sizes of each measured plan, tells the seconds that the claim
// is judged by. Where it cuts the layers itself it is hardly slower, and never by much faster: then the claim would be of
// another model of a step.
func TestThePlanSaysWhatTheClaimSays(t *testing.T) {
	same, most := 0, 0.
	err := sailorPlans(data, func(name string, p *sailorPlan, _, _ float64) error {
		model, why := p.model()
		on, not := p.nodes()
		if why+not != "" {
			t.Fatal(why + not)
		}
		own := p.spread(straight{})
		limits := parallel.Limits{Tensor: own.Tensor, Ranks: own.Ranks, Copies: own.Copies, Sequences: []parallel.Sequence{own.Sequence}}
		x := parallel.NewSimulator(model, on)
		plan := own.Plan()
		claimed, why := x.Simulate(&plan)
		if why != "" {
			t.Fatal(name, why)
		}
		c := planning.Compare(&planning.Task{Model: model, On: on, Limits: limits, Outlook: planning.Usual}, []planning.Named{{Name: "sizes", Planner: sized{own.Samples}}})
		at := slices.IndexFunc(c.Rows, func(r planning.Row) bool { return r.By != nil })
		told := c.Rows[at].StepSec / claimed.Step.Seconds()
		if len(p.Layers) == 1 && told != 1 || told > 1.005 || told < .8 {
			t.Errorf("%s: muster plan says %.3f of the seconds of the claim", name, told)
		}
		if told == 1 {
			same++
		}
		most = max(most, 1-told)
		return nil
	})
	orSkip(t, err)
	t.Logf("%d plans to the microsecond, the others up to %.1f %% faster by a better cut", same, 100*most)
	if same < 6 {
		t.Errorf("%d plans have the seconds of the claim, want the 6 of one rank at least", same)
	}
}

// sized is ptd-p with microbatches of one size.
type sized struct{ samples int }

func (s sized) Plans(x *parallel.Simulator, l parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	g := parallel.Grid{Sequences: l.Sequences, Tensors: []int{l.Tensor}, Ranks: []int{l.Ranks}, Samples: []int{s.samples}}
	return g.Search(x, l)
}

// TestSmallPassesCost: who measured these plans took microbatches of 2 to 8 where one sample each would have had the shorter
// bubble. What the planner offers first for the same sizes has none that are smaller.
func TestSmallPassesCost(t *testing.T) {
	err := sailorPlans(data, func(name string, p *sailorPlan, _, _ float64) error {
		model, _ := p.model()
		on, _ := p.nodes()
		own := p.spread(straight{})
		all, why := ptdp.Planner{}.Plans(parallel.NewSimulator(model, on), parallel.Limits{Tensor: own.Tensor, Ranks: own.Ranks, Copies: own.Copies, Sequences: []parallel.Sequence{own.Sequence}})
		if why != "" {
			t.Fatal(name, why)
		}
		if first := &all[0]; first.Plan.Samples < p.Micro {
			t.Errorf("%s: measured with microbatches of %d, offered first is %v", name, p.Micro, &first.Plan)
		}
		return nil
	})
	orSkip(t, err)
}
