package noisy_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/profile/noisy"
)

const jobs = 20000

func state() *plan.State {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{{Gang: 1}}
	for i := range jobs {
		s.Admit(strconv.Itoa(i), plan.Asked{})
		s.Jobs[i].Oracle = unit.Hour
	}
	return s
}

// TestErrors holds the errors of many jobs to the moments of their law, and High to
// what it promises.
func TestErrors(t *testing.T) {
	v := state().View()
	for _, c := range []struct {
		config       noisy.Config
		mean, spread float64 // of the logarithm, or of the factor itself
	}{
		{noisy.Config{Error: noisy.Lognormal, Spread: 0.5, Seed: 1}, 0, 0.5},
		{noisy.Config{Error: noisy.Lognormal, Spread: 2, Seed: 2}, 0, 2},
		{noisy.Config{Error: noisy.Uniform, Spread: 0.2, Seed: 3}, 1, 0.2 / math.Sqrt(3)},
		{noisy.Config{Error: noisy.Uniform, Spread: 0}, 1, 0},
	} {
		if err := strategy.Check(c.config); err != nil {
			t.Fatal(err)
		}
		e := noisy.New(c.config)
		var sum, squares, in float64
		for id := range plan.JobID(jobs) {
			got := e.Estimate(v, id)
			x := got.Mean.Seconds() / unit.Hour.Seconds()
			if c.config.Error == noisy.Lognormal {
				x = math.Log(x)
			} else if math.Abs(x-1) > c.config.Spread+1e-9 {
				t.Fatalf("%v: job %d is off by a factor of %g", c.config, id, x)
			}
			sum, squares = sum+x, squares+x*x
			if got.High >= unit.Hour {
				in++
			}
		}
		mean := sum / jobs
		deviation := math.Sqrt(max(0, squares/jobs-mean*mean))
		if slack := 4*c.spread/math.Sqrt(jobs) + 1e-6; math.Abs(mean-c.mean) > slack || math.Abs(deviation-c.spread) > slack {
			t.Errorf("%v: mean %g and deviation %g, want %g and %g", c.config, mean, deviation, c.mean, c.spread)
		}
		if c.spread > 0 && math.Abs(in/jobs-0.9) > 0.01 {
			t.Errorf("%v: %g of the jobs end by High, want nine in ten", c.config, in/jobs)
		}
	}
}

// TestChance: the error of a job depends on the seed and its number and on nothing else.
func TestChance(t *testing.T) {
	v := state().View()
	e := noisy.New(noisy.Config{Error: noisy.Lognormal, Spread: 1, Seed: 7})
	first := e.Estimate(v, 3)
	e.Estimate(v, 4)
	e.Learn(v, 5)
	if again := e.Estimate(v, 3); again != first {
		t.Errorf("job 3 is estimated %v and then %v", first, again)
	}
	if other := noisy.New(noisy.Config{Error: noisy.Lognormal, Spread: 1, Seed: 8}).Estimate(v, 3); other == first {
		t.Errorf("another seed gives the same error: %v", other)
	}
	s := plan.NewState(v.Cluster())
	s.Shapes = []plan.Shape{{Gang: 1}}
	if got := e.Estimate(s.View(), s.Admit("untold", plan.Asked{})); got.Mean != 0 || got.High != 0 {
		t.Errorf("without the truth nothing is known, got %v", got)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []noisy.Config{
		{Error: "normal", Spread: 1}, {Error: noisy.Uniform, Spread: 1}, {Error: noisy.Lognormal, Spread: -1},
		{Error: noisy.Lognormal, Spread: math.NaN()}, {Error: noisy.Lognormal, Spread: 11},
	} {
		if strategy.Check(c) == nil {
			t.Errorf("%v is taken for valid", c)
		}
	}
}
