package history_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/strategies/profile/history"
)

// past is a finished job.
type past struct {
	tenant, class, gang int32
	ended               unit.Time
	ran                 unit.Duration
}

// remember makes a state of finished jobs, and one that asks.
func remember(jobs []past, asks past) (*plan.State, plan.JobID) {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	for g := range int32(5) {
		s.Shapes = append(s.Shapes, plan.Shape{Gang: g, Devices: 1, Share: 1000})
	}
	for i, p := range append(slices.Clone(jobs), asks) {
		id := s.Admit(strconv.Itoa(i), plan.Asked{Tenant: p.tenant, Class: p.class, Shape: p.gang})
		if i < len(jobs) {
			s.Jobs[id].Phase, s.Jobs[id].Ended, s.Jobs[id].Executed = plan.Finished, p.ended, p.ran
		}
	}
	s.Now = asks.ended
	return s, plan.JobID(len(jobs))
}

func learned(v plan.View, order []int) *history.Estimator {
	e := history.New(history.Default())
	for _, i := range order {
		e.Learn(v, plan.JobID(i))
	}
	return e
}

// TestEstimate holds the estimator to its definition: the exact quantile, within a
// thirty-second, of the finest group with five jobs that ended before now, whatever
// order they are learned in and however often it was asked in between.
func TestEstimate(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		ids := rapid.Int32Range(0, 1)
		var jobs []past
		for range rapid.IntRange(0, 30).Draw(t, "jobs") {
			jobs = append(jobs, past{ids.Draw(t, "tenant"), ids.Draw(t, "class"), 1 + ids.Draw(t, "gang"),
				unit.Time(rapid.IntRange(1, 5).Draw(t, "ended")), unit.Duration(rapid.Int64Range(1, 1<<45).Draw(t, "ran"))})
		}
		asks := past{tenant: ids.Draw(t, "my tenant"), class: ids.Draw(t, "my class"), gang: 1 + ids.Draw(t, "my gang"),
			ended: unit.Time(rapid.IntRange(1, 6).Draw(t, "now"))}
		s, id := remember(jobs, asks)
		order := rapid.Permutation(indices(len(jobs))).Draw(t, "order")
		e := learned(s.View(), order)
		got := e.Estimate(s.View(), id)
		want := define(jobs, asks)
		if !near(got.Mean, want.Mean) || !near(got.High, want.High) {
			t.Fatalf("got %v, want about %v", got, want)
		}
		slices.Reverse(order)
		if other := learned(s.View(), order).Estimate(s.View(), id); other != got {
			t.Fatalf("learned in another order: %v, was %v", other, got)
		}
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func near(got, want unit.Duration) bool {
	return math.Abs(float64(got-want)) <= float64(want)/32
}

// define is the estimate by brute force.
func define(jobs []past, asks past) profile.Estimate {
	for coarse := range 4 {
		var ran []unit.Duration
		for _, p := range jobs {
			if p.ended < asks.ended && (coarse > 0 || p.tenant == asks.tenant) &&
				(coarse > 1 || p.class == asks.class) && (coarse > 2 || p.gang == asks.gang) {
				ran = append(ran, p.ran)
			}
		}
		if len(ran) >= 5 {
			slices.Sort(ran)
			at := func(q float64) unit.Duration { return ran[int(math.Ceil(q*float64(len(ran))))-1] }
			return profile.Estimate{Mean: at(0.5), High: at(0.9)}
		}
	}
	return profile.Estimate{}
}

// TestMedianRanksBetter is why the median is the estimate: of two kinds of work, one
// running twice as long as the other and both spread as training jobs are, five
// finished jobs tell the longer kind more often by their median than by their mean.
func TestMedianRanksBetter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const trials, spread = 4000, 1.8
	byMedian, byMean := 0, 0
	for range trials {
		var medians, means [2]float64
		for kind := range 2 {
			var jobs []past
			for range 5 {
				ran := 1800 * float64(1+kind) * math.Exp(spread*r.NormFloat64())
				means[kind] += ran
				jobs = append(jobs, past{class: int32(kind), gang: 1, ended: 1, ran: unit.Seconds(ran)})
			}
			s, id := remember(jobs, past{class: int32(kind), gang: 1, ended: 2})
			medians[kind] = learned(s.View(), indices(5)).Estimate(s.View(), id).Mean.Seconds()
		}
		if medians[1] > medians[0] {
			byMedian++
		}
		if means[1] > means[0] {
			byMean++
		}
	}
	if byMedian <= byMean {
		t.Errorf("the median tells the longer kind in %d of %d trials, the mean in %d", byMedian, trials, byMean)
	}
}

// TestElastic: a job that ran on twice the workers it asked for would have run twice
// as long on those.
func TestElastic(t *testing.T) {
	s, id := remember(make([]past, 5), past{ended: 2})
	s.Shapes[0] = plan.Shape{Gang: 2, Devices: 1, Share: 1000, Sizes: [8]int32{4}}
	for i := range 5 {
		s.Jobs[i].Executed, s.Jobs[i].Service = unit.Hour, int64(unit.Hour)*4000
	}
	if got := learned(s.View(), indices(5)).Estimate(s.View(), id).Mean; !near(got, 2*unit.Hour) {
		t.Errorf("got %s, want about 2h", got)
	}
}

func TestValidate(t *testing.T) {
	if strategy.Check(history.Config{}) == nil {
		t.Error("groups of no jobs are taken for believable")
	}
}
