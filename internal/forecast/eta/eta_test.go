package eta_test

import (
	"bytes"
	"context"
	"reflect"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/internal/forecast/eta"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

func scheduler() (schedule.Scheduler, error) {
	parts := scheduletest.With(fifo.New(fifo.Default()))
	parts.Estimator = declared.Estimator{}
	return compose.New(parts), nil
}

// begin is a busy little cluster, stopped between events.
func begin(t *testing.T) *simulated.Simulation {
	t.Helper()
	jobs, err := trace.Open("gen:helios?jobs=1500&load=0.9", trace.Options{Devices: 64, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	sched, err := scheduler()
	if err != nil {
		t.Fatal(err)
	}
	sim, err := simulated.New(simulated.Config{Cluster: scheduletest.Nodes(8, 8, 0), Jobs: trace.WithSaving(jobs, trace.Saving{}, 4), Scheduler: sched, Policy: engine.DefaultPolicy()})
	if err != nil {
		t.Fatal(err)
	}
	return sim
}

func config(s *plan.State, futures int) eta.Config {
	c := eta.Default()
	c.Ahead = ahead.Config{State: s, Scheduler: scheduler, Policy: engine.DefaultPolicy()}
	c.Futures = futures
	return c
}

// TestPromises walks through a history, promises the jobs that have just come to
// wait a start, and the ones that have just started an end. What is promised is in
// order, the same again, changes nothing, and is right more often than not.
func TestPromises(t *testing.T) {
	sim := begin(t)
	book := forecast.NewBook(forecast.DefaultConformal())
	var log []forecast.Entry
	asked := map[plan.JobID]bool{}
	for n := 0; ; n++ {
		more, err := sim.Advance()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		v := sim.State().View()
		if n%40 != 0 || v.Jobs() < 600 || len(asked) > 75 {
			continue
		}
		jobs := fresh(v, asked)
		before := save(t, sim.State())
		promises, err := eta.Promises(context.Background(), config(sim.State(), 6), book, jobs)
		if err != nil {
			t.Fatal(err)
		}
		if len(log) < 6 {
			again, err := eta.Promises(context.Background(), config(sim.State(), 6), book, jobs)
			if err != nil || !reflect.DeepEqual(promises, again) {
				t.Fatalf("asked twice: %+v, then %+v (%v)", promises, again, err)
			}
		}
		if !bytes.Equal(before, save(t, sim.State())) {
			t.Fatal("asking changed the state")
		}
		for i := range promises {
			p := &promises[i]
			if p.Made != v.Now() || p.Start.Low > p.Start.High || p.End.Low < p.Made || p.Samples != 6 {
				t.Fatalf("at %d: %+v", v.Now(), p)
			}
			log = append(log, forecast.Entry{Promise: p})
		}
	}
	log = append(log, outcomes(sim.State().View(), asked)...)
	all := forecast.Scores(log, unit.Never)[0]
	t.Logf("%+v", all)
	if all.Start.Judged() < 20 || all.Start.HitRate() < 0.4 || all.End.HitRate() < 0.5 {
		t.Errorf("%+v of starts and %+v of ends hold: expected most of them", all.Start, all.End)
	}
}

// fresh is up to two jobs that wait and one that runs which were not asked about.
func fresh(v plan.View, asked map[plan.JobID]bool) (jobs []plan.JobID) {
	waits, runs := 0, 0
	for id := range plan.JobID(v.Jobs()) {
		switch j := v.Job(id); {
		case asked[id]:
			continue
		case j.Phase == plan.Waiting && waits < 2:
			waits++
		case j.Phase == plan.Active && j.Started != unit.Never && runs < 1:
			runs++
		default:
			continue
		}
		asked[id] = true
		jobs = append(jobs, id)
	}
	return jobs
}

func outcomes(v plan.View, asked map[plan.JobID]bool) (log []forecast.Entry) {
	for id := range plan.JobID(v.Jobs()) {
		if asked[id] {
			log = append(log, forecast.Entry{Outcome: &forecast.Outcome{Job: int32(id), What: forecast.Started, At: v.Job(id).Started}},
				forecast.Entry{Outcome: &forecast.Outcome{Job: int32(id), What: forecast.Ended, At: v.Job(id).Ended}})
		}
	}
	return log
}

func save(t *testing.T, s *plan.State) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestNobody: no promise about jobs that are over, an error about those that never
// were, and past waits where no future is run.
func TestNobody(t *testing.T) {
	sim := begin(t)
	for sim.State().View().Jobs() < 700 {
		if _, err := sim.Advance(); err != nil {
			t.Fatal(err)
		}
	}
	v := sim.State().View()
	book := forecast.NewBook(forecast.DefaultConformal())
	eta.Waits(v, book)
	over, waits := plan.JobID(plan.None), plan.JobID(plan.None)
	for id := range plan.JobID(v.Jobs()) {
		switch phase := v.Job(id).Phase; {
		case phase.Over():
			over = id
		case phase.Waits():
			waits = id
		}
	}
	if p, err := eta.Promises(context.Background(), config(sim.State(), 2), book, []plan.JobID{over}); err != nil || len(p) > 0 {
		t.Errorf("of a job that is over: %v, %v", p, err)
	}
	if _, err := eta.Promises(context.Background(), config(sim.State(), 2), book, []plan.JobID{9999}); err == nil {
		t.Error("no error about a job that never was")
	}
	if waits == plan.None {
		t.Fatal("nobody waits: take another moment")
	}
	p, err := eta.Promises(context.Background(), config(sim.State(), 0), book, []plan.JobID{waits})
	if err != nil || len(p) != 1 || p[0].Basis != forecast.FromPast || p[0].Start != p[0].Baseline {
		t.Errorf("without futures: %+v, %v", p, err)
	}
}
