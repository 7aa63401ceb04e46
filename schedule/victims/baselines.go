package victims

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Newest displaces the runs that began last, until there is room: what most
// schedulers do. It spares nobody.
type Newest struct{ line line }

// LowestRank displaces the runs ranked last, until there is room, and then spares
// those whose room was not needed, the best ranked first; if that does not do, all
// of them go.
type LowestRank struct{ line line }

var (
	_ Chooser = (*Newest)(nil)
	_ Chooser = (*LowestRank)(nil)
)

// Choose chooses the victims; of runs that began together the later job goes first.
func (c *Newest) Choose(in Input, try func(chosen []int) bool) ([]int, bool) {
	began := func(i int) unit.Time { return in.View.Run(in.Candidates[i].Run).Began } // Never where it has not yet
	c.line.sort(&in, func(a, b int) int {
		return cmp.Or(cmp.Compare(began(b), began(a)), cmp.Compare(in.Candidates[b].Job, in.Candidates[a].Job))
	})
	if !c.line.fill(&in, try) {
		return nil, false
	}
	return c.line.ascending(), true
}

// Choose chooses the victims.
func (c *LowestRank) Choose(in Input, try func(chosen []int) bool) ([]int, bool) {
	c.line.sort(&in, func(a, b int) int {
		x, y := &in.Candidates[a], &in.Candidates[b]
		return y.Key.Compare(y.Job, x.Key, x.Job)
	})
	if !c.line.fill(&in, try) {
		return nil, false
	}
	all := slices.Clone(c.line.chosen)
	if c.line.spare() && !try(c.line.ascending()) {
		c.line.chosen = all
	}
	return c.line.ascending(), true
}

// line is candidates standing in line to be displaced.
type line struct {
	ledger  ledger
	order   []int
	chosen  []int // in the order of the line
	sorted  []int
	surplus int64
}

func (l *line) sort(in *Input, compare func(a, b int) int) {
	l.ledger.load(in)
	l.order = l.order[:0]
	for i := range in.Candidates {
		if in.Need.Shape.Devices == 0 || l.milli(i) > 0 {
			l.order = append(l.order, i)
		}
	}
	slices.SortFunc(l.order, compare)
}

// milli is what a candidate holds of devices that the need may use.
func (l *line) milli(candidate int) (milli int64) {
	for _, p := range l.ledger.parts[l.ledger.first[candidate]:l.ledger.first[candidate+1]] {
		if p.device != plan.None && l.ledger.nodes[p.node].useful {
			milli += int64(p.milli)
		}
	}
	return milli
}

// fill takes one after another until try accepts. Of those that may be enough it
// tries the first, and then, since each call costs as much as there are victims, the
// second, the fourth, the eighth and so on after it, and at last all.
func (l *line) fill(in *Input, try func(chosen []int) bool) bool {
	l.chosen = l.chosen[:0]
	l.surplus = in.View.Room().FreeMilli(in.Need.Shape.Models) - in.Need.Shape.Milli(in.Need.Workers)
	if l.ledger.enough() && try(nil) {
		return true
	}
	failed, next := 0, 1
	for i, candidate := range l.order {
		l.ledger.toggle(int32(candidate))
		l.chosen = append(l.chosen, candidate)
		l.surplus += l.milli(candidate)
		if !l.ledger.enough() {
			continue
		}
		if failed++; failed == next || i == len(l.order)-1 {
			next *= 2
			if try(l.ascending()) {
				return true
			}
		}
	}
	return false
}

// spare gives back those that the surplus covers and reports whether there were any.
func (l *line) spare() bool {
	before := len(l.chosen)
	for i := before - 1; i >= 0; i-- {
		if milli := l.milli(l.chosen[i]); milli <= l.surplus {
			l.surplus -= milli
			l.chosen = slices.Delete(l.chosen, i, i+1)
		}
	}
	return len(l.chosen) < before
}

func (l *line) ascending() []int {
	l.sorted = append(l.sorted[:0], l.chosen...)
	slices.Sort(l.sorted)
	return l.sorted
}
