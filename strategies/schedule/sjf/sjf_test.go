package sjf_test

import (
	"testing"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/sjf"
)

func TestConforms(t *testing.T) {
	scheduletest.Conform(t, func() schedule.Order { return sjf.Order{} })
}

func TestScenarios(t *testing.T) {
	scheduletest.Scenarios(t, "testdata", func() compose.Parts {
		p := scheduletest.With(sjf.Order{})
		p.Estimator = declared.Estimator{}
		return p
	})
}
