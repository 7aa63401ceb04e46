package plane

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
)

// deaf takes orders and does nothing.
type deaf struct{}

func (deaf) Recover([]run.Order, func(engine.Event)) {}
func (deaf) Order(run.Order)                         {}

// TestImage begins with a state from another store: the strategy whose memory is in it
// decides on where no other is named, and another finds nothing of that memory.
func TestImage(t *testing.T) {
	state := plan.NewState(cluster.Uniform("test", 1, 8, cluster.Model{Name: "gpu", Memory: 1 << 10}, 1))
	state.Tenants, state.Users, state.Classes = []string{"t"}, []string{"u"}, []string{""}
	state.Shapes = []plan.Shape{{Gang: 9, Devices: 1, Share: 1000, Models: 1}}
	state.Admit("waits", plan.Asked{Profile: plan.None})
	state.Jobs[0].Memo = [2]int64{3, 4}
	var b bytes.Buffer
	if err := state.Save(&b); err != nil {
		t.Fatal(err)
	}
	spec := &workload.Job{Name: "waits", Resources: workload.Resources{Gang: 9, Devices: 1, Share: unit.Whole}}
	for _, c := range []struct {
		named, decides string
		memo           [2]int64
	}{{"", "tiresias", [2]int64{3, 4}}, {"tiresias", "tiresias", [2]int64{3, 4}}, {"fifo", "fifo", [2]int64{}}} {
		t.Run(c.named, func(t *testing.T) {
			var named catalogue.Composition
			if c.named != "" {
				var err error
				if named, err = catalogue.ResolveLive(c.named); err != nil {
					t.Fatal(err)
				}
			}
			clock := func() unit.Time { return 1000 }
			journal, err := store.Open(t.TempDir(), store.Options{Now: clock})
			if err != nil {
				t.Fatal(err)
			}
			defer journal.Close()
			p, err := Open(Config{Cluster: state.Cluster, Strategy: named, Policy: engine.DefaultPolicy(), Journal: journal, Driver: deaf{}, Now: clock,
				Log: slog.New(slog.DiscardHandler), Image: &engine.Image{Strategy: "tiresias", State: b.Bytes(), Specs: []*workload.Job{spec}}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.step(nil); err != nil {
				t.Fatal(err)
			}
			if got := p.engine.View().Job(0).Memo; got != c.memo || p.StrategyText() != c.decides || p.jobs[0].Spec.Name != "waits" {
				t.Errorf("the memo is %v, %s decides", got, p.StrategyText())
			}
		})
	}
}
