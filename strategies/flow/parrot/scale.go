package parrot

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/mechanism/solve"
)

// claim is a job as the linear program sees it: one rate for all its flows.
type claim struct {
	uses   []maxmin.Use // of a unit of rate, each link once
	weight float64
	most   float64 // the most it can use
}

// scale returns the rates that maximise the weighted sum within a part of the links;
// zeros where the solver has no answer, so that what is sure remains. over is by how
// much, as a part of its capacity, the solver's answer exceeds a link; what is returned
// exceeds none.
func scale(capacities []float64, within float64, claims []claim) (rates []float64, over float64) {
	type part struct {
		link int32
		term solve.Term
	}
	p := solve.Problem{Maximise: true}
	var parts []part
	for j := range claims {
		p.Var(0, claims[j].most, claims[j].weight)
		for _, u := range claims[j].uses {
			parts = append(parts, part{u.Link, solve.Term{Var: j, Coef: u.Per / capacities[u.Link]}})
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.link, b.link) })
	var rows [][]solve.Term
	for i := 0; i < len(parts); {
		var row []solve.Term
		for link := parts[i].link; i < len(parts) && parts[i].link == link; i++ {
			row = append(row, parts[i].term)
		}
		p.Row(-solve.Inf, within, row...)
		rows = append(rows, row)
	}
	rates = make([]float64, len(claims))
	if within == 0 {
		return rates, 0
	}
	s, err := solve.Solve(&p, solve.Budget{})
	if err != nil || s.X == nil {
		return rates, 0
	}
	for _, row := range rows {
		load := 0.0
		for _, t := range row {
			load += t.Coef * max(0, s.X[t.Var])
		}
		over = max(over, load-within)
	}
	for j := range rates {
		rates[j] = max(0, s.X[j]) * within / (within + over)
	}
	return rates, over
}

// weigh gives weight to the claims by the attained service per coflow of their jobs: as
// many times 1 as the largest has more, up to a bound.
func weigh(claims []claim, attained []float64, most float64) {
	largest := slices.Max(attained)
	for i := range claims {
		claims[i].weight = 1
		if attained[i] < largest {
			claims[i].weight = min(most, largest/attained[i])
		}
	}
}
