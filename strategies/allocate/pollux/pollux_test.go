package pollux_test

import (
	"fmt"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/pollux"
	"github.com/musterdl/muster/strategies/profile/declared"
)

// quick searches less, which is enough for tests of a few devices.
func quick() pollux.Config {
	c := pollux.Default()
	c.Population, c.Generations = 6, 5
	return c
}

func TestConforms(t *testing.T) {
	t.Run("genetic", func(t *testing.T) {
		scheduletest.ConformJoint(t, func() allocate.Joint { return pollux.New(quick()) })
	})
	t.Run("greedy", func(t *testing.T) {
		scheduletest.ConformJoint(t, func() allocate.Joint {
			c := quick()
			c.GreedyAbove = 0
			return pollux.New(c)
		})
	})
}

// elastic is a job of up to four workers whose rate on n is that of the curve.
func elastic(name string, curve ...float64) workload.Job {
	j := workload.Job{Name: name, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Checkpoint: workload.Checkpoint{OnRequest: true}}
	for i, rate := range curve {
		j.Sizes = append(j.Sizes, int32(i)+1)
		j.Menu = append(j.Menu, workload.Offer{Workers: int32(i) + 1, Rate: rate})
	}
	return j
}

// decide answers one question about waiting jobs on one node of 4.
func decide(t *testing.T, c pollux.Config, jobs ...workload.Job) ([]allocate.Wish, *pollux.Policy) {
	t.Helper()
	s := plan.NewState(cluster.Uniform("one", 1, 4, cluster.Model{Name: "gpu", Speed: 1}, 1))
	var ids []plan.JobID
	for i, j := range jobs {
		shape := plan.Shape{Gang: j.Gang, Devices: 1, Share: 1000, Models: ^uint64(0)}
		copy(shape.Sizes[:], j.Sizes)
		s.Shapes = append(s.Shapes, shape)
		s.Profiles = append(s.Profiles, plan.Profile{Menu: plan.MenuOf(s.Cluster, j.Menu)})
		ids = append(ids, s.Admit(j.Name, plan.Asked{Shape: int32(i), Profile: int32(i)}))
	}
	p := pollux.New(c)
	reply, err := p.Solve(p.Question(s.View(), ids))
	if err != nil {
		t.Fatal(err)
	}
	p.Learn(reply)
	if p.Question(s.View(), ids) != nil {
		t.Error("it asks twice in an interval")
	}
	wishes, again := p.Wishes(s.View(), ids, nil)
	if again != s.View().Now().Add(c.Interval) {
		t.Errorf("decides again at %v", again)
	}
	return wishes, p
}

func TestShares(t *testing.T) {
	linear := []float64{1, 2, 3, 4}
	flat := []float64{1, 1.05, 1.1, 1.1}
	for _, c := range []struct {
		name string
		jobs []workload.Job
		want []int32
	}{
		{"alone", []workload.Job{elastic("a", linear...)}, []int32{4}},
		{"equals share", []workload.Job{elastic("a", linear...), elastic("b", linear...)}, []int32{2, 2}},
		{"who scales has more", []workload.Job{elastic("a", linear...), elastic("b", flat...)}, []int32{3, 1}},
		{"everybody has one", []workload.Job{elastic("a", linear...), elastic("b", linear...), elastic("c", linear...), elastic("d", flat...)}, []int32{1, 1, 1, 1}},
		{"legal sizes", []workload.Job{{Name: "a", Resources: workload.Resources{Gang: 2, Devices: 1}}, {Name: "b", Resources: workload.Resources{Gang: 2, Devices: 1}}}, []int32{2, 2}},
	} {
		for _, greedy := range []bool{false, true} {
			config, want := quick(), "genetic"
			if greedy {
				config.GreedyAbove, want = 0, "greedy"
			}
			wishes, p := decide(t, config, c.jobs...)
			for i, w := range wishes {
				if w.Workers != c.want[i] {
					t.Errorf("%s, %s: job %d has %d workers, expected %d", c.name, p.Search(), i, w.Workers, c.want[i])
				}
			}
			if p.Search() != want {
				t.Errorf("searched %s, expected %s", p.Search(), want)
			}
		}
	}
}

// TestRemembers: what was recalled wishes the same.
func TestRemembers(t *testing.T) {
	_, p := decide(t, quick(), elastic("a", 1, 2, 3, 4))
	other := pollux.New(quick())
	if err := other.Recall(p.Remember()); err != nil {
		t.Fatal(err)
	}
	if string(other.Remember()) != string(p.Remember()) {
		t.Errorf("recalled %s, remembered %s", other.Remember(), p.Remember())
	}
	if err := other.Recall([]byte("{")); err == nil {
		t.Error("half a memory is recalled")
	}
}

// TestReconfigurationCosts: a history of elastic jobs ends, the later the dearer
// restarts are, and resizing does not run away: at any cost jobs are moved a few times.
func TestReconfigurationCosts(t *testing.T) {
	var jobs scheduletest.Jobs
	for i := range 24 {
		j := elastic(fmt.Sprint("job", i), 1, 1.9, 2.7, 3.4)
		j.Submit = unit.Time(i) * unit.Time(4*unit.Minute)
		jobs = append(jobs, scheduletest.Job{Job: j, Truth: workload.Truth{Duration: unit.Duration(10+7*(i%5)) * unit.Minute}})
	}
	last := 0.0
	for _, cost := range []unit.Duration{2 * unit.Second, 30 * unit.Second, 120 * unit.Second} {
		config := scheduletest.JointConfig(scheduletest.Nodes(2, 4, 0), jobs, pollux.New(quick()), declared.Estimator{})
		config.Prices.Restart = cost
		o, err := scheduletest.Run(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("restarts of %s: %d of them, average JCT %.0f s", cost, o.Preemptions, o.AvgJCTSec)
		if o.Finished != int64(len(jobs)) {
			t.Errorf("%d of %d jobs finished", o.Finished, len(jobs))
		}
		if o.AvgJCTSec < last || o.Preemptions > int64(4*len(jobs)) {
			t.Errorf("restarts of %s: average JCT %.0f s, %.0f s where they are cheaper; %d restarts", cost, o.AvgJCTSec, last, o.Preemptions)
		}
		last = o.AvgJCTSec
	}
}
