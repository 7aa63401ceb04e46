package soonest_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/soonest"
)

func TestConform(t *testing.T) {
	scheduletest.ConformPart(t, allocate.SizePart, func() any { return soonest.New(soonest.Default()) })
	allocatetest.Conform(t, func() allocate.Placer { return soonest.NewPlacer() })
}
