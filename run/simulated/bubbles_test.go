package simulated_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// TestBubbles: what a guest has of a host's plan is bounded by what that truly leaves, whatever
// was believed of it: a fifth of the time in windows of 20 ms, of which handing over takes a
// tenth. The host waits as long in each. The books say how much of the idle time was used, and
// how much longer the host held its device.
func TestBubbles(t *testing.T) {
	menu := func(idleMicro int64) []workload.Offer {
		spare := workload.Spare{IdleMicro: idleMicro, Window: 20 * unit.Millisecond}
		return []workload.Offer{{Model: "gpu", Workers: 1, Rate: 1, Plan: workload.Spread{Name: "tp1 pp2", Shape: "{}", Step: unit.Second, Spare: spare}}}
	}
	var planned int32
	play := func(beside bool) report.Result {
		jobs := scheduletest.Jobs{job(1000, func(j *workload.Job, t *workload.Truth) {
			j.Name, j.Menu, t.Menu = "host", menu(400_000), menu(200_000)
		}), job(70, func(j *workload.Job, _ *workload.Truth) { j.Name, j.Opportunistic = "guest", true })}
		s := act(0, starts(0, func(t *plan.Terms) { t.Plan.ID = planned }))
		s.acts[0] = func(d *plan.Draft) {
			planned = d.PlanID(plan.Pipeline{Schedule: "tp1 pp2", JSON: []byte("{}"), Spare: jobs[0].Job.Menu[0].Plan.Spare})
			starts(0, func(t *plan.Terms) { t.Plan.ID = planned })(d)
		}
		if beside {
			s = s.then(1, starts(1, func(t *plan.Terms) { t.Share.Guest = 0 }))
		} else {
			s = s.then(2000, starts(1, nil))
		}
		config := scheduletest.Config(oneDevice(), jobs, scheduletest.With(fifo.Order{}))
		config.Scheduler, config.Prices = s, simulated.Prices{Switch: 2 * unit.Millisecond}
		o, err := scheduletest.Run(config)
		if err != nil || !o.Balanced {
			t.Fatalf("%v: %v", err, o.Notes)
		}
		if want := 2070.; !beside && math.Abs(o.MakespanSec-want) > 1e-3 {
			t.Errorf("one after the other take %.3f s, want %.0f", o.MakespanSec, want)
		}
		if beside {
			ends(t, "the guest", o.Jobs[1], 1+70/(.2*.9))
		}
		return o.Result
	}
	alone, r := play(false), play(true)
	if alone.PlannedDeviceSec != 1000 || math.Abs(alone.BubbleDeviceSec-200) > 1e-6 || alone.FilledDeviceSec != 0 || alone.SlowedDeviceSec != 0 {
		t.Errorf("alone: %+v", alone.Ledger)
	}
	// The guest is there for 388.9 s: in each of their windows, one every 100 ms, the host waits 2 ms,
	// and the law costs it no more than half a hundredth besides.
	longer := r.PlannedDeviceSec - 1000
	if math.Abs(r.FilledDeviceSec-70) > 1e-3 || math.Abs(r.SlowedDeviceSec-longer) > 1e-3 || longer < .0196*388.9 || longer > .025*388.9 {
		t.Errorf("beside a guest that computes 70 s the host holds its device %.3f s longer: %+v", longer, r.Ledger)
	}
	if math.Abs(r.BubbleDeviceSec-.2*r.PlannedDeviceSec) > 1e-3 {
		t.Errorf("%.3f of %.3f device seconds are idle, want a fifth", r.BubbleDeviceSec, r.PlannedDeviceSec)
	}
}
