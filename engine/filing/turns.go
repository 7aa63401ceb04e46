package filing

import (
	"github.com/musterdl/muster/engine/claims"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/plan"
)

// Whose turn it is: the ledger of queues says which branch goes first, and the lines where somebody
// waits who is worth a try.

// Asking says who asks next of a leaf in which somebody does, and the turn of that among all who ask.
type Asking interface {
	Next(leaf int32) (job plan.JobID, turn int32)
}

// Turns say whose it is.
type Turns struct {
	claims *claims.Claims
	lines  *lines.Lines
	round  Asking // nil under an order
}

// NewTurns are those of an order, or of who asks in a joint decider's round.
func NewTurns(c *claims.Claims, l *lines.Lines, round Asking) Turns { return Turns{c, l, round} }

// Next is the leaf that is served next, or none.
func (t *Turns) Next() int32 {
	if !t.claims.Shared() {
		if t.lines.Available(0) {
			return 0
		}
		return plan.None
	}
	at := int32(0)
	for len(t.claims.Below(at)) > 0 {
		best := int32(plan.None)
		for _, b := range t.claims.Below(at) {
			if !t.lines.Available(b) {
				continue
			}
			if best < 0 {
				best = b
				continue
			}
			t.claims.AimOnce()
			before, tie := t.claims.Before(b, best, t.nextModels(b), t.nextModels(best))
			if before || tie && t.ranksBefore(b, best) {
				best = b
			}
		}
		if best < 0 {
			return plan.None
		}
		at = best
	}
	return at
}

// ranksBefore reports whether the best job of one leaf ranks before that of another;
// of others the first named goes first.
func (t *Turns) ranksBefore(a, b int32) bool {
	if len(t.claims.Below(a))+len(t.claims.Below(b)) > 0 {
		return false
	}
	if t.round != nil {
		_, x := t.round.Next(a)
		_, y := t.round.Next(b)
		return x < y
	}
	x, y := t.lines.First(a), t.lines.First(b)
	return x != nil && y != nil && x.Best().Before(y.Best())
}

// nextModels are the models that the best job of a branch may have; of those with others below all.
func (t *Turns) nextModels(b int32) uint64 {
	const any = ^uint64(0)
	if len(t.claims.Lent()) == 1 || len(t.claims.Below(b)) > 0 {
		return any
	}
	job := plan.JobID(plan.None)
	if t.round != nil {
		job, _ = t.round.Next(b)
	} else if c := t.lines.First(b); c != nil {
		job = c.Best().Job
	}
	if job < 0 || t.claims.Models(job) == 0 {
		return any
	}
	return t.claims.Models(job)
}
