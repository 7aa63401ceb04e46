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

// TestToldAlone: before any job that reported has ended, whatever a job reports it is known as if it did not.
func TestToldAlone(t *testing.T) {
	dice := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		var seconds []float64
		for range dice.IntN(200) {
			seconds = append(seconds, math.Exp(8+2*dice.NormFloat64()))
		}
		p, s := ended(seconds)
		asked := plan.Asked{Submit: s.Now}
		if dice.IntN(2) == 0 {
			asked.Declared = unit.Seconds(math.Exp(8 + 2*dice.NormFloat64()))
		}
		id := s.Admit("asked about", asked)
		j := &s.Jobs[id]
		p.Told(s.View(), id)
		s.Now = s.Now.Add(unit.Second)
		j.Run, j.Foretold, j.ForetoldAt = plan.None, unit.Seconds(300+math.Exp(8+2*dice.NormFloat64())), s.Now
		if _, scale := p.Told(s.View(), id); scale != Scale(j) {
			t.Fatalf("a report of the present period counts")
		}
		s.Now = s.Now.Add(2 * unit.Hour)
		without := p.Of(s.View(), id)
		with, scale := p.Told(s.View(), id)
		if off := scale * 3600 / j.Foretold.Seconds(); off < .91 || off > 1.1 {
			t.Fatalf("what was foretold is off by %g", off)
		}
		ran, lost := 300+j.Foretold.Seconds()*2*dice.Float64(), 500*dice.Float64()
		want := without.After(StepOf(ran/Scale(j)), lost/Scale(j)) * Scale(j)
		if got := with.After(StepOf(ran/scale), lost/scale) * scale; math.Abs(got-want) > 1e-6*want && math.Abs(got-want) > 1 {
			t.Fatalf("after %g s of %s foretold a completion costs %g s, without a report %g s", ran, j.Foretold, got, want)
		}
	}
}

// TestToldByRecord: once a user's record is known, jobs of who reports ten times the progress that he made
// are known as those of an honest user are, and long ones from short ones.
func TestToldByRecord(t *testing.T) {
	dice := rand.New(rand.NewPCG(3, 4))
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000}}
	p := New(usual)
	says := func(user int, seconds float64) unit.Duration {
		return unit.Seconds(seconds * [...]float64{1, .1}[user])
	}
	for range 500 {
		ran := 600 + math.Exp(9+1.5*dice.NormFloat64())
		for user := range 2 {
			id := s.Admit(strconv.Itoa(len(s.Jobs)), plan.Asked{User: int32(user), Submit: s.Now})
			j := &s.Jobs[id]
			j.Foretold, j.ForetoldAt = says(user, ran), s.Now
			j.Phase, j.Started, j.Ended, j.Service = plan.Finished, s.Now, s.Now.Add(unit.Seconds(ran)), int64(ran*1e9)
			p.Learn(s.View(), id)
		}
		s.Now = s.Now.Add(2 * unit.Hour)
	}
	cost := func(user int, hours float64) float64 {
		id := s.Admit("of"+strconv.Itoa(len(s.Jobs)), plan.Asked{User: int32(user), Submit: s.Now})
		s.Jobs[id].Foretold = says(user, 3600*hours)
		t, scale := p.Told(s.View(), id)
		return t.After(StepOf(600/scale), 0) * scale
	}
	for _, hours := range []float64{.3, 1, 10} {
		if honest, liar := cost(0, hours), cost(1, hours); math.Abs(math.Log(liar/honest)) > .2 {
			t.Errorf("a job of %g h costs %.0f s to complete, of who overstates %.0f s", hours, honest, liar)
		}
	}
	if short, long := cost(0, .3), cost(0, 10); long < 15*short {
		t.Errorf("a job of ten hours costs %.0f s to complete, one of a third of an hour %.0f s", long, short)
	}
}
