package sjf_test

import (
	"testing"

	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/sjf"
)

func TestConforms(t *testing.T) {
	scheduletest.Conform(t, func() schedule.Order { return sjf.Order{} })
}
