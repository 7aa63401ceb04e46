package compose_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// calm runs a history on one node of so many devices, on which every commit is held to the
// law; ends take as long as they are said to, and nothing is drawn.
func calm(t *testing.T, ref string, devices int, tree queue.Tree, stops unit.Duration, play func(t *rapid.T, s *site)) {
	t.Helper()
	calmly(t, draws.Once, ref, devices, tree, stops, play)
}

// calmly runs so many histories.
func calmly(t *testing.T, cases draws.Cases, ref string, devices int, tree queue.Tree, stops unit.Duration, play func(t *rapid.T, s *site)) {
	t.Helper()
	cases.Check(t, func(r *rapid.T) {
		s := newSite(r, cluster.Uniform("site", 1, devices, cluster.Model{Name: "gpu", Speed: 1}, 1), tree, build(t, ref))
		s.stopDelay = stops
		play(r, s)
	})
}

// job submits one that saves when asked.
func (s *site) job(tenant string, workers int32, takes unit.Duration) plan.JobID {
	return s.submit(workload.Job{Tenant: tenant, Resources: workload.Resources{Gang: workers, Devices: 1, Share: 1000}, Estimate: takes, Checkpoint: workload.Checkpoint{OnRequest: true}}, takes)
}

// until lets time go on.
func (s *site) until(at unit.Time) {
	for s.now < at {
		s.pass(at.Sub(s.now))
	}
}

// preempted is how often jobs were displaced in all.
func (s *site) preempted() (n int32) {
	for id := range plan.JobID(s.e.View().Jobs()) {
		n += s.e.View().Job(id).Preemptions
	}
	return n
}

// TestGuaranteeIsTakenBackOnce: under tiresias two queues are guaranteed four devices of
// eight each, one holds seven and the other wants three. It has them within seconds by two
// displacements, and from then on nobody is displaced at all.
func TestGuaranteeIsTakenBackOnce(t *testing.T) {
	tree := queue.Flat("red", "blue")
	tree.Protect = 3 * unit.Second
	for i := 1; i < 3; i++ {
		tree.Queues[i].Guarantee = []queue.Amount{{Milli: 4000}}
	}
	tree.Queues[2].Limit = []queue.Amount{{Milli: 6000}}
	calm(t, "tiresias", 8, tree, unit.Second, func(t *rapid.T, s *site) {
		for range 3 {
			s.job("red", 2, unit.Hour)
		}
		s.job("red", 1, unit.Hour)
		for range 3 {
			s.job("blue", 1, unit.Hour)
		}
		s.until(unit.Time(20 * unit.Second))
		held, _ := count(s.e.View(), 3)
		if displaced := s.preempted(); held[2] != 3000 || displaced > 2 {
			t.Fatalf("blue holds %d of the 3000 that it asks for after %d displacements", held[2], displaced)
		}
		before := s.preempted()
		s.until(unit.Time(10 * unit.Minute))
		if more := s.preempted() - before; more > 0 {
			t.Fatalf("%d more displacements for nothing", more)
		}
	})
}

// TestClaimsBeforeRanks: a job within its queue's guarantee takes from who has borrowed,
// and leaves the runs of its own queue alone, though it ranks before them.
func TestClaimsBeforeRanks(t *testing.T) {
	for _, order := range []string{"las", "srtf", "srsf"} {
		t.Run(order, func(t *testing.T) {
			tree := queue.Flat("a", "b")
			tree.Protect = 0
			tree.Queues[1].Guarantee = []queue.Amount{{Milli: 2000}}
			calm(t, order, 2, tree, unit.Second, func(t *rapid.T, s *site) {
				own := s.job("a", 1, 3*unit.Hour) // it ranks last
				s.until(unit.Time(60 * unit.Second))
				lent := s.job("b", 1, 2*unit.Hour)
				s.until(unit.Time(150 * unit.Second))
				third := s.job("a", 1, unit.Hour)
				s.until(unit.Time(165 * unit.Second))
				v := s.e.View()
				if v.Job(own).Preemptions != 0 || v.Job(lent).Preemptions != 1 || v.Job(third).Phase != plan.Active {
					t.Fatalf("the job of its own queue was displaced %d times, the one that borrows %d times, and the third is %s",
						v.Job(own).Preemptions, v.Job(lent).Preemptions, v.Job(third).Phase)
				}
			})
		})
	}
}

// TestNobodyShrinksForNobody: an elastic run gives workers up where that lets another start,
// and keeps them where what it gave up would not be enough.
func TestNobodyShrinksForNobody(t *testing.T) {
	for gang := int32(2); gang <= 4; gang += 2 {
		calm(t, "fifo+equal-share", 4, queue.Tree{}, unit.Second, func(t *rapid.T, s *site) {
			elastic := s.submit(workload.Job{Resources: workload.Resources{Gang: 4, Sizes: []int32{1, 2, 4}, Devices: 1, Share: 1000}, Checkpoint: workload.Checkpoint{OnRequest: true}}, unit.Hour)
			other := s.job("", gang, unit.Hour)
			s.until(unit.Time(10 * unit.Minute))
			v := s.e.View()
			if started := v.Job(other).Phase == plan.Active; started != (gang == 2) || v.Job(elastic).Attempt > 1 != started {
				t.Fatalf("a gang of %d is %s and the elastic job is in attempt %d", gang, v.Job(other).Phase, v.Job(elastic).Attempt)
			}
		})
	}
}

