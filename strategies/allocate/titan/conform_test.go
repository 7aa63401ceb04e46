package titan_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/titan"
)

func TestConformance(t *testing.T) {
	scheduletest.ConformJoint(t, func() allocate.Joint { return titan.New(titan.Default()) })
}
