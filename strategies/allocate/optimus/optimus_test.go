package optimus_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/divide"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/profile/perf"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/optimus"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

func TestConforms(t *testing.T) {
	scheduletest.ConformJoint(t, func() allocate.Joint { return optimus.New(optimus.Default()) })
}

func upTo(n int) (sizes []int) {
	for k := 1; k <= n; k++ {
		sizes = append(sizes, k)
	}
	return sizes
}

// TestDivideIsBest: where each device saves a job less than the one before, the sum of
// times left is the least there is.
func TestDivideIsBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var claims []optimus.Job
		for range 3 {
			work, alpha := 1+rng.Float64(), .3+.7*rng.Float64()
			claims = append(claims, optimus.Job{Sizes: upTo(8), Worker: optimus.Demand{1}, Left: func(w, _ int) float64 { return work / math.Pow(float64(w), alpha) }})
		}
		got := new(optimus.Division).Divide(claims, optimus.Demand{8})
		sum := func(n [3]int) (s float64) {
			for i, k := range n {
				s += claims[i].Left(k, 0)
			}
			return s
		}
		best := math.Inf(1)
		for a := 1; a <= 6; a++ {
			for b := 1; a+b <= 7; b++ {
				best = min(best, sum([3]int{a, b, 8 - a - b}))
			}
		}
		if s := sum([3]int{got[0].Workers, got[1].Workers, got[2].Workers}); s > best+1e-9 {
			t.Fatalf("%v leaves %v, the best is %v", got, s, best)
		}
	}
}

// TestDivideServers: with parameter servers as the bottleneck servers are added, with
// workers as the bottleneck workers, and the dominant resource is what counts.
func TestDivideServers(t *testing.T) {
	claim := func(terms ...float64) optimus.Job {
		m := perf.Speed{Form: perf.Sync, Batch: 64, Terms: terms}
		return optimus.Job{Sizes: upTo(20), Servers: 20, Worker: optimus.Demand{1, 2}, Server: optimus.Demand{0, 2},
			Left: func(w, p int) float64 { return 1000 / m.StepsPerSec(w, p) }}
	}
	compute, exchange := claim(1, 0, .1, 0, 0), claim(.001, 0, 5, 0, 0)
	room := optimus.Demand{12, 24} // cores for twelve tasks
	if got := new(optimus.Division).Divide([]optimus.Job{compute}, room)[0]; got.Workers <= got.Servers {
		t.Errorf("bound by compute: %+v", got)
	}
	if got := new(optimus.Division).Divide([]optimus.Job{exchange}, room)[0]; got.Servers <= got.Workers {
		t.Errorf("bound by the exchange: %+v", got)
	}
	room[1] = 48
	both := new(optimus.Division).Divide([]optimus.Job{compute, exchange}, room)
	if n := both[0].Workers + both[0].Servers + both[1].Workers + both[1].Servers; n > 24 || both[0].Workers+both[1].Workers > 12 {
		t.Errorf("%+v do not fit", both)
	}
	// The same gain from half the resource is worth more.
	reduce := perf.Speed{Form: perf.AllReduce, Batch: 64, Terms: []float64{.05, .01, .001}}
	cheap := optimus.Job{Sizes: upTo(20), Worker: optimus.Demand{1, 2}, Left: func(w, _ int) float64 { return 1000 / reduce.StepsPerSec(w, 0) }}
	dear := cheap
	dear.Worker = optimus.Demand{2, 2}
	if got := new(optimus.Division).Divide([]optimus.Job{cheap, dear}, room); got[0].Workers <= got[1].Workers {
		t.Errorf("cheap has %+v, dear %+v", got[0], got[1])
	}
}

func TestDivideBounds(t *testing.T) {
	flat := optimus.Job{Sizes: upTo(8), Worker: optimus.Demand{1}, Left: func(int, int) float64 { return 1 }}
	rigid := optimus.Job{Sizes: []int{4}, Worker: optimus.Demand{1}, Left: func(w, _ int) float64 { return 1 / float64(w) }}
	steps := optimus.Job{Sizes: []int{1, 2, 4}, Worker: optimus.Demand{1}, Left: func(w, _ int) float64 { return 1 / float64(w) }}
	got := new(optimus.Division).Divide([]optimus.Job{flat, rigid, steps, rigid}, optimus.Demand{8})
	if want := []optimus.Tasks{{Workers: 1}, {Workers: 4}, {Workers: 2}, {}}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
}

func TestSpread(t *testing.T) {
	var nodes divide.Spreader
	for _, c := range []struct {
		count int
		free  []int
		want  []int
	}{
		{3, []int{2, 4, 4}, []int{0, 3, 0}},
		{6, []int{2, 4, 4}, []int{0, 3, 3}},
		{5, []int{2, 4, 4}, []int{0, 3, 2}},
		{9, []int{4, 4, 1}, []int{4, 4, 1}},
		{10, []int{4, 4, 2}, []int{4, 4, 2}},
		{11, []int{4, 4, 2}, nil},
		{0, []int{4}, nil},
	} {
		if got := nodes.Spread(c.count, c.free); !slices.Equal(got, c.want) {
			t.Errorf("%d on %v: %v, expected %v", c.count, c.free, got, c.want)
		}
	}
}

// TestReconfigurationCosts: elastic jobs take the longer the dearer restarts are.
func TestReconfigurationCosts(t *testing.T) {
	var jobs scheduletest.Jobs
	for i := range 24 {
		j := workload.Job{Name: fmt.Sprint("job", i), Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Submit: unit.Time(i) * unit.Time(4*unit.Minute)}
		for k, rate := range []float64{1, 1.9, 2.7, 3.4} {
			j.Sizes = append(j.Sizes, int32(k)+1)
			j.Menu = append(j.Menu, workload.Offer{Workers: int32(k) + 1, Rate: rate})
		}
		jobs = append(jobs, scheduletest.Job{Job: j, Truth: workload.Truth{Duration: unit.Duration(10+7*(i%5)) * unit.Minute}})
	}
	last := 0.0
	for _, cost := range []unit.Duration{2 * unit.Second, 30 * unit.Second, 120 * unit.Second} {
		config := scheduletest.JointConfig(scheduletest.Nodes(2, 4, 0), jobs, optimus.New(optimus.Default()), oracle.Estimator{})
		config.Prices.Restart = cost
		o, err := scheduletest.Run(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("restarts of %s: %d of them, average JCT %.0f s", cost, o.Preemptions, o.AvgJCTSec)
		if o.Finished != int64(len(jobs)) || o.AvgJCTSec < last {
			t.Errorf("%d of %d jobs finished, average JCT %.0f s after %.0f s at a lower cost", o.Finished, len(jobs), o.AvgJCTSec, last)
		}
		last = o.AvgJCTSec
	}
}