// TestRankCountsAtALimit: where a limit and not the devices keeps a job from starting, it
// displaces who ranks behind it all the same.
func TestRankCountsAtALimit(t *testing.T) {
	tree := queue.Tree{Queues: []queue.Queue{queue.Root()}}
	tree.Queues[0].Limit = []queue.Amount{{Milli: 1000}}
	for _, ref := range []string{"srtf", "srtf+newest"} {
		calm(t, ref, 2, tree, unit.Second, func(t *rapid.T, s *site) {
			long := s.job("", 1, unit.Hour)
			s.until(unit.Time(10 * unit.Second))
			short := s.job("", 1, unit.Minute)
			if v := s.e.View(); v.Job(short).Phase != plan.Active || v.Job(long).Phase != plan.Waiting {
				t.Fatalf("the shorter job is %s and the longer %s", v.Job(short).Phase, v.Job(long).Phase)
			}
		})
	}
}

// TestPromiseStandsUntilItBegins: what was promised is not taken back for a better rank, also
// after a restart; once it has begun it is.
func TestPromiseStandsUntilItBegins(t *testing.T) {
	calm(t, "srtf", 1, queue.Tree{}, 30*unit.Second, func(t *rapid.T, s *site) {
		s.job("", 1, unit.Hour)
		s.until(unit.Time(10 * unit.Second))
		short, shorter := s.job("", 1, 20*unit.Minute), s.job("", 1, unit.Minute)
		s.until(unit.Time(12 * unit.Second))
		s.restart()
		if v := s.e.View(); v.Job(short).Phase != plan.Active || v.Job(shorter).Phase != plan.Waiting {
			t.Fatalf("at first the short job is %s and the shorter %s", v.Job(short).Phase, v.Job(shorter).Phase)
		}
		s.until(unit.Time(45 * unit.Second))
		if v := s.e.View(); v.Job(short).Phase != plan.Waiting || v.Job(shorter).Phase != plan.Active {
			t.Fatalf("then the short job is %s and the shorter %s", v.Job(short).Phase, v.Job(shorter).Phase)
		}
	})
}

// TestNewcomersAreToldOfTheRound: who comes between two rounds of a decider is told that he
// waits for it, and not that somebody is ahead whom nobody may pass.
func TestNewcomersAreToldOfTheRound(t *testing.T) {
	for _, ref := range []string{"pollux", "liquid-batch"} {
		calm(t, ref, 4, queue.Tree{}, unit.Second, func(t *rapid.T, s *site) {
			for range 3 {
				s.job("", 1, unit.Hour)
			}
			if v := s.e.View(); v.Job(2).Phase == plan.Waiting && v.Job(2).Reason.Code != plan.RoundPlan {
				t.Fatalf("under %s the third job is told: %s", ref, v.Job(2).Reason.Words(v))
			}
		})
	}
}

// TestCoresGiveWay: work that holds cores alone gives way to who is guaranteed the devices that it keeps idle,
// and to a higher priority; where the cores are enough for both, it goes on.
func TestCoresGiveWay(t *testing.T) {
	for _, order := range []string{"fifo", "muster", "tiresias", "afs"} {
		for cores, gives := range map[unit.Milli]bool{16_000: true, 20_000: false} {
			t.Run(fmt.Sprint(order, cores), func(t *testing.T) {
				c, tree := cluster.Uniform("site", 1, 8, cluster.Model{Name: "gpu", Speed: 1}, 1), queue.Flat("a", "b")
				c.Nodes[0].CPU, tree.Protect = cores, 0
				tree.Queues[2].Guarantee = []queue.Amount{{Milli: 8000}}
				s := newSite(t, c, tree, build(t, order))
				hog := s.submit(workload.Job{Tenant: "a", Resources: workload.Resources{Gang: 1, CPU: 10_000, Share: 1000}, Checkpoint: workload.Checkpoint{OnRequest: true}}, 10*unit.Hour)
				s.until(unit.Time(10 * unit.Second))
				owner := s.submit(workload.Job{Tenant: "b", Resources: workload.Resources{Gang: 1, Devices: 8, CPU: 8000, Share: 1000}}, unit.Hour)
				s.until(unit.Time(10 * unit.Minute))
				if v := s.e.View(); v.Job(owner).Phase != plan.Active || v.Job(hog).Preemptions > 0 != gives {
					t.Errorf("the owner of the devices is %s, who holds the cores was stopped %d times", v.Job(owner).Phase, v.Job(hog).Preemptions)
				}
			})
		}
	}
}
