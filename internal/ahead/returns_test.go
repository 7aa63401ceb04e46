package ahead_test

import (
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/scenetest"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// TestReturns: who looks ahead sees a lost node come back when it is expected to, and what waits for it start then; one
// that nobody counts on any more stays away.
func TestReturns(t *testing.T) {
	for away, starts := range map[string]unit.Time{"pass 10m": unit.Time(90 * unit.Minute), "pass 40m": unit.Time(2 * unit.Hour), "pass 3h": unit.Never} {
		s := scenetest.New("fifo+easy").Play(t, "nodes 2 V100\nsubmit gang gang=2 devices=8 estimate=9h\npass 1h\ndown node1\n"+away)
		future, err := ahead.Run(t.Context(), ahead.Config{State: s.Engine.State(), Policy: engine.DefaultPolicy(), Later: ahead.Returns(s.Engine.View()), Scheduler: func() (schedule.Scheduler, error) {
			c, err := catalogue.Resolve("fifo+easy")
			if err != nil {
				return nil, err
			}
			built, err := c.Build(catalogue.Env{Seed: 1}, false)
			return built.Scheduler, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		if fate, _ := future.Find("gang"); fate.Start != starts || fate.Job != plan.JobID(0) {
			t.Errorf("%s after its node was lost, gang is seen to start at %s, expected %s", away, unit.Duration(fate.Start), unit.Duration(starts))
		}
	}
}
