package reproduce

import (
	"os"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// packs fills a cluster with arrivals of an order.
func packs(t *testing.T, strategy string, c *cluster.Cluster, a *asked, seed uint64) map[string]float64 {
	t.Helper()
	x := &experiment{Claim: &Claim{}}
	x.RestartSec = 30
	by, err := x.packer(shuffled(c, seed), a, strategy, catalogue.Env{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	expected := make([]int64, len(a.shapes))
	for _, shape := range a.jobs {
		expected[shape]++
	}
	figures, err := fill(by, a.shapes, expected, arrivals(a.shapes, a.jobs, 1300*float64(len(c.Devices)), seed))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %v", strategy, figures)
	return figures
}

// TestPackMoving: the engine packs as the placer alone does while nobody is moved, and every move
// is paid for. With MUSTER_LONG it is an order of openb.
func TestPackMoving(t *testing.T) {
	c := cluster.Uniform("small", 10, 4, cluster.Model{Name: "gpu", Speed: 1}, 1)
	a := asked{shapes: []plan.Shape{{Gang: 1, Devices: 1, Share: 300, Models: 1}, {Gang: 1, Devices: 1, Share: 1000, Models: 1}, {Gang: 1, Devices: 4, Share: 1000, Models: 1}}, hours: 1}
	for i := range int32(100) {
		a.jobs = append(a.jobs, min(2, i%7/3))
	}
	if os.Getenv("MUSTER_LONG") != "" {
		var err error
		if c, err = resolveCluster("openb", sharedData()); err != nil {
			t.Skip(err)
		}
		if a, err = shapesOf("openb:"+sharedData()+"/openb2023/openb_pod_list_default.csv.gz", c); err != nil {
			t.Skip(err)
		}
	}
	without, with := packs(t, "bid-price", c, &a, 1), packs(t, "bid-price+small-moves", c, &a, 1)
	if with["moves"] == 0 && with["allocated_pct"] != without["allocated_pct"] {
		t.Errorf("nobody is moved, and %v %% are allocated instead of %v %%", with["allocated_pct"], without["allocated_pct"])
	}
	if moved, most := with["moves_device_s"], with["moves"]*unit.Minute.Seconds()*8; (moved > 0) != (with["moves"] > 0) || moved > most {
		t.Errorf("%v moves cost %v device-seconds", with["moves"], moved)
	}
}
