package pipeswitch_test

import (
	"math"
	"slices"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
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
	declared, layered, unknown := s.Admit("declared", plan.Asked{Profile: 0}), s.Admit("layered", plan.Asked{Profile: 1}), s.Admit("unknown", plan.Asked{Profile: plan.None})
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

// The groups are the best ones, each layer's own or all in one, as is asked; what is in them
// is brought at the price that these have.
func TestGroups(t *testing.T) {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Memory: 16 << 10, Speed: 1}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}
	layer := plan.ProfileLayer{Forward: 2 * unit.Millisecond, ParamKiB: 12e6 >> 10} // a millisecond over the link
	s.Profiles = []plan.Profile{{Layers: []plan.ProfileLayer{layer, layer, layer}}}
	job := s.Admit("layered", plan.Asked{})
	for groups, want := range map[string]struct {
		ends []int32
		ms   float64
	}{"best": {[]int32{1, 3}, 1.06}, "each": {[]int32{1, 2, 3}, 1.08}, "one": {[]int32{3}, 3.04}} {
		c := pipeswitch.Default()
		c.Groups = groups
		p := pipeswitch.New(c)
		if ends := p.Groups(s.View(), job); !slices.Equal(ends, want.ends) {
			t.Errorf("%s: groups end at %v, want %v", groups, ends, want.ends)
		}
		if ms := 1000 * p.Switch(s.View(), plan.None, job).Seconds(); math.Abs(ms-want.ms) > .002 {
			t.Errorf("%s: it takes %g ms, want %g", groups, ms, want.ms)
		}
	}
}

// Brute force finds no better groups.
func TestMeasure(t *testing.T) {
	if m := pipeswitch.Measure(1); m["missed_optima"] != 0 {
		t.Errorf("got %v", m)
	}
}

func TestConfig(t *testing.T) {
	for _, change := range []func(*pipeswitch.Config){func(c *pipeswitch.Config) { c.BandwidthGBps = 0 }, func(c *pipeswitch.Config) { c.TransferUs = -1 },
		func(c *pipeswitch.Config) { c.HandOverUs = -1 }, func(c *pipeswitch.Config) { c.StopMs = math.NaN() }, func(c *pipeswitch.Config) { c.Groups = "few" }} {
		c := pipeswitch.Default()
		if change(&c); strategy.Check(pipeswitch.Default()) != nil || strategy.Check(c) == nil {
			t.Errorf("validation of %+v", c)
		}
	}
}
