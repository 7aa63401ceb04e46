package spread_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/allocate/spread"
)

func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return spread.New(spread.Default()) })
}

func BenchmarkPlace(b *testing.B) {
	allocatetest.Bench(b, func() allocate.Placer { return spread.New(spread.Default()) })
}
