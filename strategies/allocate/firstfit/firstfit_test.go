package firstfit_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
)

func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return firstfit.Placer{} })
}

func BenchmarkPlace(b *testing.B) {
	allocatetest.Bench(b, func() allocate.Placer { return firstfit.Placer{} })
}
