package compose

import (
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/plan"
)

// Whose turn it is: the ledger of queues says which branch goes first, and the lines where somebody
// waits who is worth a try.

// nextLeaf descends to the leaf that is served next, or none.
func (s *Scheduler) nextLeaf() int32 {
	t := s.claims
	if !t.Shared() {
		if s.lines.Available(0) {
			return 0
		}
		return plan.None
	}
	at := int32(0)
	for len(t.Below(at)) > 0 {
		best := int32(plan.None)
		for _, b := range t.Below(at) {
			if !s.lines.Available(b) {
				continue
			}
			if best < 0 {
				best = b
				continue
			}
			t.AimOnce()
			before, tie := t.Before(b, best, s.nextModels(b), s.nextModels(best))
			if before || tie && s.ranksBefore(b, best) {
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
func (s *Scheduler) ranksBefore(a, b int32) bool {
	if len(s.claims.Below(a))+len(s.claims.Below(b)) > 0 {
		return false
	}
	if s.round != nil {
		_, x := s.round.Next(a)
		_, y := s.round.Next(b)
		return x < y
	}
	x, y := s.lines.First(a), s.lines.First(b)
	return x != nil && y != nil && x.Best().Before(y.Best())
}

// nextModels are the models that the best job of a branch may have; of those with others below all.
func (s *Scheduler) nextModels(b int32) uint64 {
	const any = ^uint64(0)
	t := s.claims
	if len(t.Lent()) == 1 || len(t.Below(b)) > 0 {
		return any
	}
	job := plan.JobID(plan.None)
	if s.round != nil {
		job, _ = s.round.Next(b)
	} else if c := s.lines.First(b); c != nil {
		job = c.Best().Job
	}
	if job < 0 || t.Models(job) == 0 {
		return any
	}
	return t.Models(job)
}

// takesBack reports whether the best job of a class may claim room from what runs: it
// is within a guarantee, or priority counts where it is.
func (s *Scheduler) takesBack(v plan.View, c *lines.Class) bool {
	if !s.claims.Shared() || len(c.Items()) == 0 {
		return false
	}
	shape := v.ShapeOf(c.Shape)
	return s.claims.Entitled(c.Leaf, shape.Models, shape.Milli(shape.Least()), c.Best().Priority)
}
