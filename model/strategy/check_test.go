package strategy

import (
	"errors"
	"math"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

type part struct {
	Size int `yaml:"size" least:"1"`
}

type tuning struct {
	Order  string        `yaml:"order" of:"fifo srtf"`
	Lanes  int           `yaml:"lanes" least:"1" most:"10"`
	Every  unit.Duration `yaml:"every" above:"0"`
	Waste  float64       `yaml:"waste" least:"0" below:"1"`
	Steps  [2]float64    `yaml:"steps" above:"0"`
	Parts  []part        `yaml:"parts"`
	Within part          `yaml:"within"`
	Free   int           `yaml:"free"`
}

// Validate forbids what two fields are together.
func (c tuning) Validate() error {
	if c.Lanes == c.Free {
		return errors.New("lanes and free are the same")
	}
	return nil
}

// TestCheck: a field beyond its bounds is named with what it is and what it must be, also
// inside of others; what has no tags may be anything.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		spoil func(*tuning)
		wrong string
	}{
		{func(*tuning) {}, ""},
		{func(c *tuning) { c.Free = -7 }, ""},
		{func(c *tuning) { c.Order = "lifo" }, `order is "lifo": it must be one of fifo, srtf`},
		{func(c *tuning) { c.Lanes = 0 }, "lanes is 0: it must be at least 1 and at most 10"},
		{func(c *tuning) { c.Lanes = 11 }, "lanes is 11: it must be at least 1 and at most 10"},
		{func(c *tuning) { c.Every = 0 }, "every is 0s: it must be above 0s"},
		{func(c *tuning) { c.Waste = 1 }, "waste is 1: it must be at least 0 and below 1"},
		{func(c *tuning) { c.Waste = math.NaN() }, "waste is NaN: it must be at least 0 and below 1"},
		{func(c *tuning) { c.Steps[1] = -.5 }, "steps[1] is -0.5: it must be above 0"},
		{func(c *tuning) { c.Parts[0].Size = 0 }, "parts[0].size is 0: it must be at least 1"},
		{func(c *tuning) { c.Within.Size = 0 }, "within.size is 0: it must be at least 1"},
		{func(c *tuning) { c.Free = 2 }, "lanes and free are the same"},
	} {
		options := tuning{"fifo", 2, unit.Second, .5, [2]float64{1, 2}, []part{{3}}, part{4}, 0}
		c.spoil(&options)
		for _, given := range []any{options, &options} {
			if err := Check(given); (err == nil) != (c.wrong == "") || err != nil && err.Error() != c.wrong {
				t.Errorf("%+v: %v, expected %q", options, err, c.wrong)
			}
		}
	}
	if err := Check(nil); err != nil {
		t.Errorf("a strategy without options: %v", err)
	}
}
