package igniter_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/serve/igniter"
)

// simple is a network that computes a request in 1 ms on a whole device and is slowed
// by a hundredth by another one.
var simple = sharing.Service{Name: "simple", K: [5]float64{0, 100, 0, 0, 0}, Cache: sharing.Line{At0: 10}, CacheSlowdown: .001}

// Where who runs keeps its share, a replica gets its least and the spare; the next goes beside it as long as both
// are in time, and to a fresh device otherwise. What is no service of a known model is
// not for this placer, and nothing is put beside it.
func TestPlace(t *testing.T) {
	c := igniter.Default()
	c.Models, c.SpareUnits, c.Repack = []sharing.Service{simple}, 1, false
	if err := strategy.Check(c); err != nil {
		t.Fatal(err)
	}
	s := plan.NewState(cluster.Uniform("one", 1, 2, cluster.Model{Name: "gpu", Speed: 1}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}
	s.Classes, s.Tenants = []string{"simple", "unknown"}, []string{"a"}
	s.Profiles = []plan.Profile{{RatePerSecMilli: 100_000, SLO: 80 * unit.Millisecond}, {RatePerSecMilli: 900_000, SLO: 80 * unit.Millisecond}}
	placer := igniter.New(c)
	place := func(what string, profile, class int32, device plan.DeviceID, share int32) {
		t.Helper()
		id := s.Admit(what, plan.Asked{Profile: profile, Class: class})
		found := placer.Place(s.View(), allocate.Need{Job: id, Workers: 1, Shape: &s.Shapes[0]}, 1, nil)
		if device == plan.None {
			if len(found) > 0 || placer.Takes(s.View(), id) && class == 1 {
				t.Errorf("%s: it was placed at %+v", what, found)
			}
			return
		}
		if len(found) != 1 || found[0].Slots[0].Device != device || found[0].Share.Milli != share {
			t.Fatalf("%s: found %+v, want device %d and %d thousandths", what, found, device, share)
		}
		d := s.Edit()
		run, why := d.Start(id, found[0].Slots, plan.DefaultTerms().WithShare(found[0].Share), plan.Reason{})
		if why.Code != plan.NoReason {
			t.Fatalf("%s: %s", what, why.Words(s.View()))
		}
		d.Commit()
		s.Dispatch(run)
		s.Began(run)
	}
	place("alone", 0, 0, 0, 125) // 4 requests in 40 ms take a tenth, and a unit
	place("beside it", 0, 0, 0, 150)
	place("of an unknown model", 0, 1, plan.None, 0)
	place("large", 1, 0, 1, 925)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	if err := strategy.Check(igniter.Default()); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*igniter.Config){func(c *igniter.Config) { c.Device.UnitPercent = 0 }, func(c *igniter.Config) { c.Device.MHzPerWatt = 1 },
		func(c *igniter.Config) { c.Models = []sharing.Service{simple, simple} }, func(c *igniter.Config) { c.Models = []sharing.Service{{Name: "nothing"}} }} {
		c := igniter.Default()
		if change(&c); strategy.Check(c) == nil {
			t.Errorf("%+v is not valid", c)
		}
	}
}
