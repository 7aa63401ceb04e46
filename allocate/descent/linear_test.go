package descent

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fragment"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/plan/plantest"
)

// fragments is the fragment that the jobs so far make of a node, in the points of FGD.
type fragments struct{ fragment.Mix }

func (f *fragments) Learn(v plan.View, same bool) bool { return f.Mix.Learn(v, 1, same) }

func (f *fragments) Of(n *fragment.Node) int64 { return f.Fragment(n) }

// linear places by looking at every node for every worker, and remembers nothing.
func linear(v plan.View, need allocate.Need, k int) []allocate.Candidate {
	p := New(&fragments{}, 16)
	p.learn(v)
	return p.gang.OneByOne(v, need, k, nil, func() (plan.NodeID, plan.DeviceID, int64) {
		node, best := plan.NodeID(plan.None), score{points: refused}
		for id := range plan.NodeID(v.Nodes()) {
			for i := range p.before {
				p.before[i] = unknown
			}
			s := p.score(v, id, need.Shape)
			if s.points > best.points || s.points == best.points && s.points != refused && s.left < best.left {
				node, best = id, s
			}
		}
		return node, best.device, int64(best.points)
	})
}

// Through random histories, with gangs, runners-up, cut devices, memory, nodes that come and
// go and work that is confined to some, the groups lead to what looking at every node does.
func TestLinear(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		m := plantest.NewMachine(t)
		m.Around = true
		p := New(&fragments{}, 16)
		same := func() {
			v := m.S.View()
			for range 2 {
				shape := &m.S.Shapes[rapid.IntRange(0, len(m.S.Shapes)-1).Draw(t, "shape")]
				need := allocate.Need{Workers: rapid.Int32Range(1, 6).Draw(t, "workers"), Shape: shape}
				k := rapid.IntRange(1, 3).Draw(t, "candidates")
				got, want := p.Place(v, need, k, nil), linear(v, need, k)
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%+v: %d workers go to %v, and to %v where every node is looked at", *shape, need.Workers, got, want)
				}
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			m.Happen(t)
			d := m.S.Edit()
			for range rapid.IntRange(0, 4).Draw(t, "edits") {
				m.Edit(t, d)
				if rapid.IntRange(0, 2).Draw(t, "looked at") == 0 {
					same()
				}
			}
			m.Commit(t, d)
			same()
		}
	})
}
