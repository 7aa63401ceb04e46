package consolidate_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/allocate/consolidate"
)

func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return consolidate.New() })
}

func BenchmarkPlace(b *testing.B) {
	allocatetest.Bench(b, func() allocate.Placer { return consolidate.New() })
}
