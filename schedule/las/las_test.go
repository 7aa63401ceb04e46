package las_test

import (
	"testing"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/profile/declared"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/las"
	"github.com/musterdl/muster/schedule/scheduletest"
)

func TestConforms(t *testing.T) {
	scheduletest.Conform(t, func() schedule.Order { return las.New(las.Default()) })
}

func TestScenarios(t *testing.T) {
	scheduletest.Scenarios(t, "testdata", func() compose.Parts {
		p := scheduletest.With(las.New(las.Default()))
		p.Estimator = declared.Estimator{}
		return p
	})
}
