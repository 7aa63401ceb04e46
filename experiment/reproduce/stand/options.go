package stand

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

// Options are what stands behind the ? of a stand's name. A maker asks for each it
// knows; a key that it did not ask for is a mistake.
type Options struct {
	values url.Values
	known  map[string]bool
	wrong  error // the first value that could not be read
}

// Text is an option's value, or the one taken where it is not given.
func (o *Options) Text(key, without string) string {
	o.known[key] = true
	if !o.values.Has(key) {
		return without
	}
	return o.values.Get(key)
}

// Float is an option that is a number.
func (o *Options) Float(key string, without float64) float64 {
	text := o.Text(key, "")
	if text == "" {
		return without
	}
	x, err := strconv.ParseFloat(text, 64)
	o.note(key, err)
	return x
}

// Int is an option that is a whole number.
func (o *Options) Int(key string, without int) int {
	text := o.Text(key, "")
	if text == "" {
		return without
	}
	n, err := strconv.Atoi(text)
	o.note(key, err)
	return n
}

func (o *Options) note(key string, err error) {
	if err != nil && o.wrong == nil {
		o.wrong = fmt.Errorf("%s: %w", key, errors.Unwrap(err))
	}
}

// mistake is the first thing that is wrong with the options.
func (o *Options) mistake() error {
	if o.wrong != nil {
		return o.wrong
	}
	for _, key := range slices.Sorted(maps.Keys(o.values)) {
		if !o.known[key] {
			return fmt.Errorf("there is no option %q: it has %q", key, slices.Sorted(maps.Keys(o.known)))
		}
	}
	return nil
}
