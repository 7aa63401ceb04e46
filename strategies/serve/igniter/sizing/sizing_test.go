package sizing_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/strategies/serve/igniter/sizing"
)

// half is a device and a service that takes 100 ms over its share in percent for a request,
// and half as long again beside another of its kind.
func half() (*sharing.Device, *sharing.Service) {
	d := &sharing.Device{MHz: 1000, PowerW: 1e9, BytesPerMs: 1e9, UnitPercent: 2.5}
	return d, &sharing.Service{Name: "half", K: [5]float64{0, 100, 0, 0, 0}, Cache: sharing.Line{At0: 50}, CacheSlowdown: .01}
}

// TestBound: 20 of the 40 ms are for computing a batch of one or two.
func TestBound(t *testing.T) {
	d, m := half()
	for _, test := range []struct {
		rate  float64
		batch int
		share float64
	}{{50, 1, 5}, {51, 2, 10}, {100, 2, 10}} {
		batch, share := sizing.Bound(d, sizing.Workload{Model: m, SLOMs: 40, RatePerSec: test.rate})
		if batch != test.batch || share != test.share {
			t.Errorf("%g a second: batch %d, share %g, expected %d and %g", test.rate, batch, share, test.batch, test.share)
		}
	}
	m.GapMs = 20
	if _, share := sizing.Bound(d, sizing.Workload{Model: m, SLOMs: 40, RatePerSec: 50}); !math.IsInf(share, 1) {
		t.Errorf("with no time left to compute the share is %g, expected an infinite one", share)
	}
}

// TestPacker: two that disturb each other need half as much again to be in time, in units of
// 2.5 %; who is blind gives them what they need alone; and 14 do not fit.
func TestPacker(t *testing.T) {
	d, m := half()
	work := sizing.Workload{Model: m, SLOMs: 40, RatePerSec: 50}
	batch, share := sizing.Bound(d, work)
	one := sizing.Placed{Tenant: sharing.Tenant{Model: m, Batch: batch, SharePercent: share}}
	works := []sizing.Workload{work}
	for _, test := range []struct {
		name  string
		blind bool
		there int
		total float64
		ok    bool
	}{{"alone", false, 0, 5, true}, {"two", false, 1, 15, true}, {"two, blind", true, 1, 10, true}, {"too many, blind", true, 20, 105, false}} {
		p := sizing.Packer{Blind: test.blind}
		var on []sizing.Placed
		for range test.there {
			on = append(on, one)
		}
		total, ok := p.Fit(d, works, on, one)
		if total != test.total || ok != test.ok || len(p.Try) != test.there+1 {
			t.Errorf("%s: %g %% for %d (%t), expected %g (%t)", test.name, total, len(p.Try), ok, test.total, test.ok)
		}
	}
}
