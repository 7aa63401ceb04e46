package compose

import (
	"fmt"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// WatchChooser has chose told whom the victims part chooses to give way, and to whom.
func (s *Scheduler) WatchChooser(chose func(by plan.JobID, victims []plan.JobID)) {
	s.claims.chooser = watched{s.claims.chooser, chose}
}

type watched struct {
	victims.Chooser
	chose func(by plan.JobID, victims []plan.JobID)
}

func (w watched) Choose(in victims.Input, try func(chosen []int) bool) ([]int, bool) {
	chosen, ok := w.Chooser.Choose(in, try)
	if ok {
		var jobs []plan.JobID
		for _, i := range chosen {
			jobs = append(jobs, in.Candidates[i].Job)
		}
		w.chose(in.Need.Job, jobs)
	}
	return chosen, ok
}

// CheckLines says what of the marks and counts of the classes is not as the classes are.
func (s *Scheduler) CheckLines() error {
	open, blocked := make([]int32, len(s.lines.owners)), make([]int32, len(s.lines.blocked))
	for i := range s.lines.classes {
		c := &s.lines.classes[i]
		f, who := c.in, s.lines.owner[c.owner]
		isOpen, isBlocked := f.open.has(c.place), f.blocked.has(c.place)
		if f.classes[c.place] != int32(i) || f.owners[c.place] != who || f.shape != c.shape || f.step != c.step {
			return fmt.Errorf("class %d is not where it is filed", i)
		}
		if has := len(c.waiting.items) > 0; isOpen && isBlocked || (isOpen || isBlocked) != has {
			return fmt.Errorf("class %d of %d jobs is open %v and blocked %v", i, len(c.waiting.items), isOpen, isBlocked)
		}
		if isOpen {
			open[who]++
		} else if isBlocked {
			blocked[c.shape]++
		}
	}
	tree := make([]int32, len(s.claims.tree.heads))
	for who := range s.lines.owners {
		o := &s.lines.owners[who]
		if o.open != open[who] {
			return fmt.Errorf("owner %d has %d open classes, and is counted with %d", who, open[who], o.open)
		}
		tree[o.leaf] += min(1, o.open)
	}
	for shape, n := range blocked {
		if s.lines.blocked[shape] != n {
			return fmt.Errorf("%d classes of shape %d are blocked, and %d are counted", n, shape, s.lines.blocked[shape])
		}
	}
	for b := len(tree) - 1; b >= 0; b-- { // what is below a branch stands behind it
		if s.claims.tree.heads[b].open != tree[b] {
			return fmt.Errorf("branch %d is counted with %d open, it has %d", b, s.claims.tree.heads[b].open, tree[b])
		}
		if up := s.claims.tree.Parent(int32(b)); up >= 0 {
			tree[up] += min(1, tree[b])
		}
	}
	return nil
}
