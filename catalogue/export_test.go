package catalogue

import (
	"testing"

	"github.com/musterdl/muster/model/strategy"
)

// List adds a strategy whose options are itself for the time of a test.
func List[C any](t *testing.T, c C, d strategy.Description) {
	before := All
	All = append(before[:len(before):len(before)], tuned(d, func() C { return c }, func(c C, _ Env) any { return c }))
	t.Cleanup(func() { All = before })
}
