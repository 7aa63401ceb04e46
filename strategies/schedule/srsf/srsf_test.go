package srsf_test

import (
	"testing"

	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/srsf"
)

func TestConforms(t *testing.T) {
	scheduletest.Conform(t, func() schedule.Order { return srsf.Order{} })
}
