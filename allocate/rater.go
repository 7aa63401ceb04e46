package allocate

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// RatePart chooses among the places that the placer offers. There need be none: then the
// placer's own first is taken.
var RatePart = strategy.NewPart[Rater](strategy.Part{Name: "rate", Rank: 110, Step: "allocate"})

// Rater chooses among the candidates of a placer that offered several: the index of
// the best, for a reason that the placer does not look at.
type Rater interface {
	Rate(v plan.View, need Need, found []Candidate) int
}
