package jahani

import (
	"github.com/musterdl/muster/model/unit"
)

// Config tunes the decision. Money is in the unit of the nodes' prices.
type Config struct {
	// HorizonSec is when it is decided anew at the latest.
	HorizonSec float64 `yaml:"horizon-s" above:"0"`
	// NoticeSec is how long before it is needed a machine is sent for.
	NoticeSec float64 `yaml:"notice-s" least:"0"`
	// Rho is how much dearer the lateness of a postponed job is than that of one that
	// runs.
	Rho float64 `yaml:"rho" least:"1"`
	// LatePerHour is what an hour costs that a job is late.
	LatePerHour float64 `yaml:"late-per-hour" above:"0"`
	// Guess is taken for the rest of a job of which nobody knows how long it takes.
	Guess unit.Duration `yaml:"guess" above:"0"`
	// AskAbove is up to how many jobs times nodes the search is part of the decision;
	// larger problems are solved outside while the last plan stands.
	AskAbove int `yaml:"ask-above" least:"0"`
}

// Default decides every hour at the latest.
func Default() Config {
	return Config{HorizonSec: 3600, NoticeSec: 300, Rho: 10, LatePerHour: 5, Guess: unit.Hour, AskAbove: 600}
}
