package random_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/allocate/random"
)

func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return random.New(random.Default()) })
}

func BenchmarkPlace(b *testing.B) {
	allocatetest.Bench(b, func() allocate.Placer { return random.New(random.Default()) })
}
