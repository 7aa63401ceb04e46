package compose_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// TestOutrunIsSeen: who goes shortest first looks again when an estimate has been outrun, and not only
// when a restart makes it look.
func TestOutrunIsSeen(t *testing.T) {
	draws.Cases{Few: 1}.Check(t, func(t *rapid.T) {
		tree := queue.Tree{Queues: []queue.Queue{queue.Root()}}
		tree.Queues[0].Limit = []queue.Amount{{Milli: 1000}}
		s := newSite(t, cluster.Uniform("site", 1, 1, cluster.Model{Name: "gpu", Speed: 1, Memory: 16 << 10}, 2), tree, build(t, "titan"))
		j := workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000}, Estimate: unit.Second, Checkpoint: workload.Checkpoint{OnRequest: true}}
		s.submit(j, 3000*unit.Second)
		s.pass(unit.Second)
		j.Share = 200
		s.submit(j, unit.Second)
		s.until(s.now.Add(unit.Second))
		s.restart()
		s.until(s.now.Add(65 * unit.Second))
		if p := s.e.View().Job(1).Phase; p != plan.Finished {
			t.Fatalf("the job of a second is %s after a minute, since the other was believed to take as long", p)
		}
	})
}

// TestRestartAsksNobody: what time alone makes a joint decider wish is not decided because of a restart.
func TestRestartAsksNobody(t *testing.T) {
	for _, name := range []string{"afs", "titan", "salus"} {
		t.Run(name, func(t *testing.T) {
			draws.Check(t, func(t *rapid.T) {
				s := newSite(t, cluster.Uniform("site", 1, 4, cluster.Model{Name: "gpu", Speed: 1, Memory: 16 << 10}, 2), queue.Tree{}, build(t, name))
				for range rapid.IntRange(2, 6).Draw(t, "jobs") {
					believed := unit.Duration(rapid.IntRange(10, 500).Draw(t, "believed")) * unit.Second
					s.submit(workload.Job{Estimate: believed, Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000, Memory: 4 << 10, Sizes: []int32{1, 2, 4}}, Checkpoint: workload.Checkpoint{OnRequest: true}}, 10*believed)
					s.until(s.now.Add(unit.Duration(rapid.IntRange(1, 600).Draw(t, "passes")) * unit.Second))
					s.restart()
				}
			})
		})
	}
}
