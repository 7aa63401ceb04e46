package bestfit_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/allocate/bestfit"
)

func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return bestfit.New(bestfit.Default()) })
}

func BenchmarkPlace(b *testing.B) {
	allocatetest.Bench(b, func() allocate.Placer { return bestfit.New(bestfit.Default()) })
}
