package strict_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/flow/strict"
)

func classOf(c strict.Config, shape plan.Shape, job plan.Job) int32 {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{shape}
	job.Traffic = 100
	id := s.Admit("job", job.Asked)
	s.Jobs[id].Estimate, s.Jobs[id].Attained = job.Estimate, job.Attained
	return strict.New(c).Traffic(s.View(), id).Class
}

// TestBySize: the class is the number of bounds, in geometric steps, that the device
// time left does not stay below.
func TestBySize(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		gang := rapid.Int32Range(1, 64).Draw(t, "gang")
		estimate := unit.Duration(rapid.Int64Range(1, int64(100*unit.Day)).Draw(t, "estimate"))
		executed := unit.Duration(rapid.Int64Range(0, int64(estimate)-1).Draw(t, "executed"))
		got := classOf(strict.Default(), plan.Shape{Gang: gang, Devices: 1, Share: 1000}, plan.Job{Estimate: estimate, Attained: plan.Attained{Executed: executed}})
		size := (estimate - executed).Seconds() * float64(gang)
		want := int32(0)
		for want < 7 && size >= 600*math.Pow(4, float64(want)) {
			want++
		}
		if got != want {
			t.Fatalf("%g device-seconds are in class %d, want %d", size, got, want)
		}
	})
	if got := classOf(strict.Default(), plan.Shape{Gang: 1, Devices: 1, Share: 1000}, plan.Job{}); got != 7 {
		t.Errorf("a job of unknown size is in class %d, want the last", got)
	}
}

func TestByPriority(t *testing.T) {
	c := strict.Default()
	c.By = strict.ByPriority
	for priority, want := range map[int32]int32{math.MinInt32: 7, -4: 7, -3: 7, -1: 5, 0: 4, 1: 3, 4: 0, 5: 0, math.MaxInt32: 0} {
		if got := classOf(c, plan.Shape{Gang: 1}, plan.Job{Asked: plan.Asked{Priority: priority}}); got != want {
			t.Errorf("priority %d is in class %d, want %d", priority, got, want)
		}
	}
}

// TestSilent: a job that sends nothing is in no class.
func TestSilent(t *testing.T) {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000}}
	if got := strict.New(strict.Default()).Traffic(s.View(), s.Admit("job", plan.Asked{})); got != (plan.TrafficTerms{}) {
		t.Errorf("its terms are %+v", got)
	}
}

func TestValidate(t *testing.T) {
	for _, edit := range []func(c *strict.Config){
		func(c *strict.Config) { c.By = "age" }, func(c *strict.Config) { c.Ratio = 1 },
		func(c *strict.Config) { c.FirstDeviceSec = 0 }, func(c *strict.Config) { c.FirstDeviceSec = math.NaN() },
	} {
		c := strict.Default()
		edit(&c)
		if strategy.Check(c) == nil {
			t.Errorf("%v is taken for valid", c)
		}
	}
}
