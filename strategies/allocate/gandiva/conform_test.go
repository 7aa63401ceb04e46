package gandiva_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/gandiva"
)

func TestConformance(t *testing.T) {
	for _, swap := range []bool{false, true} {
		c := gandiva.Default()
		c.Swap = swap
		scheduletest.ConformJoint(t, func() allocate.Joint { return gandiva.New(c) })
	}
}
