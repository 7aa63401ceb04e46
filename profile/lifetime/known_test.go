package lifetime

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// ended is a past in which the jobs of one user ran for so many seconds, one after the other.
func ended(seconds []float64) (*Past, *plan.State) {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000}, {Gang: 2, Devices: 1, Share: 1000}}
	p := New(usual)
	for _, ran := range seconds {
		end(s, p, plan.Asked{Submit: s.Now}, ran)
	}
	s.Now = s.Now.Add(1000 * unit.Hour)
	return p, s
}

// end adds a finished job.
func end(s *plan.State, p *Past, asked plan.Asked, seconds float64) plan.JobID {
	id := s.Admit(strconv.Itoa(len(s.Jobs)), asked)
	j := &s.Jobs[id]
	ran := unit.Seconds(seconds)
	j.Phase, j.Started, j.Ended, j.Service = plan.Finished, s.Now, s.Now.Add(ran), int64(ran)*s.Shapes[j.Shape].Milli(s.Shapes[j.Shape].Gang)
	p.Learn(s.View(), id)
	return id
}

// TestKnown: each group counts its own finished jobs, at once where they are few.
func TestKnown(t *testing.T) {
	p, s := ended(nil)
	mine := plan.Asked{Tenant: 1, User: 2, Class: 3, Submit: s.Now}
	job := s.Admit("asked about", mine)
	if k := p.Known(s.View(), job); k != (Known{}) {
		t.Fatalf("before any job has finished %+v is known", k)
	}
	for _, other := range []func(a *plan.Asked){
		func(*plan.Asked) {}, func(a *plan.Asked) { a.User = 7 }, func(a *plan.Asked) { a.Tenant = 7 }, func(a *plan.Asked) { a.Class = 7 },
		func(a *plan.Asked) { a.Shape = 1 }, func(a *plan.Asked) { a.Declared = unit.Hour }} {
		asked := mine
		other(&asked)
		end(s, p, asked, 100)
	}
	if k := p.Known(s.View(), job); k != (Known{Finished: [levels]int{5, 4, 3, 2, 1, 1, 0}}) {
		t.Errorf("%+v is known, want 5 jobs of whatever size, 4 of this, 3 of its kind, 2 of its tenant, 1 of its user, none called alike", k)
	}
}

// TestDrift: jobs that get longer or shorter by a lot are told of with the eighth; of jobs that stay
// as they are, however they spread, hardly ever is anything told.
func TestDrift(t *testing.T) {
	dice, told := rand.New(rand.NewPCG(5, 6)), 0
	for range 200 {
		spread, ran := 2*dice.Float64(), make([]float64, 16+dice.IntN(300))
		for i := range ran {
			ran[i] = math.Exp(8 + spread*dice.NormFloat64())
		}
		p, s := ended(ran)
		k := p.Known(s.View(), s.Admit("next", plan.Asked{Submit: s.Now}))
		if k.Latest != 0 {
			told++
		}
		by := 20.
		if dice.IntN(2) == 0 {
			by = 1. / 20
		}
		for i := len(ran) - latest; i < len(ran); i++ {
			ran[i] = 8000 * by * math.Exp(.3*dice.NormFloat64())
		}
		for i := range len(ran) - latest {
			ran[i] = 8000 * math.Exp(.3*dice.NormFloat64())
		}
		p, s = ended(ran)
		k = p.Known(s.View(), s.Admit("next", plan.Asked{Submit: s.Now}))
		if k.Latest < by/2 || k.Latest > by*2 || k.Jobs != latest || k.Before != min(len(ran), 2*recents[0].jobs)-latest {
			t.Fatalf("of %d jobs the latest %d ran %g times as long: %+v is told", len(ran), latest, by, k)
		}
	}
	if told > 2 {
		t.Errorf("of 200 groups that stayed as they were %d are told to have changed", told)
	}
}

// TestFairWait: a wait counts up to the beginning of the period, and where twice as many devices are
// asked for as there are, half of it; what is over asks for nothing.
func TestFairWait(t *testing.T) {
	p, s := ended([]float64{100, 100})
	s.Now = s.Now.Add(30 * unit.Minute)
	job := s.Admit("waits", plan.Asked{Submit: s.Now})
	if got := p.FairWait(s.View(), job); got > 1e-3 {
		t.Errorf("in the period of its submission it waited %g s", got)
	}
	s.Jobs[job].Since = s.Now
	s.Now = s.Now.Add(100 * unit.Minute)
	if got := p.FairWait(s.View(), job); got != 90*60 {
		t.Errorf("two hours and a half later, ten minutes into a period, it waited %g s, want 5400", got)
	}
	s.Admit("as large again", plan.Asked{Submit: s.Now})
	s.Jobs[len(s.Jobs)-1].Since = s.Now
	s.Now = s.Now.Add(unit.Hour)
	if got := p.FairWait(s.View(), job); got != 75*60 {
		t.Errorf("beside another it waited %g s, want 4500", got)
	}
	j := &s.Jobs[job]
	j.Phase, j.Started, j.Waited = plan.Active, s.Now, 20*unit.Minute
	if got := p.FairWait(s.View(), job); got != 10*60 {
		t.Errorf("since it runs it waited %g s, want 600", got)
	}
}

// TestLearnedOnce: who is told again of jobs that ended, as a scheduler that builds its caches anew is, knows no more.
func TestLearnedOnce(t *testing.T) {
	p, s := ended([]float64{100, 200, 300})
	job := s.Admit("next", plan.Asked{Submit: s.Now})
	before := p.Known(s.View(), job)
	for id := range job {
		p.Learn(s.View(), id)
	}
	s.Now = s.Now.Add(unit.Hour)
	if k := p.Known(s.View(), job); k != before || k.Finished[0] != 3 {
		t.Errorf("%+v is known, before they were told again %+v", k, before)
	}
}
