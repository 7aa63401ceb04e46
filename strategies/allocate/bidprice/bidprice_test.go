package bidprice_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/strategies/allocate/bidprice"
)

func newPlacer() allocate.Placer { return bidprice.New(bidprice.Default()) }

func TestConforms(t *testing.T) { allocatetest.Conform(t, newPlacer) }

func BenchmarkPlace(b *testing.B) { allocatetest.Bench(b, newPlacer) }
