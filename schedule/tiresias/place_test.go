package tiresias_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/schedule/tiresias"
)

func newPlacer() allocate.Placer { return tiresias.NewPlacer(tiresias.Default()) }

func TestPlacerConforms(t *testing.T) { allocatetest.Conform(t, newPlacer) }
