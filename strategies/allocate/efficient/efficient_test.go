package efficient_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/efficient"
)

func TestWant(t *testing.T) {
	s := plan.NewState(cluster.Uniform("one", 2, 8, cluster.Model{Name: "gpu", Speed: 1}, 2))
	s.Shapes = []plan.Shape{{Gang: 2, Devices: 1, Share: 1000, Models: 1, Sizes: [8]int32{1, 4, 8}}, {Gang: 3, Devices: 1, Share: 1000, Models: 1}}
	s.Profiles = []plan.Profile{{Menu: plan.Menu{{Model: plan.None, Workers: 1, RateMicro: 500_000}, {Model: plan.None, Workers: 2, RateMicro: 900_000},
		{Model: plan.None, Workers: 4, RateMicro: 1_100_000}, {Model: plan.None, Workers: 8, RateMicro: 1_200_000}}}}
	scales := s.Admit("scales", plan.Asked{Profile: plan.None})
	poorly := s.Admit("poorly", plan.Asked{Profile: 0})
	rigid := s.Admit("rigid", plan.Asked{Shape: 1, Profile: plan.None})
	sizer := efficient.New(efficient.Default())
	for _, x := range []struct {
		job    plan.JobID
		active int
		want   int32
	}{{scales, 1, 8}, {scales, 4, 4}, {scales, 16, 1}, {scales, 100, 1}, {poorly, 1, 2}, {poorly, 16, 1}, {rigid, 1, 3}} {
		if got := sizer.Want(s.View(), x.job, allocate.Crowd{Active: x.active, Devices: 16}); got != x.want {
			t.Errorf("job %d among %d wants %d workers, expected %d", x.job, x.active, got, x.want)
		}
	}
}
