package catalogue

import (
	"maps"
	"testing"

	"github.com/musterdl/muster/model/strategy"
)

// List adds a strategy whose options are itself for the time of a test.
func List[C any](t *testing.T, c C, d strategy.Description) {
	before := All
	All = append(before[:len(before):len(before)], tuned(d, func() C { return c }, func(c C, _ Env) any { return c }))
	t.Cleanup(func() { All = before })
}

// WithOptions is the composition with other options of one strategy: a value of its
// configuration. It panics where there is no such strategy: that is ours to know.
func (c Composition) WithOptions(name string, options any) Composition {
	if _, ok := Find(name); !ok {
		panic("catalogue: there is no strategy " + name)
	}
	c.options = maps.Clone(c.options)
	if c.options == nil {
		c.options = map[string]any{}
	}
	c.options[name] = options
	return c
}
