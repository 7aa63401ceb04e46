package compose_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// quick is tiresias with a threshold that a job of one device passes after two minutes.
const quick = "order: tiresias\noptions: {tiresias: {queues-device-s: [120]}}\n"

// TestPromiseOfTheWholeIsKept: a gang of all devices comes soon after a job of half of them, and then two of a
// quarter each; stops take half a minute. Whenever it was promised their room it starts there
// (site.keepsPromises), and it computes before anybody takes that from it.
func TestPromiseOfTheWholeIsKept(t *testing.T) {
	for _, order := range []string{"muster", "muster+easy", "muster+cheapest", "las", "las+newest", quick} {
		t.Run(order, func(t *testing.T) {
			draws.Few(t, 1)
			calm(t, order, 8, queue.Tree{}, 30*unit.Second, func(t *rapid.T, s *site) {
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
			draws.Few(t, 10)
			draws.Seed(t, 0)
			calm(t, name, 8, queue.Tree{}, unit.Minute, func(t *rapid.T, s *site) {
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
