package fit_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/plan/plantest"
)

// Through random histories every node that was not set aside is in one group, whose first is the
// lowest of them, and all of a group have room for as much of every shape.
func TestLooks(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		m := plantest.NewMachine(t)
		m.Around = true
		var l fit.Looks
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			m.Happen(t)
			d := m.S.Edit()
			for range rapid.IntRange(0, 4).Draw(t, "edits") {
				m.Edit(t, d)
			}
			m.Commit(t, d)
			v := m.S.View()
			l.Update(v)
			out := plan.NodeID(rapid.IntRange(0, v.Nodes()-1).Draw(t, "aside"))
			l.SetAside(out)
			checkLooks(t, m.S, &l, out)
			l.File(v, out)
			checkLooks(t, m.S, &l, plan.None)
		}
	})
}

func checkLooks(t *rapid.T, s *plan.State, l *fit.Looks, out plan.NodeID) {
	v, first := s.View(), map[int32]plan.NodeID{}
	for id := range plan.NodeID(v.Nodes()) {
		if id == out {
			continue
		}
		group := l.Of(id)
		if _, seen := first[group]; !seen {
			if first[group] = id; l.First(group) != id {
				t.Fatalf("group %d begins with node %d, not %d", group, l.First(group), id)
			}
		}
		for i := range s.Shapes {
			anywhere := s.Shapes[i]
			anywhere.NodeSet = 0
			if a, b := v.Holds(id, &anywhere), v.Holds(first[group], &anywhere); a != b {
				t.Fatalf("nodes %d and %d look alike and hold %d and %d of %+v", first[group], id, b, a, anywhere)
			}
		}
	}
	groups := slices.Sorted(slices.Values(l.Groups()))
	if len(groups) != len(first) || slices.ContainsFunc(groups, func(g int32) bool { _, ok := first[g]; return !ok }) {
		t.Fatalf("groups %v are said to have nodes, and %v do", groups, first)
	}
}
