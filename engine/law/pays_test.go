package law_test

import (
	"testing"

	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// costs says by job what a completion costs, for how many seconds it has run, and how much it is like the others.
type costs struct{ cost, ran, alike []float64 }

func (c costs) Cost(_ plan.View, job plan.JobID) float64     { return c.cost[job] }
func (c costs) Ran(_ plan.View, job plan.JobID) float64      { return c.ran[job] }
func (c costs) Alike(_ plan.View, _, job plan.JobID) float64 { return c.alike[job] }

// TestPays: job 0 takes the room of job 1, and job 2 may fill what that leaves.
func TestPays(t *testing.T) {
	for name, c := range map[string]struct {
		of   costs
		stop unit.Duration
		fill []plan.JobID
		want bool
	}{
		"the quicker for the slower":                    {costs{[]float64{10, 100, 1}, []float64{0, 0, 0}, []float64{0, 0, 0}}, 0, nil, true},
		"the slower for the quicker":                    {costs{[]float64{100, 10, 1}, []float64{0, 0, 0}, []float64{0, 0, 0}}, 0, nil, false},
		"as quick, with what the stop costs":            {costs{[]float64{90, 100, 1}, []float64{0, 0, 0}, []float64{0, 0, 0}}, 30 * unit.Second, nil, false},
		"with who fills what is left":                   {costs{[]float64{100, 10, 5}, []float64{0, 0, 0}, []float64{0, 0, 0}}, 0, []plan.JobID{2}, true},
		"of one kind, for who has run longer":           {costs{[]float64{10, 100, 1}, []float64{0, 200, 0}, []float64{1, 1, 1}}, 0, nil, false},
		"of one kind, as far as that is sure at a half": {costs{[]float64{10, 100, 1}, []float64{0, 200, 0}, []float64{.5, .5, .5}}, 0, nil, true},
	} {
		loser := law.Loser{Job: 1, Cost: c.of.cost[1], Ran: c.of.ran[1], Stop: c.stop}
		if got := law.Pays(plan.View{}, c.of, 0, c.fill, []law.Loser{loser}); got != c.want {
			t.Errorf("%s: it pays %v, want %v", name, got, c.want)
		}
	}
}
