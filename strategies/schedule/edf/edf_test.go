package edf_test

import (
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/edf"
)

func TestConforms(t *testing.T) {
	for name, c := range map[string]edf.Config{"textbook": {}, "hopeless": {Hopeless: true}} {
		t.Run(name, func(t *testing.T) {
			scheduletest.Conform(t, func() schedule.Order { return edf.New(c) })
		})
	}
}

// one is a job of one device.
func one(name string, at, runs, deadline unit.Duration) scheduletest.Job {
	return scheduletest.Job{Job: workload.Job{Name: name, Submit: unit.Time(at), Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Deadline: deadline,
		Checkpoint: workload.Checkpoint{OnRequest: true}}, Truth: workload.Truth{Duration: runs}}
}

// TestOrder runs four jobs on one device: the long one can never be in time, and with
// the textbook's order it makes the next one late as well.
func TestOrder(t *testing.T) {
	const m = unit.Minute
	jobs := scheduletest.Jobs{
		one("free", 0, 30*m, 0), one("hopeless", m, 60*m, 40*m), one("near", 2*m, 10*m, 50*m), one("nearest", 3*m, 5*m, 10*m),
	}
	for _, c := range []struct {
		config edf.Config
		ends   [4]unit.Duration // after the beginning
	}{
		{edf.Config{}, [4]unit.Duration{105 * m, 66 * m, 76 * m, 8 * m}},
		{edf.Config{Hopeless: true}, [4]unit.Duration{45 * m, 105 * m, 17 * m, 8 * m}},
	} {
		o, err := scheduletest.Run(scheduletest.Config(scheduletest.Nodes(1, 1, 0), jobs, scheduletest.With(edf.New(c.config))))
		if err != nil {
			t.Fatal(err)
		}
		for i, j := range o.Jobs {
			if j.Outcome != report.Finished || unit.Duration(j.End) != c.ends[i] {
				t.Errorf("%+v: %s ends at %v, want %v", c.config, j.Name, unit.Duration(j.End), c.ends[i])
			}
		}
	}
}

// TestDeadlinePasses: a job that waits until it cannot be in time any more gives its
// rank up at that instant and not only at the next event.
func TestDeadlinePasses(t *testing.T) {
	const m = unit.Minute
	jobs := scheduletest.Jobs{one("first", 0, 20*m, 30*m), one("second", 0, 20*m, 35*m), one("free", m, 25*m, 0), one("late", 2*m, 3*m, 0)}
	o, err := scheduletest.Run(scheduletest.Config(scheduletest.Nodes(1, 1, 0), jobs, scheduletest.With(edf.New(edf.Config{Hopeless: true}))))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []unit.Duration{20 * m, 43 * m, 68 * m, 23 * m} {
		if end := unit.Duration(o.Jobs[i].End); end != want {
			t.Errorf("%s ends at %v, want %v", o.Jobs[i].Name, end, want)
		}
	}
}
