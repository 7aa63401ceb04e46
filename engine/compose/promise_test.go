package compose_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// quick is tiresias with a threshold that a job of one device passes after two minutes.
const quick = "order: tiresias\noptions: {tiresias: {queues-device-s: [120]}}\n"

// TestPromiseOfTheWholeIsKept: a gang of all devices comes soon after a job of half of them, and then two of a
// quarter each; stops take half a minute. Whenever it was promised their room it starts there
// (site.keepsPromises), and it computes before anybody takes that from it.
func TestPromiseOfTheWholeIsKept(t *testing.T) {
	for _, order := range []string{"muster", "muster+easy", "muster+cheapest", "las", "las+newest", quick} {
		t.Run(order, func(t *testing.T) {
			calmly(t, draws.Once, order, 8, queue.Tree{}, 30*unit.Second, func(t *rapid.T, s *site) {
				s.job("", 4, 5*unit.Hour)
				s.until(unit.Time(10 * unit.Second))
				gang := s.job("", 8, 5*unit.Hour)
				s.job("", 2, 5*unit.Hour)
				s.job("", 2, 5*unit.Hour)
				s.until(unit.Time(20 * unit.Minute))
				if ran := s.e.View().Executed(gang); ran < 10*unit.Second {
					t.Fatalf("the gang was started %d times and computed %d s", s.e.View().Job(gang).Attempt, ran/unit.Second)
				}
			})
		})
	}
}

// TestPromisesAreKept: so it is under orders and joint deciders that stop runs for others, in a stream of jobs, elastic ones among
// them, for which stops take up to a minute. TestRightsUnderEveryDecider looks at the same.
func TestPromisesAreKept(t *testing.T) {
	var kept int
	for _, name := range []string{"muster", "las", quick, "srtf", "srsf+equal-share", "las+equal-share", "mlfs", "express", "edf", "elastic", "afs", "easyscale", "gandiva", "titan", "optimus", "chronus", "liquid-batch", "hydro"} {
		t.Run(name, func(t *testing.T) {
			calmly(t, draws.Cases{Few: 10}, name, 8, queue.Tree{}, unit.Minute, func(t *rapid.T, s *site) {
				s.stopDelay = unit.Duration(rapid.IntRange(1, 60).Draw(t, "stop delay")) * unit.Second
				for range 30 {
					r := workload.Resources{Gang: int32(rapid.IntRange(1, 8).Draw(t, "gang")), Devices: 1, Share: 1000}
					if rapid.Bool().Draw(t, "elastic") {
						r.Gang, r.Sizes = 4, []int32{1, 2, 4, 8}
					}
					takes := unit.Duration(rapid.IntRange(60, 2000).Draw(t, "takes")) * unit.Second
					s.submit(workload.Job{Resources: r, Estimate: takes, Deadline: 2 * takes, Checkpoint: workload.Checkpoint{OnRequest: true}}, takes)
					for until := s.now.Add(unit.Duration(rapid.IntRange(1, 300).Draw(t, "between")) * unit.Second); s.now < until; {
						s.pass(until.Sub(s.now))
					}
				}
				kept += s.kept
			})
		})
	}
	if kept < 300 && !t.Failed() {
		t.Errorf("only %d promises were kept: that tests too little", kept)
	}
}

// TestWhoDidNotSaveIsLeftAlone: jobs of which their owner says that they save when asked, and that do not,
// are stopped once each at most. From then on they count as jobs that never save, also after a restart and
// for whoever prices their stop; one that does save when it is asked again counts as before.
func TestWhoDidNotSaveIsLeftAlone(t *testing.T) {
	for _, order := range []string{"muster", "muster+easy", "las", "las+cheapest", quick} {
		t.Run(order, func(t *testing.T) {
			calmly(t, draws.Once, order, 8, queue.Tree{}, 30*unit.Second, func(t *rapid.T, s *site) {
				s.deaf = true
				for i, workers := range []int32{4, 8, 2, 2} {
					s.until(unit.Time(10*i) * unit.Time(unit.Second))
					s.job("", workers, 5*unit.Hour)
				}
				var lost unit.Duration
				s.look = func(c *plan.Commit) {
					for i := 0; c != nil && i < len(c.Changes); i++ {
						x, v := &c.Changes[i], s.e.View()
						r := v.Run(x.Run)
						switch ran := s.now.Sub(r.Began); {
						case x.Verb != plan.Stop:
						case x.Job == 1 && ran*8 < lost:
							t.Fatalf("the gang is stopped after %d us, others lost %d device us for it", ran, lost)
						case x.Job != 1 && x.Reason.A == 1:
							lost += ran * unit.Duration(r.Workers)
						}
					}
				}
				s.until(unit.Time(2 * unit.Hour))
				s.look = nil
				s.restart()
				v, stopped := s.e.View(), 0
				for id := range plan.JobID(v.Jobs()) {
					j := v.Job(id)
					if stopped += int(j.Preemptions); j.Preemptions > 1 || j.Checkpoint.Failed != (j.Preemptions > 0) || j.Checkpoint.OnRequest == j.Checkpoint.Failed {
						t.Fatalf("job %d was stopped %d times, and is believed to save when asked: %+v", id, j.Preemptions, j.Checkpoint)
					}
					if !j.Checkpoint.Failed || j.Run == plan.None {
						continue
					}
					if lost, _, _ := victims.Price(v, j.Run); lost != v.Executed(id)-j.Executed {
						t.Fatalf("to stop job %d is said to lose %d s", id, lost/unit.Second)
					}
				}
				if stopped == 0 {
					t.Fatal("nobody was stopped: that tests nothing")
				}
				s.deaf = false
				id := plan.JobID(0)
				for v.Job(id).Phase != plan.Active || !v.Job(id).Checkpoint.Failed {
					id++
				}
				s.step(engine.Event{Kind: engine.Requeue, Job: id})
				s.until(s.now.Add(unit.Minute))
				if c := s.e.View().Job(id).Checkpoint; !c.OnRequest || c.Failed {
					t.Fatalf("job %d saved when it was asked again, and is believed to be %+v", id, c)
				}
			})
		})
	}
}
