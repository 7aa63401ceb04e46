package report

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-3*(1+math.Abs(b)) }

// Values from any table of Student's t: 12.706, 4.303 and 2.776 for 1, 2 and 4
// degrees of freedom.
func TestMeanIntervalIsStudents(t *testing.T) {
	for _, c := range []struct {
		samples    []float64
		mean, half float64
	}{
		{[]float64{1, 2}, 1.5, 12.706 * math.Sqrt(0.5) / math.Sqrt(2)},
		{[]float64{1, 2, 3}, 2, 4.303 / math.Sqrt(3)},
		{[]float64{1, 2, 3, 4, 5}, 3, 2.776 * math.Sqrt(2.5) / math.Sqrt(5)},
		{[]float64{4, 4, 4}, 4, 0},
	} {
		got := MeanInterval(c.samples)
		if !near(got.Point, c.mean) || !near(got.Low, c.mean-c.half) || !near(got.High, c.mean+c.half) {
			t.Errorf("%v: %+v, want %v ± %v", c.samples, got, c.mean, c.half)
		}
	}
}

func TestTooFewSamplesProveNothing(t *testing.T) {
	ratio, err := PairedRatio([]float64{1}, []float64{2}, Bootstrap{})
	if err != nil || ratio.Point != 0.5 {
		t.Fatalf("%+v, %v", ratio, err)
	}
	for _, i := range []Interval{MeanInterval(nil), MeanInterval([]float64{1}), ratio, MeanJCTByWeek(nil, Bootstrap{})} {
		if i.Known() {
			t.Errorf("%+v is known", i)
		}
	}
	text, err := json.Marshal(MeanInterval([]float64{1}))
	if err != nil || string(text) != `{"point":1,"low":null,"high":null,"n":1}` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestPairsCancelWhatIsHardForBoth(t *testing.T) {
	a, b := []float64{10, 200, 30}, []float64{20, 400, 60}
	ratio, err := PairedRatio(a, b, Bootstrap{Seed: 1})
	if err != nil || ratio != (Interval{0.5, 0.5, 0.5, 3}) {
		t.Errorf("the ratio is %+v, %v", ratio, err)
	}
	difference, err := PairedDifference([]float64{11, 21, 31}, []float64{10, 20, 30})
	if err != nil || difference != (Interval{1, 1, 1, 3}) {
		t.Errorf("the difference is %+v, %v", difference, err)
	}
	if _, err := PairedRatio(a, b[:2], Bootstrap{}); err == nil {
		t.Error("unpaired values are compared")
	}
	if _, err := PairedDifference(a, b[:2]); err == nil {
		t.Error("unpaired values are subtracted")
	}
}

// An interval that claims 95 % must contain the truth about that often; the
// bootstrap of 20 pairs is known to be slightly too narrow.
func TestBootstrapCoversTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const trials = 400
	covered := 0
	for k := range trials {
		a, b := make([]float64, 20), make([]float64, 20)
		for i := range a {
			hard := 1 + rng.Float64()
			a[i], b[i] = hard*(0.6+0.2*rng.Float64()), hard
		}
		i, _ := PairedRatio(a, b, Bootstrap{Seed: uint64(k), Resamples: 400})
		if i.Low <= 0.7 && 0.7 <= i.High {
			covered++
		}
	}
	if part := float64(covered) / trials; part < 0.89 || part > 0.99 {
		t.Errorf("the interval covers the truth in %.3f of trials", part)
	}
}

func TestBootstrapDependsOnItsSeedOnly(t *testing.T) {
	a, b := []float64{1, 2, 3, 4, 9}, []float64{2, 2, 5, 7, 8}
	first, _ := PairedRatio(a, b, Bootstrap{Seed: 5})
	again, _ := PairedRatio(a, b, Bootstrap{Seed: 5})
	if first != again {
		t.Errorf("%+v and then %+v", first, again)
	}
	if first.Low >= first.Point || first.High <= first.Point {
		t.Errorf("%+v does not surround its point", first)
	}
}

// Six weeks in which each day submits one job of a known JCT.
func trace(jctSec func(day int) float64) []JobRecord {
	var jobs []JobRecord
	for day := range 43 {
		at := unit.Time(0).Add(unit.Duration(day) * unit.Day)
		jobs = append(jobs, finished(int32(day), at, at.Add(unit.Seconds(jctSec(day)))))
	}
	return jobs
}

func TestWeeksLeaveTheEndsOut(t *testing.T) {
	jobs := trace(func(day int) float64 {
		if day < 3 || day > 39 {
			return 1e6 // the cluster fills and drains
		}
		return 100
	})
	if got := MeanJCTByWeek(jobs, Bootstrap{}); got != (Interval{100, 100, 100, 6}) {
		t.Errorf("the mean is %+v", got)
	}
	jobs[10].Outcome, jobs[10].End = Unfinished, unit.Never
	if got := MeanJCTByWeek(jobs, Bootstrap{}); got != (Interval{100, 100, 100, 6}) {
		t.Errorf("an unfinished job changes the mean to %+v", got)
	}
}

func TestWeeksAreResampledAsAWhole(t *testing.T) {
	// Within a week all jobs are alike, so only weeks can vary: the interval must
	// be about as wide as that of the six weeks' means.
	jobs := trace(func(day int) float64 { return 100 * float64(1+(day-3)/7) })
	got := MeanJCTByWeek(jobs, Bootstrap{Seed: 2})
	if got.N != 6 || got.Low > 250 || got.High < 420 {
		t.Errorf("the mean is %+v", got)
	}
	half := trace(func(day int) float64 { return 50 * float64(1+(day-3)/7) })
	if ratio := JCTRatioByWeek(half, jobs, Bootstrap{Seed: 2}); !near(ratio.Low, 0.5) || !near(ratio.High, 0.5) || ratio.N != 6 {
		t.Errorf("the ratio is %+v", ratio)
	}
	jobs[20].Outcome = Failed
	half[20].End = unit.Time(unit.Forever) / 2 // in neither mean, so it must not show
	if ratio := JCTRatioByWeek(half, jobs, Bootstrap{Seed: 2}); !near(ratio.Point, 0.5) {
		t.Errorf("a job that only one run finished changes the ratio to %+v", ratio)
	}
}
