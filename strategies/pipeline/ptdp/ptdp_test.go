package ptdp_test

import (
	"testing"

	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/pipeline/ptdp"
)

func TestConform(t *testing.T) {
	scheduletest.ConformPart(t, parallel.PlannerPart, func() any { return ptdp.Planner{} })
	scheduletest.ConformPart(t, parallel.PlannerPart, func() any { return ptdp.ByHand{} })
}
