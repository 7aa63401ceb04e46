package reproduce

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/report"
)

// declaring gives the jobs of a trace users, who declare about how long a job takes; the first user
// declares so large a part of that.
type declaring struct {
	trace.Reader
	dice  *rand.Rand
	users int
	part  float64
	first map[string]bool // the first user's jobs
}

func (d *declaring) Next() (workload.Job, workload.Truth, error) {
	j, truth, err := d.Reader.Next()
	if err != nil {
		return j, truth, err
	}
	user, about := d.dice.IntN(d.users), math.Exp(.3*d.dice.NormFloat64())
	j.User = string(rune('a' + user))
	if user == 0 {
		d.first[j.Name] = true
		about *= d.part
	}
	j.Estimate = max(unit.Second, unit.Seconds(truth.Duration.Seconds()*about))
	return j, truth, nil
}

// understate runs RW-A where the first of some users declares a part of the
// truth, and returns the mean JCT in seconds of his jobs and of the others'.
func understate(t *testing.T, strategy string, seed uint64, part float64) (his, others float64) {
	t.Helper()
	s := Defaults()
	s.Strategy, s.Seed, s.Limits = strategy, seed, report.Limits{Points: 2, Jobs: math.MaxInt}
	first := map[string]bool{}
	s.Jobs = func(seed uint64) (trace.Reader, error) {
		r, err := trace.Open("gen:rw-a", trace.Options{Seed: seed})
		return &declaring{r, rand.New(rand.NewPCG(seed, 9)), 8, part, first}, err
	}
	o, err := Simulate(s)
	if err != nil {
		t.Fatal(err)
	}
	sums, jobs := [2]float64{}, [2]float64{}
	for _, j := range o.Collector.View().Jobs {
		side := 1
		if first[j.Name] {
			side = 0
		}
		sums[side] += j.JCT().Seconds()
		jobs[side]++
	}
	return sums[0] / jobs[0], sums[1] / jobs[1]
}

// understating is what a lie does to the mean JCT, as a ratio over seeds: to his who tells it, and to
// the others'.
func understating(t *testing.T, strategy string, seeds uint64) (his, others report.Interval) {
	t.Helper()
	var mine, theirs [2][]float64 // where he tells the truth, and where he does not
	for seed := range seeds {
		for i, part := range []float64{1, .1} {
			h, o := understate(t, strategy, seed+1, part)
			mine[i], theirs[i] = append(mine[i], h), append(theirs[i], o)
		}
	}
	ratio := func(of [2][]float64) report.Interval {
		r, err := report.PairedRatio(of[1], of[0], report.Bootstrap{Seed: bootstrapSeed})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return ratio(mine), ratio(theirs)
}

// TestUnderstatingGainsNothing: beside seven users who declare about the truth one who declares a
// tenth of it gains nothing under the house order, and the others lose no more than a hundredth;
// under an order that believes what is declared he gains.
func TestUnderstatingGainsNothing(t *testing.T) {
	seeds := uint64(4)
	if os.Getenv("MUSTER_LONG") == "1" {
		seeds = 20
	}
	his, others := understating(t, "declared+muster", seeds)
	t.Logf("mean JCT over that of an honest user: %.4f [%.4f, %.4f]; the others': %.4f [%.4f, %.4f]",
		his.Point, his.Low, his.High, others.Point, others.Low, others.High)
	if his.Point < .99 || others.Point > 1.01 {
		t.Errorf("his mean JCT is %.4f of an honest user's, the others' %.4f: expected at least .99, and at most 1.01", his.Point, others.Point)
	}
	if his, _ := understating(t, "declared+sjf", 4); his.Point >= .99 {
		t.Errorf("under an order that believes him his mean JCT is %.4f of an honest user's: this test shows nothing", his.Point)
	}
}
