package advantage_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/advantage"
)

func TestConformance(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return advantage.New(advantage.Default()) })
}

// TestPlace: of two models, each worth what it says, the job that loses nothing on the
// slow one goes there, the other to the fast one, and one that would crawl waits.
func TestPlace(t *testing.T) {
	c := &cluster.Cluster{}
	fast, slow := c.AddModel(cluster.Model{Name: "fast", Speed: 1}), c.AddModel(cluster.Model{Name: "slow", Speed: 0.5})
	rack := c.AddRack(cluster.Rack{Name: "rack"})
	c.AddNode(cluster.Node{Name: "a", Rack: rack, Model: fast}, 1)
	c.AddNode(cluster.Node{Name: "b", Rack: rack, Model: slow}, 1)
	for _, x := range []struct {
		name   string
		onSlow int64
		full   bool // the fast node is taken
		want   plan.NodeID
	}{{"loses nothing", 950_000, false, 1}, {"loses much", 400_000, false, 0}, {"loses much and the fast one is taken", 400_000, true, 1},
		{"would crawl", 200_000, true, plan.None}} {
		s := plan.NewState(c)
		s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 3}}
		s.Profiles = []plan.Profile{{Menu: plan.Menu{{Model: fast, Workers: 1, RateMicro: 1_000_000}, {Model: slow, Workers: 1, RateMicro: x.onSlow}}}}
		s.Admit("other", plan.Asked{Profile: plan.None})
		s.Admit("job", plan.Asked{Profile: 0})
		if x.full {
			d := s.Edit()
			if _, why := d.Start(0, []plan.Slot{{Node: 0, Device: plan.None, Workers: 1}}, plan.DefaultTerms(), plan.Reason{}); why.Code != plan.NoReason {
				t.Fatal(why)
			}
			d.Commit()
		}
		got := plan.NodeID(plan.None)
		for _, found := range advantage.New(advantage.Default()).Place(s.View(), allocate.Need{Job: 1, Workers: 1, Shape: &s.Shapes[0]}, 1, nil) {
			got = found.Slots[0].Node
		}
		if got != x.want {
			t.Errorf("a job that %s is placed on node %d, want %d", x.name, got, x.want)
		}
	}
}
