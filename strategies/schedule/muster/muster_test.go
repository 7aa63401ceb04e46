package muster_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/muster"
)

func TestConforms(t *testing.T) {
	often := muster.Config{Refresh: 10 * unit.Minute, Prior: 2, Switch: 10 * unit.Second, Gain: .1, Age: 30 * unit.Minute}
	for name, c := range map[string]muster.Config{"default": muster.Default(), "often": often} {
		t.Run(name, func(t *testing.T) {
			scheduletest.Conform(t, func() schedule.Order { return muster.New(c) })
		})
	}
}

// TestUnderstating: once a user's record is known, who declares a tenth of the truth ranks within a
// fifth of where an honest user with the same work does, fresh or after any running time.
func TestUnderstating(t *testing.T) {
	dice := rand.New(rand.NewPCG(3, 4))
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000}}
	o := muster.New(muster.Default())
	for range 1000 {
		truth := math.Exp(8 + 1.5*dice.NormFloat64())
		ran := truth * math.Exp(.3*dice.NormFloat64())
		for user, part := range []float64{1, .1} {
			id := s.Admit(strconv.Itoa(len(s.Jobs)), plan.Asked{User: int32(user), Declared: unit.Seconds(truth * part), Submit: s.Now})
			j := &s.Jobs[id]
			j.Phase, j.Started, j.Ended, j.Service = plan.Finished, s.Now, s.Now.Add(unit.Seconds(ran)), int64(ran*1e9)
			o.Learn(s.View(), id)
		}
		s.Now = s.Now.Add(2 * unit.Hour)
	}
	for _, came := range []unit.Duration{0, 10 * unit.Minute, 40 * unit.Minute} {
		var ranks [2]float64
		for user, declared := range []unit.Duration{unit.Hour, 6 * unit.Minute} {
			id := s.Admit(strconv.Itoa(len(s.Jobs)), plan.Asked{User: int32(user), Declared: declared, Submit: s.Now})
			s.Jobs[id].Run, s.Jobs[id].Service = plan.None, int64(came)*1000
			key, _ := o.Key(s.View(), id)
			ranks[user] = float64(key[1])
		}
		if ratio := ranks[1] / ranks[0]; ratio < .8 || ratio > 1.2 {
			t.Errorf("after %s who declares a tenth ranks at %.2f of an honest user", came, ratio)
		}
	}
}

// TestKnown: an operator reads what a job is ranked by: nothing, others, its own kind, and that its
// work has changed.
func TestKnown(t *testing.T) {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000}, {Gang: 2, Devices: 1, Share: 1000}}
	o := muster.New(muster.Default())
	end := func(shape int32, jobs int, ran unit.Duration) {
		for range jobs {
			id := s.Admit(strconv.Itoa(len(s.Jobs)), plan.Asked{Shape: shape, Submit: s.Now})
			j := &s.Jobs[id]
			j.Phase, j.Started, j.Ended, j.Service = plan.Finished, s.Now, s.Now.Add(ran), int64(ran)*s.Shapes[shape].Milli(shape+1)
			o.Learn(s.View(), id)
		}
		s.Now = s.Now.Add(24 * unit.Hour)
	}
	for _, c := range []struct {
		shape int32
		jobs  int
		ran   unit.Duration
		want  string
	}{
		{0, 0, 0, "nothing is known of how long it runs, so jobs that have used the least device time go first"},
		{1, 3, unit.Hour, "no job like it has finished; how long it runs is told by others: 3 of whatever size"},
		{0, 12, unit.Hour, "how long it runs is told by the jobs that have finished: 12 like it, 15 of whatever size"},
		{0, 8, 8 * unit.Hour, "how long it runs is told by the jobs that have finished: 20 like it, 23 of whatever size\nthe latest 8 like it took 8.0 times as long as the 12 before"},
	} {
		end(c.shape, c.jobs, c.ran)
		id := s.Admit(strconv.Itoa(len(s.Jobs)), plan.Asked{Submit: s.Now})
		if got := strings.Join(o.Known(s.View(), id), "\n"); got != c.want {
			t.Errorf("after %d more jobs:\n%s\nwant:\n%s", c.jobs, got, c.want)
		}
	}
}

// TestKnownByReport: and what it reports, and what that counts for; and by how many that run the same.
func TestKnownByReport(t *testing.T) {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes, s.Commands = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000}}, []string{"python train.py", "python eval.py"}
	o := muster.New(muster.Default())
	admit := func(command int32) *plan.Job {
		j := &s.Jobs[s.Admit("job-"+strconv.Itoa(len(s.Jobs)), plan.Asked{Command: command, Submit: s.Now})]
		j.Run, j.Started, j.Foretold, j.ForetoldAt = plan.None, s.Now, 2*unit.Hour, s.Now
		return j
	}
	for _, c := range []struct {
		train, eval int
		want        string
	}{
		{0, 0, "by its report it runs for 2h in all, which counts for nothing before jobs that reported have finished\n" +
			"nothing is known of how long it runs, so jobs that have used the least device time go first"},
		{3, 2, "by its report it runs for 2h in all\n" +
			"what part of that it takes is told by the jobs that have reported and finished: 3 like it, 5 of whatever command\n" +
			"how long it runs is told by the jobs that have finished: 3 like it, 5 of whatever command"},
	} {
		for i := range c.train + c.eval {
			j := admit(int32(1 + i/max(1, c.train)))
			j.Phase, j.Ended, j.Service = plan.Finished, s.Now.Add(unit.Hour), int64(unit.Hour)*1000
			o.Learn(s.View(), plan.JobID(len(s.Jobs)-1))
		}
		s.Now = s.Now.Add(4 * unit.Hour)
		admit(1)
		s.Now = s.Now.Add(4 * unit.Hour)
		if got := strings.Join(o.Known(s.View(), plan.JobID(len(s.Jobs)-1)), "\n"); got != c.want {
			t.Errorf("after %d jobs:\n%s\nwant:\n%s", c.train+c.eval, got, c.want)
		}
	}
}

// TestAlone: of gangs of which two never run side by side half of the device time counts.
func TestAlone(t *testing.T) {
	s := plan.NewState(cluster.Uniform("one", 4, 4, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{{Gang: 8, Devices: 1, Share: 1000}, {Gang: 9, Devices: 1, Share: 1000}}
	o := muster.New(muster.Default())
	var ranks [2]float64
	for shape := range ranks {
		id := s.Admit(strconv.Itoa(shape), plan.Asked{Shape: int32(shape), Submit: s.Now})
		s.Jobs[id].Run = plan.None
		key, _ := o.Key(s.View(), id)
		ranks[shape] = float64(key[1])
	}
	if got, want := ranks[1]/ranks[0], 9./8/2; math.Abs(got-want) > 1e-6 {
		t.Errorf("a gang of 9 of 16 devices ranks at %.4f of one of 8, want %.4f", got, want)
	}
}
