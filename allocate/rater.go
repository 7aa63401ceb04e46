package allocate

import "github.com/musterdl/muster/plan"

// Rater chooses among the candidates of a placer that offered several: the index of
// the best, for a reason that the placer does not look at.
type Rater interface {
	Rate(v plan.View, need Need, found []Candidate) int
}
