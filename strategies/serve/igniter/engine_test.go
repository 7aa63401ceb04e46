package igniter_test

import (
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/serve/igniter"
)

// TestRepacks: in the whole cycle, checked at every step, the example's services have the
// published shares on one device, whichever comes first, and where all come at once:
// those that run get others, and who comes waits until those before him are there.
func TestRepacks(t *testing.T) {
	law := v100(t)
	services := []workload.Job{
		{Name: "alexnet", Traits: workload.Traits{Class: "alexnet", Service: workload.Service{RatePerSec: 500, SLO: 15 * unit.Millisecond}}},
		{Name: "resnet50", Traits: workload.Traits{Class: "resnet50", Service: workload.Service{RatePerSec: 400, SLO: 40 * unit.Millisecond}}},
		{Name: "vgg19", Traits: workload.Traits{Class: "vgg19", Service: workload.Service{RatePerSec: 200, SLO: 60 * unit.Millisecond}}},
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, gap := range []unit.Duration{unit.Minute, 0} {
			for _, devices := range []int{1, 3} {
				var jobs scheduletest.Jobs
				for i, at := range order {
					j := services[at]
					j.Gang, j.Devices, j.Share, j.Submit = 1, 1, unit.Whole, unit.Time(0).Add(unit.Duration(i)*gap)
					jobs = append(jobs, scheduletest.Job{Job: j, Truth: workload.Truth{Duration: unit.Day}})
				}
				parts := scheduletest.With(fifo.Order{})
				parts.Placer = igniter.New(igniter.Default().Knowing(law))
				config := scheduletest.Config(cluster.Uniform("v100s", devices, 1, cluster.Model{Name: "v100", Memory: 16 << 10, Speed: 1}, 1), jobs, parts)
				config.Until, config.Check, config.Prices.Start = unit.Time(unit.Hour), true, 6*unit.Second
				repacked(t, config)
			}
		}
	}
}

// repacked runs the services and looks at their shares.
func repacked(t *testing.T, config simulated.Config) {
	t.Helper()
	s, err := simulated.New(config)
	for more := true; more && err == nil; {
		more, err = s.Advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	v, want, held := s.State().View(), map[string]int32{"alexnet": 100, "resnet50": 300, "vgg19": 375}, 0
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Run == plan.None {
			continue
		}
		v.GrantsOf(v.Job(id).Run, func(g plan.Grant) {
			if held++; g.Device != 0 || g.Reserve != want[v.Name(id)] {
				t.Errorf("%s has %d thousandths of device %d, want %d of 0", v.Name(id), g.Reserve, g.Device, want[v.Name(id)])
			}
		})
	}
	if held != len(want) {
		t.Errorf("%d of the services have a place", held)
	}
}
