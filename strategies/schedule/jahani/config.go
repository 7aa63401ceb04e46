package jahani

import (
	"errors"

	"github.com/musterdl/muster/model/unit"
)

// Config tunes the decision. Money is in the unit of the nodes' prices.
type Config struct {
	// HorizonSec is when it is decided anew at the latest.
	HorizonSec float64 `yaml:"horizon-s"`
	// NoticeSec is how long before it is needed a machine is sent for.
	NoticeSec float64 `yaml:"notice-s"`
	// Rho is how much dearer the lateness of a postponed job is than that of one that
	// runs.
	Rho float64 `yaml:"rho"`
	// LatePerHour is what an hour costs that a job is late.
	LatePerHour float64 `yaml:"late-per-hour"`
	// Guess is taken for the rest of a job of which nobody knows how long it takes.
	Guess unit.Duration `yaml:"guess"`
	// AskAbove is up to how many jobs times nodes the search is part of the decision;
	// larger problems are solved outside while the last plan stands.
	AskAbove int `yaml:"ask-above"`
}

// Default decides every hour at the latest.
func Default() Config {
	return Config{HorizonSec: 3600, NoticeSec: 300, Rho: 10, LatePerHour: 5, Guess: unit.Hour, AskAbove: 600}
}

// Validate says what is wrong with a configuration.
func (c Config) Validate() error {
	if c.HorizonSec <= 0 || c.NoticeSec < 0 || c.Rho < 1 || c.LatePerHour <= 0 || c.Guess <= 0 || c.AskAbove < 0 {
		return errors.New("horizon-s, late-per-hour and guess must be positive, notice-s and ask-above not negative and rho at least 1")
	}
	return nil
}
