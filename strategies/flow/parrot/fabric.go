package parrot

import (
	"math"
	"slices"

	"github.com/musterdl/muster/flow/fluid"
	"github.com/musterdl/muster/mechanism/maxmin"
)

// fabric is Parrot on one big switch, where it sees every flow. A flow's weight is a part
// of its fair rate and the rate that its coflow has from the linear program, in which
// the flows of a coflow, being of unknown size, are alike. Max-min by weight gives it
// at least that, and what is left over.
type fabric struct {
	// over is the most by which a solution exceeded a port, as a part of its capacity;
	// solved is how many there were.
	over   float64
	solved int

	config Config
	known  []coflow  // those whose rates these are
	rates  []float64 // of their flows, from the program
	filler maxmin.Filler
	fair   []float64
}

// coflow is a job's present coflow as it began.
type coflow struct {
	job, coflow int
	claim
}

var _ fluid.Sharer = (*fabric)(nil)

// newFabric returns the sharer; the configuration must be valid.
func newFabric(c Config) *fabric { return &fabric{config: c} }

// Share weighs the flows and fills the ports.
func (f *fabric) Share(m *fluid.Moment, rates []float64) float64 {
	f.solve(m)
	f.fair = f.filler.Fill(m.Capacities, m.Flows, f.fair)
	for i, x := range m.Live {
		for j := x.First; j < x.End; j++ {
			m.Flows[j].Weight = f.config.FairPart*f.fair[j] + f.rates[i]
		}
	}
	f.filler.Fill(m.Capacities, m.Flows, rates)
	return math.Inf(1)
}

// solve finds the rates of the coflows when others are live than before. It takes them
// as they began: flows that end on the way leave room, and no other answer.
func (f *fabric) solve(m *fluid.Moment) {
	same := func(a coflow, x fluid.Live) bool { return a.job == x.Job && a.coflow == x.Coflow }
	if slices.EqualFunc(f.known, m.Live, same) {
		return
	}
	before, claims := f.known, make([]claim, len(m.Live))
	f.known = make([]coflow, len(m.Live))
	served := make([]float64, len(m.Live))
	for i, x := range m.Live {
		f.known[i] = coflow{job: x.Job, coflow: x.Coflow}
		if at := slices.IndexFunc(before, func(a coflow) bool { return same(a, x) }); at >= 0 {
			claims[i].uses = before[at].uses
		} else {
			claims[i].uses = taken(m, x)
		}
		claims[i].most = math.Inf(1)
		served[i] = perCoflowMB(x)
	}
	weigh(claims, served, f.config.MostWeight)
	for i := range claims {
		f.known[i].claim = claims[i]
	}
	if slices.EqualFunc(before, f.known, alike) {
		return
	}
	var over float64
	f.rates, over = scale(m.Capacities, 1-f.config.FairPart, claims)
	f.over, f.solved = max(f.over, over), f.solved+1
}

// perCoflowMB is the attained service per coflow: the mean of those that ended, or what
// the first has sent.
func perCoflowMB(x fluid.Live) float64 {
	if x.Coflow > 0 {
		return x.BeforeMB / float64(x.Coflow)
	}
	return x.SentMB
}

// taken counts a coflow's flows on each port.
func taken(m *fluid.Moment, x fluid.Live) (uses []maxmin.Use) {
	on := make([]float64, len(m.Capacities))
	for _, flow := range m.Flows[x.First:x.End] {
		for _, u := range flow.Uses {
			on[u.Link]++
		}
	}
	for l, n := range on {
		if n > 0 {
			uses = append(uses, maxmin.Use{Link: int32(l), Per: n})
		}
	}
	return uses
}

// alike reports whether the program would not notice the difference: the next coflow
// of a job often looks as the one before.
func alike(a, b coflow) bool {
	return a.job == b.job && math.Abs(a.weight-b.weight) <= .01*a.weight && slices.Equal(a.uses, b.uses)
}
