package allocate

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Picky is a Placer for some jobs only; others go to the next of a chain of placers.
type Picky interface {
	Takes(v plan.View, job plan.JobID) bool
}

// Chain is several placers: each job goes to the first that takes it. All but the last
// are Picky. Other abilities are those of the placer that a job goes to: see For.
type Chain []Placer

// newChain joins placers, as strategy.Part.Chain says.
func newChain(links []any) (any, int) {
	var c Chain
	for i, link := range links {
		if _, picky := strategy.Can[Picky](link); !picky && i < len(links)-1 {
			return nil, i
		}
		c = append(c, link.(Placer))
	}
	return c, -1
}

// Place asks the placer that the job goes to.
func (c Chain) Place(v plan.View, need Need, k int, into []Candidate) []Candidate {
	if p := For(c, v, need.Job); p != nil {
		return p.Place(v, need, k, into)
	}
	return into
}

// For is the placer that a job goes to: p itself, or the link of a chain that takes the
// job; nil where none does.
func For(p Placer, v plan.View, job plan.JobID) Placer {
	chain, ok := p.(Chain)
	if !ok {
		return p
	}
	for _, link := range chain {
		if picky, ok := strategy.Can[Picky](link); !ok || picky.Takes(v, job) {
			return link
		}
	}
	return nil
}

// CanFor finds an ability of the placer that a job goes to, see strategy.Can.
func CanFor[A any](p Placer, v plan.View, job plan.JobID) (A, bool) {
	return strategy.Can[A](For(p, v, job))
}

// Links are the placers of a chain, or the one there is.
func Links(p Placer) []Placer {
	if chain, ok := p.(Chain); ok {
		return chain
	}
	return []Placer{p}
}
