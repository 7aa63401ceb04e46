package scored_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/allocate/scored"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// full likes full nodes, in whole percents.
func full(_ plan.View, n *scored.Node, _ *plan.Shape) int64 {
	return 100 - 100*n.Total/max(1, n.MostTotal)
}

func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return scored.New(full) })
}

// A gang counts what it has taken itself; of equals the lowest node is taken.
func TestHighestScore(t *testing.T) {
	type part = allocatetest.Part
	s := allocatetest.Cluster(t, 4, 1, part{Devices: 3}, part{Devices: 2}, part{Devices: 2})
	if got := allocatetest.Offer(t, s, scored.New(full), allocatetest.Gang(5), 1); got != "1:2 2:2 0:1" {
		t.Errorf("got %q", got)
	}
}

// What is remembered changes nothing: after any history a placer offers what a fresh one
// does.
func TestMemory(t *testing.T) {
	draws.Check(t, func(rt *rapid.T) {
		c := cluster.Uniform("small", rapid.IntRange(1, 6).Draw(rt, "nodes"), 4, cluster.Model{Name: "gpu"}, 2)
		s := plan.NewState(c)
		s.Shapes = []plan.Shape{allocatetest.Gang(1), allocatetest.Gang(3), allocatetest.Share(300, 0), allocatetest.Share(700, 0)}
		p := scored.New(full)
		var running []plan.RunID
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			d := s.Edit()
			if len(running) > 0 && rapid.IntRange(0, 3).Draw(rt, "verb") == 0 {
				i := rapid.IntRange(0, len(running)-1).Draw(rt, "run")
				d.Stop(running[i], plan.Reason{}, 0)
				running = append(running[:i], running[i+1:]...)
				d.Commit()
				continue
			}
			shape := int32(rapid.IntRange(0, 3).Draw(rt, "shape"))
			need := allocate.Need{Job: s.Admit("job", plan.Asked{Shape: shape}), Workers: s.Shapes[shape].Gang, Shape: &s.Shapes[shape]}
			got, want := p.Place(s.View(), need, 2, nil), scored.New(full).Place(s.View(), need, 2, nil)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("it offers %v, a fresh one %v", got, want)
			}
			if len(got) > 0 {
				if run, _ := d.Start(need.Job, got[0].Slots, plan.DefaultTerms(), plan.Reason{}); run != plan.None {
					running = append(running, run)
				}
			}
			d.Commit()
		}
	})
}
