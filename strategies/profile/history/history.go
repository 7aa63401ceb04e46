// Package history believes that a job will run as long as others like it did: the
// median of the finished jobs of the same tenant, class of work and number of
// workers, or of a coarser group where too few have finished. Nobody has to declare
// anything, and a tenant who submits the same work again and again, as many do
// (Helios: Hu et al., SC 2021; 3Sigma: Park et al., EuroSys 2018), is soon known.
//
// The median and not the mean is the estimate: run times of one group spread over
// several orders of magnitude, so that the mean of a few is the longest of them
// divided by their number, and says little about the next; the median of five is
// already of the right magnitude, and ranks groups of like spread alike.
//
// Left out: forgetting what is long past, and what a job's name or script tells.
package history

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "history", Part: profile.EstimatePart, Status: "after",
	Source: "after Helios (Hu et al., SC 2021) and 3Sigma (Park et al., EuroSys 2018)",
	Idea:   "the median run time of finished jobs of the same tenant, class and size",
	Goal:   "throughput", Needs: "nothing; learns from finished jobs", Live: "as simulated",
}

// Config tunes when a group is trusted.
type Config struct {
	// Least is how many jobs of a group must have finished before it is believed.
	Least int `yaml:"least" least:"1"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Least: 5} }

// Estimator is the strategy.
type Estimator struct {
	config Config
	groups map[group]*counts
	fresh  []sample // not yet counted: an estimate knows what ended before its instant
}

// group is what jobs have in common; anyone (or any number) is any.
type group struct{ tenant, class, gang int32 }

const anyone = -1

type sample struct {
	group
	ended unit.Time
	ran   unit.Duration
}

var _ profile.Estimator = (*Estimator)(nil)

// New returns an estimator that has seen nothing; the configuration must be valid.
func New(c Config) *Estimator { return &Estimator{config: c, groups: map[group]*counts{}} }

// Estimate is the median of the finest group that is believed, and its ninth
// decile; nothing while too few jobs of any kind have finished.
func (e *Estimator) Estimate(v plan.View, job plan.JobID) profile.Estimate {
	e.count(v.Now())
	for _, g := range of(v, job).coarser() {
		if c := e.groups[g]; c != nil && c.total >= e.config.Least {
			return profile.Estimate{Mean: c.quantile(0.5), High: c.quantile(0.9)}
		}
	}
	return profile.Estimate{}
}

// Learn takes in how long a finished job ran.
func (e *Estimator) Learn(v plan.View, job plan.JobID) {
	e.fresh = append(e.fresh, sample{of(v, job), v.Job(job).Ended, ran(v, job)})
}

// count adds the jobs that ended before now to their groups. Those of this instant
// wait, so that an estimate does not depend on which of them was reported first;
// after that counts do not depend on any order at all.
func (e *Estimator) count(now unit.Time) {
	later := e.fresh[:0]
	for _, s := range e.fresh {
		if s.ended >= now {
			later = append(later, s)
			continue
		}
		for _, g := range s.coarser() {
			if e.groups[g] == nil {
				e.groups[g] = &counts{}
			}
			e.groups[g].add(s.ran)
		}
	}
	e.fresh = later
}

// of is the finest group of a job.
func of(v plan.View, id plan.JobID) group {
	j := v.Job(id)
	return group{j.Tenant, j.Class, v.Shape(id).Gang}
}

// coarser lists a group and those it is part of, finest first.
func (g group) coarser() [4]group {
	return [4]group{g, {anyone, g.class, g.gang}, {anyone, anyone, g.gang}, {anyone, anyone, anyone}}
}

// ran is how long a finished job ran, as if on the workers it asked for: an elastic
// job's running time on others says less than its service does.
func ran(v plan.View, id plan.JobID) unit.Duration {
	s := v.Shape(id)
	if gang := s.Milli(s.Gang); s.Elastic() && gang > 0 {
		return unit.Duration(v.Job(id).Service / gang)
	}
	return v.Job(id).Executed
}
