package igniter_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule/scheduletest"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/serve/igniter"
)

// TestRepacks: in the whole cycle, checked at every step, the example's services have the
// published shares on one device, whichever comes first: those that run get others.
func TestRepacks(t *testing.T) {
	v100(t) // skips where the data is missing
	fitted, err := igniter.Fitted(func(path string) (io.ReadCloser, error) {
		return os.Open(filepath.Join("..", "..", "..", "..", "shared", "data", filepath.FromSlash(path)))
	})
	if err != nil {
		t.Fatal(err)
	}
	fitted.Repack = true
	services := []workload.Job{
		{Name: "alexnet", Class: "alexnet", Service: workload.Service{RatePerSec: 500, SLO: 15 * unit.Millisecond}},
		{Name: "resnet50", Class: "resnet50", Service: workload.Service{RatePerSec: 400, SLO: 40 * unit.Millisecond}},
		{Name: "vgg19", Class: "vgg19", Service: workload.Service{RatePerSec: 200, SLO: 60 * unit.Millisecond}},
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		var jobs scheduletest.Jobs
		for i, at := range order {
			j := services[at]
			j.Gang, j.Devices, j.Share, j.Submit = 1, 1, unit.Whole, unit.Time(i)*unit.Time(unit.Minute)
			jobs = append(jobs, scheduletest.Job{Job: j, Truth: workload.Truth{Duration: unit.Day}})
		}
		parts := scheduletest.With(fifo.Order{})
		parts.Placer = igniter.New(fitted)
		config := scheduletest.Config(cluster.Uniform("v100s", 3, 1, cluster.Model{Name: "v100", Memory: 16 << 10, Speed: 1}, 1), jobs, parts)
		config.Until, config.Check = unit.Time(unit.Hour), true
		s, err := simulated.New(config)
		for more := true; more && err == nil; {
			more, err = s.Advance()
		}
		if err != nil {
			t.Fatal(err)
		}
		v, want := s.State().View(), map[string]int32{"alexnet": 100, "resnet50": 300, "vgg19": 375}
		for id := range plan.JobID(v.Jobs()) {
			v.GrantsOf(v.Job(id).Run, func(g plan.Grant) {
				if g.Device != 0 || g.Reserve != want[v.Name(id)] {
					t.Errorf("order %v: %s has %d thousandths of device %d, want %d of 0", order, v.Name(id), g.Reserve, g.Device, want[v.Name(id)])
				}
			})
		}
	}
}
