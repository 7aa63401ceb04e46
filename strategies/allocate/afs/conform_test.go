package afs_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/afs"
)

func TestConformance(t *testing.T) {
	scheduletest.ConformJoint(t, func() allocate.Joint { return afs.New(afs.Default()) })
}
