package world_test

import (
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/world"
)

// TestRegrantLeavesTheLawUnsettled: a guest whose law is still to find where it holds has half
// of what its host leaves, also after its terms were looked at again.
func TestRegrantLeavesTheLawUnsettled(t *testing.T) {
	c := cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Speed: 1}, 1)
	w, s := world.New(c, world.Config{}), plan.NewState(c)
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}
	s.Profiles, s.Classes = []plan.Profile{{}}, []string{"net"}
	begin := func(name string, busy float64, guest plan.JobID) plan.RunID {
		id := s.Admit(name, plan.Asked{})
		w.Know(id, "net", world.Known{Truth: workload.Truth{Duration: unit.Hour, Busy: busy}})
		d, terms := s.Edit(), plan.DefaultTerms()
		if guest != plan.None {
			terms.Share.Guest, terms.Share.Bond = guest, plan.InGaps
		}
		run, why := d.Start(id, []plan.Slot{{Device: 0, Workers: 1}}, terms, plan.Reason{})
		if why.Code != plan.NoReason {
			t.Fatal(why.Words(s.View()))
		}
		d.Commit()
		s.Dispatch(run)
		s.Began(run)
		w.Begin(s.Now, s.View(), run)
		return run
	}
	begin("host", .4, plan.None)
	guest := begin("guest", 1, 0)
	whole := w.RateMicro(guest)
	for _, step := range []struct {
		what string
		do   func()
		want int64
	}{
		{"its law begins to settle", func() { w.Settle(s.Now, guest, true) }, whole / 2},
		{"its terms are looked at again", func() { w.Regrant(s.Now, s.View(), guest) }, whole / 2},
		{"its law has settled", func() { w.Settle(s.Now, guest, false) }, whole},
	} {
		if step.do(); whole == 0 || w.RateMicro(guest) != step.want {
			t.Errorf("%s: it goes at %d millionths, expected %d", step.what, w.RateMicro(guest), step.want)
		}
	}
}
