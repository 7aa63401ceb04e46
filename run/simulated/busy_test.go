package simulated_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/strategies/allocate/antman"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// A run that is carried over from one day into the next was busy in both, and in each of
// them as long as it computed there.
func TestCarriedOver(t *testing.T) {
	jobs := scheduletest.Jobs{{Job: workload.Job{Name: "long", Resources: workload.Resources{Gang: 2, Devices: 1, Share: unit.Whole}}, Truth: workload.Truth{Duration: 40 * unit.Hour, Busy: .5}}}
	config := scheduletest.Config(scheduletest.Nodes(1, 2, 0), jobs, scheduletest.With(fifo.Order{}))
	midnight := unit.Time(24 * unit.Hour)
	config.Until = midnight
	first, err := simulated.New(config)
	for more := true; more && err == nil; {
		more, err = first.Advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	known := first.Known(0)
	config.From, config.At, config.Cluster = first.State().Copy(), midnight, nil
	config.Known, config.Until, config.Jobs = func(plan.View, plan.JobID) world.Known { return known }, 0, scheduletest.Jobs{}.Source()
	second, err := simulated.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, hours := range []unit.Duration{0, 1, 15} {
		at, want := midnight.Add(hours*unit.Hour), 3600*float64(hours)
		if got := second.BusySec(at, 0); math.Abs(got-want) > 1e-6 || math.Abs(second.GrantedSec(at)-2*want) > 1e-6 {
			t.Errorf("%d hours after midnight %.0f device seconds are booked as busy and %.0f as granted, want %.0f and %.0f", hours, got, second.GrantedSec(at), want, 2*want)
		}
	}
	for more := true; more && err == nil; {
		more, err = second.Advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := second.Result()
	if err != nil || !r.Balanced || math.Abs(r.BusyDeviceSec-16*3600) > 1e-6 || r.Finished != 1 {
		t.Errorf("%v, balanced %v, %.0f s busy in 16 hours of two devices at half: %+v", err, r.Balanced, r.BusyDeviceSec, r.Ledger)
	}
}

// A host that is thought to use half of its device and uses .9 of it, and a guest that would
// use it whole, of whom neither slows the other, do not make the device more than busy;
// who is alone again counts in full.
func TestNoDeviceIsMoreThanBusy(t *testing.T) {
	jobs := scheduletest.Jobs{
		{Job: workload.Job{Name: "host", Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole},
			Traits: workload.Traits{Phase: workload.Phase{Compute: 1, Communicate: 1}}}, Truth: workload.Truth{Duration: 10 * unit.Hour, Busy: .9}},
		{Job: workload.Job{Name: "guest", Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole},
			Traits: workload.Traits{Opportunistic: true}, Submit: 1}, Truth: workload.Truth{Duration: 2 * unit.Hour}}}
	parts := scheduletest.With(fifo.Order{})
	parts.Placer = antman.New(antman.Config{BusyBelow: 800})
	config := scheduletest.Config(scheduletest.Nodes(1, 1, 0), jobs, parts)
	config.World.Speeds = friendly{}
	r, err := simulated.Run(t.Context(), config)
	if err != nil || !r.Balanced || r.Finished != 2 || r.MakespanSec != 36_000 {
		t.Fatalf("%v, balanced %v, all is done after %.0f s: %v", err, r.Balanced, r.MakespanSec, r.Notes)
	}
	if want := 3600 * (2 + 8*.9); math.Abs(r.BusyDeviceSec-want) > .01 {
		t.Errorf("%.2f device seconds busy, want %.0f", r.BusyDeviceSec, want)
	}
}

// friendly is a nature in which nobody disturbs a neighbour.
type friendly struct{}

func (friendly) Rate(string, string, int, int) (float64, bool) { return 0, false }

func (friendly) Pair(string, string, string) (float64, float64, bool) { return 1, 1, true }
