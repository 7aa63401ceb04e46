package easyscale_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/easyscale"
	"github.com/musterdl/muster/schedule/scheduletest"
)

func TestConformance(t *testing.T) {
	scheduletest.ConformJoint(t, func() allocate.Joint { return easyscale.New(easyscale.Default()) })
}
