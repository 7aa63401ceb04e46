package muster_test

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/muster"
	"github.com/musterdl/muster/strategies/schedule/srsf"
)

// reporting is RW-A with eight users, whose jobs report their progress.
type reporting struct {
	silent bool    // they do not
	noise  float64 // by how much each job's reports are off, as the spread of a logarithm
	times  float64 // how many times the progress that he made the first user reports; 0 is once
}

// users are whose jobs they are, drawn for each seed.
func users(seed uint64, jobs int) (of []int) {
	dice := rand.New(rand.NewPCG(seed, 9))
	for range jobs {
		of = append(of, dice.IntN(8))
	}
	return of
}

// jobs draws the work.
func (r reporting) jobs(t testing.TB, seed uint64) (jobs scheduletest.Jobs) {
	t.Helper()
	from, err := trace.Open("gen:rw-a", trace.Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	saved := trace.WithSaving(from, trace.Saving{}, seed)
	for {
		job, truth, err := saved.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		job.Estimate = 0
		jobs = append(jobs, scheduletest.Job{Job: job, Truth: truth})
	}
	for i, user := range users(seed, len(jobs)) {
		jobs[i].User = string(rune('a' + user))
	}
	return jobs
}

// config is a simulation of a seed's work under an order.
func (r reporting) config(t testing.TB, seed uint64, order schedule.Order) simulated.Config {
	t.Helper()
	jobs := r.jobs(t, seed)
	c := scheduletest.Config(scheduletest.Nodes(15, 4, 0), jobs, scheduletest.With(order))
	c.Prices, c.Check, c.NoBounds = simulated.DefaultPrices(), false, true
	if r.silent {
		return c
	}
	dice, times := rand.New(rand.NewPCG(seed, 10)), make([]float64, len(jobs))
	for i, user := range users(seed, len(jobs)) {
		if times[i] = math.Exp(r.noise * dice.NormFloat64()); user == 0 && r.times > 0 {
			times[i] *= r.times
		}
	}
	c.ObserveEvery = 10 * unit.Minute
	c.Says = func(job plan.JobID, done float64) float64 { return done * times[job] }
	return c
}

// jct is the mean completion time of the first user's jobs, of the others', and of all.
func (r reporting) jct(t testing.TB, seed uint64, order schedule.Order) (his, others, all float64) {
	t.Helper()
	o, err := scheduletest.Run(r.config(t, seed, order))
	if err != nil {
		t.Fatal(err)
	}
	sums, jobs := [2]float64{}, [2]float64{}
	for i, user := range users(seed, len(o.Jobs)) {
		side := min(1, user)
		sums[side] += o.Jobs[i].JCT().Seconds()
		jobs[side]++
	}
	return sums[0] / jobs[0], sums[1] / jobs[1], (sums[0] + sums[1]) / (jobs[0] + jobs[1])
}

func house() schedule.Order { return muster.New(muster.Default()) }

// draws are over how many seeds figures are told.
func draws() uint64 {
	if os.Getenv("MUSTER_LONG") == "1" {
		return 40
	}
	return 8
}

// TestReportsTell: where jobs report their progress the house order is nearer to SRSF, which knows all
// times, than where they do not; and where reports are off by a half and more, by less.
func TestReportsTell(t *testing.T) {
	var over [3]float64
	for seed := range draws() {
		_, _, best := reporting{silent: true}.jct(t, seed+1, srsf.Order{})
		for i, r := range [...]reporting{{silent: true}, {noise: .5}, {}} {
			_, _, all := r.jct(t, seed+1, house())
			over[i] += all / best / float64(draws())
		}
	}
	t.Logf("mean JCT over that of SRSF: %.4f without reports, %.4f with noisy ones, %.4f with true ones", over[0], over[1], over[2])
	if lost := over[0] - 1; over[1] > 1+.6*lost || over[2] > 1+.3*lost {
		t.Errorf("reports bring %.4f to %.4f, and to %.4f if they are noisy: expected .3 of the loss to be left, and .6", over[0], over[2], over[1])
	}
}

// TestOverstatingGainsNothing: beside seven users who report the truth one who reports ten times the
// progress that he made gains nothing under the house order, and the others lose no more than a
// hundredth; a few seeds tell either to a fiftieth. Under an order that believes reports he gains.
func TestOverstatingGainsNothing(t *testing.T) {
	least, most, seeds := .98, 1.02, draws()
	if draws() > 10 {
		least, most, seeds = .99, 1.01, 4*draws() // of forty, which seeds they are makes three thousandths
	}
	over := func(order func() schedule.Order, seeds uint64) (his, others float64) {
		var honest, lying [2]float64
		for seed := range seeds {
			a, b, _ := reporting{}.jct(t, seed+1, order())
			honest[0], honest[1] = honest[0]+a, honest[1]+b
			a, b, _ = reporting{times: 10}.jct(t, seed+1, order())
			lying[0], lying[1] = lying[0]+a, lying[1]+b
		}
		return lying[0] / honest[0], lying[1] / honest[1]
	}
	his, others := over(house, seeds)
	t.Logf("his mean JCT is %.4f of an honest user's, the others' %.4f", his, others)
	if his < least || others > most {
		t.Errorf("his mean JCT is %.4f of an honest user's, the others' %.4f: expected at least %g, and at most %g", his, others, least, most)
	}
	if his, others = over(func() schedule.Order { return believer{} }, draws()); his >= least {
		t.Errorf("under an order that believes him his mean JCT is %.4f of an honest user's: this test shows nothing", his)
	}
	t.Logf("under an order that believes him %.4f and %.4f", his, others)
}

// believer ranks by what is left by a job's report, or else by what it got, times its devices.
type believer struct{}

// Rules let jobs displace those that rank behind them, as often as that turns.
func (believer) Rules() schedule.Rules { return schedule.Rules{Preempt: true, Turns: true} }

// Key doubles what was overrun, and looks again every ten minutes.
func (believer) Key(v plan.View, id plan.JobID) (schedule.Key, unit.Time) {
	served, shape := v.Service(id)/1e6, v.Shape(id)
	total, _ := v.Foretold(id)
	if total == 0 {
		return schedule.Key{served}, v.Now().Add(10 * unit.Minute)
	}
	all := max(1, int64(total.Seconds())*shape.Milli(shape.Gang))
	for all <= served {
		all *= 2
	}
	return schedule.Key{all - served}, v.Now().Add(10 * unit.Minute)
}

// TestReportsFollowFromState: whoever begins anew from a state ranks all jobs as who saw them come,
// report and end, whether reports are true or not.
func TestReportsFollowFromState(t *testing.T) {
	order := house()
	s, err := simulated.New(reporting{noise: .3, times: 10}.config(t, 1, order))
	told := 0
	for more, step := true, 0; more && err == nil; step++ {
		if more, err = s.Advance(); step%200 != 0 {
			continue
		}
		v, anew := s.State().View(), muster.New(muster.Default())
		for id := range plan.JobID(v.Jobs()) {
			if v.Job(id).Phase == plan.Finished {
				anew.Learn(v, id)
			}
		}
		for id := range plan.JobID(v.Jobs()) {
			if v.Job(id).Phase.Over() {
				continue
			}
			was, _ := order.Key(v, id)
			is, _ := anew.Key(v, id)
			if was != is {
				t.Fatalf("at %s job %d ranks at %v, and at %v for who begins anew", unit.Duration(v.Now()), id, was, is)
			}
			if total, _ := v.Foretold(id); total > 0 {
				told++
			}
		}
	}
	if err != nil || told < 100 {
		t.Errorf("%v; reports counted %d times, too few to tell", err, told)
	}
}
