package liquid_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/liquid"
	"github.com/musterdl/muster/schedule/scheduletest"
)

func TestConformance(t *testing.T) {
	scheduletest.ConformJoint(t, func() allocate.Joint { return liquid.NewBatch(liquid.DefaultBatch()) })
}
