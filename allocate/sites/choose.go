package sites

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/pipeline"
)

// Found is what there is to choose from.
type Found struct {
	// Best are the places of which none is better in both time and money, the soonest first.
	Best []Place
	// Single are all in one centre, the cheapest first.
	Single []Place
	// Asked is for how many places the curve was asked, Places how many there are.
	Asked, Places int
}

// Search looks through the places of a job. It asks the curve for those in one centre, and then
// for those that could still be among the best, the most promising first. It says why, where
// there is no place.
func (n *Network) Search(j *Job, curve Curve) (f Found, why pipeline.Why) {
	all := n.all(j)
	f.Places = len(all)
	least := make([]Place, len(all))
	for i, parts := range all {
		least[i] = n.place(j, parts, Step{Takes: curve.Least(parts)})
	}
	slices.SortStableFunc(least, func(a, b Place) int {
		return cmp.Or(cmp.Compare(min(len(a.Parts), 2), min(len(b.Parts), 2)), cmp.Compare(a.Time, b.Time))
	})
	// What is in one centre is asked for in any case: it may be chosen though it is not among the
	// best. Of the others a place is left out when even its bound is no better than one that is
	// known; as time passes for each dollar, a bound of the time is one of the money too.
	for i := range least {
		alone := len(least[i].Parts) == 1
		if !alone && slices.ContainsFunc(f.Best, least[i].notBetter) {
			continue
		}
		f.Asked++
		step, not := curve.Step(least[i].Parts)
		if not != "" {
			if why == "" {
				why = not
			}
			continue
		}
		p := n.place(j, least[i].Parts, step)
		if alone {
			f.Single = append(f.Single, p)
		}
		f.add(p)
	}
	slices.SortStableFunc(f.Single, func(a, b Place) int { return cmp.Or(cmp.Compare(a.Dollars, b.Dollars), cmp.Compare(a.Time, b.Time)) })
	switch {
	case len(f.Best) > 0:
		why = ""
	case len(all) == 0:
		why = pipeline.Why(fmt.Sprintf("no %d of %d centres have room for %v stages: expected that many free nodes", j.Most, len(n.Centres), j.Stages))
	}
	return f, why
}

// notBetter reports whether a place is no better than another in either.
func (p *Place) notBetter(than Place) bool { return p.Time >= than.Time && p.Dollars >= than.Dollars }

// add takes a place among the best if it belongs there; the first of equals stays.
func (f *Found) add(p Place) {
	if slices.ContainsFunc(f.Best, p.notBetter) {
		return
	}
	f.Best = slices.DeleteFunc(f.Best, func(o Place) bool { return o.notBetter(p) })
	at, _ := slices.BinarySearchFunc(f.Best, p, func(a, b Place) int { return cmp.Compare(a.Time, b.Time) })
	f.Best = slices.Insert(f.Best, at, p)
}

// keeps reports whether a place keeps a job's limits, and by how much it is over the one that
// it passes most, as a part of it.
func (j *Job) keeps(p *Place) (bool, float64) {
	over := 0.
	if j.Deadline > 0 {
		over = max(over, float64(p.Time)/float64(j.Deadline)-1)
	}
	if j.Budget > 0 {
		over = max(over, p.Dollars/j.Budget-1)
	}
	return over == 0, over
}

// Choose takes one of what was found: of those that keep the limits the one that suits the job's
// weights, its time and money counted as parts of the least. A place in one centre that keeps
// them too and is not dearer goes before one in several. Where none keeps them it returns the
// nearest and says why.
func (f *Found) Choose(n *Network, j *Job) (Place, pipeline.Why) {
	least := f.Best[0].Dollars
	for i := range f.Best {
		least = min(least, f.Best[i].Dollars)
	}
	cost := func(p *Place) float64 {
		return j.TimeAgainstDollars*float64(p.Time)/float64(f.Best[0].Time) + (1-j.TimeAgainstDollars)*p.Dollars/least
	}
	// Whoever minimises a sum of both with some weights takes one of the best, so that no other
	// place needs to be looked at; and of those that pass a limit the nearest is one of them.
	var chosen, nearest *Place
	for i := range f.Best {
		p := &f.Best[i]
		keeps, over := j.keeps(p)
		if keeps && (chosen == nil || cost(p) < cost(chosen)) {
			chosen = p
		}
		if nearest == nil {
			nearest = p
		} else if _, o := j.keeps(nearest); over < o {
			nearest = p
		}
	}
	if chosen == nil {
		return *nearest, j.misses(n, nearest)
	}
	for i := range f.Single {
		p := &f.Single[i]
		if keeps, _ := j.keeps(p); keeps && len(chosen.Parts) > 1 && p.Dollars <= chosen.Dollars {
			chosen = p
		}
	}
	return *chosen, ""
}

// misses says which limits no place keeps, and what the nearest comes to.
func (j *Job) misses(n *Network, p *Place) pipeline.Why {
	limit := ""
	if j.Deadline > 0 {
		limit = fmt.Sprintf(" in %v", j.Deadline)
	}
	if j.Budget > 0 {
		limit += fmt.Sprintf(" for %.2f dollars", j.Budget)
	}
	return pipeline.Why(fmt.Sprintf("no place ends%s: the nearest takes %v and %.2f dollars, on %s", limit, p.Time, p.Dollars, n.Text(p)))
}

// Text writes a place as its centres and how many stages each has.
func (n *Network) Text(p *Place) (text string) {
	for i, part := range p.Parts {
		if i > 0 {
			text += " + "
		}
		text += fmt.Sprintf("%s:%d", n.Centres[part.Centre].Name, part.Stages)
	}
	return text
}
