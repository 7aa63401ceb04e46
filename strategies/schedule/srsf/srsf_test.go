package srsf_test

import (
	"testing"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/srsf"
)

func TestConforms(t *testing.T) {
	scheduletest.Conform(t, func() schedule.Order { return srsf.Order{} })
}

func TestScenarios(t *testing.T) {
	scheduletest.Scenarios(t, "testdata", func() compose.Parts {
		p := scheduletest.With(srsf.Order{})
		p.Estimator = declared.Estimator{}
		return p
	})
}
