package pipeswitch_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/pipeswitch"
)

// A switch is what the leaving job saves and what of the newcomer does not hide; 12 GB
// per second are 87 ms for a GiB each way.
func TestSwitch(t *testing.T) {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Memory: 16 << 10, Speed: 1}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Memory: 4 << 10, Models: 1}}
	s.Profiles = []plan.Profile{{Persistent: 1 << 10}, {Layers: []plan.ProfileLayer{{Forward: 50 * unit.Millisecond, ParamKiB: 512 << 10}, {Forward: 50 * unit.Millisecond, ParamKiB: 512 << 10}}}}
	declared, layered, unknown := s.Admit("declared", plan.Job{Profile: 0}), s.Admit("layered", plan.Job{Profile: 1}), s.Admit("unknown", plan.Job{Profile: plan.None})
	c := pipeswitch.Default()
	c.TransferUs, c.HandOverUs, c.StopMs = 0, 0, 0
	p := pipeswitch.New(c)
	gib := 1e3 * float64(1<<30) / 12e9
	for _, test := range []struct {
		from, to plan.JobID
		ms       float64
	}{{plan.None, plan.None, 0}, {declared, plan.None, gib}, {plan.None, declared, gib}, {declared, layered, gib + gib/2}, {plan.None, unknown, 4 * gib}, {layered, layered, gib + gib/2}} {
		if got := 1000 * p.Switch(s.View(), test.from, test.to).Seconds(); math.Abs(got-test.ms) > .01 {
			t.Errorf("from %d to %d takes %g ms, want %g", test.from, test.to, got, test.ms)
		}
	}
	c.StopMs = 3
	if got := pipeswitch.New(c).Switch(s.View(), declared, plan.None); math.Abs(1000*got.Seconds()-gib-3) > .01 {
		t.Errorf("stopping takes %s", got)
	}
}

// The catalogue's acceptance: never worse than no overlap, layer by layer or one group,
// as good as brute force, and within 2 ms of what cannot be hidden.
func TestMeasure(t *testing.T) {
	m := pipeswitch.Measure(1)
	t.Log(m)
	if m["best_ms"] > min(m["per_layer_ms"], m["one_group_ms"], m["no_overlap_ms"]) || m["missed_optima"] != 0 || m["above_bound_ms"] > 2 ||
		math.Abs(m["parameters_m"]-60) > 1 {
		t.Errorf("got %v", m)
	}
}

func TestConfig(t *testing.T) {
	for _, change := range []func(*pipeswitch.Config){func(c *pipeswitch.Config) { c.BandwidthGBps = 0 }, func(c *pipeswitch.Config) { c.TransferUs = -1 },
		func(c *pipeswitch.Config) { c.HandOverUs = -1 }, func(c *pipeswitch.Config) { c.StopMs = math.NaN() }} {
		c := pipeswitch.Default()
		if change(&c); pipeswitch.Default().Validate() != nil || c.Validate() == nil {
			t.Errorf("validation of %+v", c)
		}
	}
}
