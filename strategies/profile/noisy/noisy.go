// Package noisy believes the truth times an error: an estimator of a known
// quality, to see how much a strategy depends on good estimates. The error of a job
// is drawn from the seed and the job's number alone, so that it stays the same
// however often the job is looked at and whatever else happens.
package noisy

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "noisy", Part: profile.EstimatePart, Status: "null",
	Source: "yardstick", Idea: "the true run time, wrong by a random factor of a known spread",
	Goal: "throughput", Needs: "the truth", Live: "refused, because only a simulation knows true run times",
}

// The laws that an error can follow.
const (
	Lognormal = "lognormal"
	Uniform   = "uniform"
)

// Config is how wrong estimates are.
type Config struct {
	// Error is the law of the factor: lognormal, with median 1 and Spread the standard
	// deviation of its logarithm, or uniform within Spread of 1.
	Error  string  `yaml:"error" of:"lognormal uniform"`
	Spread float64 `yaml:"spread" least:"0" most:"10"`
	// Seed draws the errors.
	Seed uint64 `yaml:"seed"`
}

// Default returns the configuration used where none is given: two thirds of the
// estimates are right within a factor of 1.65.
func Default() Config { return Config{Error: Lognormal, Spread: 0.5} }

// Validate says what is wrong with a configuration besides.
func (c Config) Validate() error {
	if c.Error == Uniform && c.Spread >= 1 {
		return fmt.Errorf("spread is %g: an error that is uniform must stay below 1", c.Spread)
	}
	return nil
}

// Estimator is the strategy.
type Estimator struct{ config Config }

var (
	_ profile.Estimator = Estimator{}
	_ profile.Oracular  = Estimator{}
)

// New returns the estimator; the configuration must be valid.
func New(c Config) Estimator { return Estimator{c} }

// Estimate is the truth times the job's error. High undoes the error as far as it
// goes in nine cases of ten.
func (e Estimator) Estimate(v plan.View, job plan.JobID) profile.Estimate {
	truth := v.Job(job).Oracle
	if truth <= 0 {
		return profile.Estimate{}
	}
	chance := rand.New(rand.NewPCG(e.config.Seed, uint64(job)))
	factor, least := 1.0, 1.0 // least: the factor is smaller in one case of ten
	if e.config.Error == Uniform {
		factor, least = 1+e.config.Spread*(2*chance.Float64()-1), 1-e.config.Spread*0.8
	} else {
		factor, least = math.Exp(e.config.Spread*chance.NormFloat64()), math.Exp(-e.config.Spread*normal90)
	}
	mean := truth.Seconds() * factor
	return profile.Estimate{Mean: max(1, unit.Seconds(mean)), High: max(1, unit.Seconds(mean/least))}
}

// normal90 is what a standard normal variable stays below in nine cases of ten.
const normal90 = 1.2815515655446004

// Learn changes nothing: the error does not shrink with experience.
func (Estimator) Learn(plan.View, plan.JobID) {}

// WantsTruth asks the driver to tell true run times.
func (Estimator) WantsTruth() {}
