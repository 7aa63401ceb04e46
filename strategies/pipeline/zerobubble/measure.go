package zerobubble

import (
	_ "embed" // for Claim

	"slices"

	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// Claim is what is published in closed form, as data, for muster reproduce.
//
//go:embed claim.yaml
var Claim []byte

// Measure holds H1 and H2 against what is published, over drawn cases, and the automatic order against
// what the authors' program makes.
func Measure(seed uint64) map[string]float64 {
	r := pipelinetest.Range{}
	pipelinetest.Draw(seed, 200, func(c pipelinetest.Case) {
		ahead, f, i, w := float64(c.Ranks-1), float64(c.Forward), float64(c.Input), float64(c.Weight)
		h1, h2 := c.Time(H1{}), c.Time(H2{})
		idle, bubble := float64(h1.Idle(0)), float64(slices.Max(h2.Bubble))
		h1Says, h2Says := ahead*(f+i-w), ahead*(f+i-2*w)
		r.Note("h1", idle, ahead*max(i, f+max(0, i-w)))
		r.Note("h1_kept", float64(pipelinetest.Most(h1)), float64(c.Ranks))
		r.Note("h2_kept", float64(pipelinetest.Most(h2)), float64(2*c.Ranks-1))
		switch { // by how long gradients of weights take
		case w > i:
			r.Note("h1_says", h1Says, idle)
		case w > f:
			r.Note("h1_long", idle, h1Says)
		default:
			r.Note("h1_short", idle, h1Says)
		}
		worst := ahead * max(0, i-f, f+i-2*w)
		r.Note("h2_off", bubble-worst, 1)
		switch {
		case h2Says > 0 && w > f:
			r.Note("h2_long", bubble, h2Says)
		case w <= f:
			r.Note("h2_short", bubble-max(0, h2Says), 1)
		}
	})
	beside(r)
	return r
}
