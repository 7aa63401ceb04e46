package world_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/world"
)

// TestServicesAnswer: two services on one device answer as the true law says, from the
// moment at which the second begins until it ends, and nobody's life is longer for it;
// one that rests answers nobody.
func TestServicesAnswer(t *testing.T) {
	law := &sharing.Law{Device: sharing.Device{MHz: 1000, PowerW: 300, BytesPerMs: 1e7, UnitPercent: 1},
		Services: []sharing.Service{{Name: "net", K: [5]float64{0, 100, 0, 0, 0}, Cache: sharing.Line{At0: 10}, CacheSlowdown: .01}}}
	c := cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Speed: 1}, 1)
	last := map[plan.JobID]world.Answers{}
	w := world.New(c, world.Config{Services: map[string]*sharing.Law{"gpu": law},
		Answers: func(_ unit.Time, job plan.JobID, a world.Answers) { last[job] = a }})
	s := plan.NewState(c)
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}
	s.Classes = []string{"net"}
	s.Profiles = []plan.Profile{{RatePerSecMilli: 100_000, SLO: 80 * unit.Millisecond}}
	begin := func(name string) plan.RunID {
		id := s.Admit(name, plan.Asked{})
		w.Know(id, "net", world.Known{Truth: workload.Truth{Duration: unit.Hour}})
		d, terms := s.Edit(), plan.DefaultTerms()
		terms.Share.Milli, terms.Share.Ceiling, terms.Share.Batch, terms.Share.Fence = 500, 500, 2, plan.MPS
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
	takes := func(when string, job plan.JobID, sec ...float64) {
		t.Helper()
		a := last[job]
		if a.Largest() != len(sec) {
			t.Fatalf("%s: batches up to %d, want %d", when, a.Largest(), len(sec))
		}
		for i, want := range sec {
			if math.Abs(a.Takes[i+1]-want) > 1e-9 || math.Abs(a.Keeps[i+1]-want) > 1e-9 {
				t.Errorf("%s: %d take %g s and keep it busy for %g, want %g", when, i+1, a.Takes[i+1], a.Keeps[i+1], want)
			}
		}
	}
	first := begin("first") // 100 percent-ms for each request, on half a device
	takes("alone", 0, .002, .004)
	second := begin("second") // which uses a tenth of the cache
	takes("beside another", 0, .0022, .0044)
	takes("beside another", 1, .0022, .0044)
	if end, _ := w.Ends(first); end != unit.Time(0).Add(unit.Hour) {
		t.Errorf("it is up until %s", unit.Duration(end))
	}
	w.Pause(unit.Time(unit.Minute), second)
	takes("beside one that rests", 0, .002, .004)
	takes("at rest", 1)
	w.Unpause(unit.Time(unit.Minute), second)
	w.End(unit.Time(2*unit.Minute), s.View(), second, true)
	takes("alone again", 0, .002, .004)
	takes("ended", 1)
}
