// Package divide is the mechanism that allocators share: who gets how many units of
// a pool, each rule a small pure function over a rate function. Pairs is the rule of AFS;
// Accept takes proposals by their gain (EasyScale); Level and Heights pour a total
// over bounded shares (max-min fairness, and the rule of Fluid). Spread lays like workers on
// nodes (Optimus).
//
// Run plays jobs under a rule to their ends, so that a rule can be measured alone.
// It knows no places, no devices and no engine: those claims that need them are
// simulated with the engine.
package divide

import (
	"cmp"
	"slices"
)

// Rate is how fast a job goes on n units, in a unit that is the same for all jobs.
// It is 0 on none and must not be negative.
type Rate func(job int, n int32) float64

// Claimant is a job as the pair rule sees it: the work that is left at rate 1, and
// the most units that it may have.
type Claimant struct {
	Left float64
	Most int32
}

// Proposal is a job's wish for more units of one kind, and what it says that it gains.
type Proposal struct {
	Job, Kind int
	Units     int32
	Gain      float64
}

// Accept takes proposals in the order of their gain while free units of their kind
// last, at most one of each job, and lowers what is free. Ties go to the lower job,
// then the lower kind.
func Accept(proposals []Proposal, free []int32) []Proposal {
	sorted := slices.Clone(proposals)
	slices.SortFunc(sorted, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(b.Gain, a.Gain), cmp.Compare(a.Job, b.Job), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Units, b.Units))
	})
	var taken []Proposal
	for _, p := range sorted {
		mine := func(t Proposal) bool { return t.Job == p.Job }
		if p.Units > 0 && free[p.Kind] >= p.Units && !slices.ContainsFunc(taken, mine) {
			free[p.Kind] -= p.Units
			taken = append(taken, p)
		}
	}
	return taken
}
