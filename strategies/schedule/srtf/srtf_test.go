package srtf_test

import (
	"testing"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/srtf"
)

func TestConforms(t *testing.T) {
	scheduletest.Conform(t, func() schedule.Order { return srtf.Order{} })
}

func TestScenarios(t *testing.T) {
	scheduletest.Scenarios(t, "testdata", func() compose.Parts {
		p := scheduletest.With(srtf.Order{})
		p.Estimator = declared.Estimator{}
		return p
	})
}
