package muster_test

import (
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/muster"
)

func TestConforms(t *testing.T) {
	often := muster.Config{Refresh: 10 * unit.Minute, Prior: 2, Switch: 10 * unit.Second}
	for name, c := range map[string]muster.Config{"default": muster.Default(), "often": often} {
		t.Run(name, func(t *testing.T) {
			scheduletest.Conform(t, func() schedule.Order { return muster.New(c) })
		})
	}
}
