// Package fifo starts jobs in the order they came: the null of step 3. With
// backfill, smaller work fills in around a job that does not fit; without, nobody
// passes it.
package fifo

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "fifo", Part: schedule.OrderPart, Status: "null",
	Source: "folklore; with backfill as YARN and Slurm do it without reservations",
	Idea:   "in order of submission; smaller work fills in around what does not fit",
	Goal:   "throughput", Needs: "nothing", Live: "as simulated",
}

// Strict describes the same order without backfill.
var Strict = strategy.Description{
	Name: "fifo-strict", Part: schedule.OrderPart, Status: "read",
	System: "YARN-CS", Source: "the baseline of Tiresias (Gu et al., NSDI 2019)",
	Idea: "in order of submission; nobody passes a job that does not fit",
	Goal: "throughput", Needs: "nothing", Live: "as simulated",
}

// Config is how strict the order is.
type Config struct {
	// Backfill lets jobs that fit start ahead of one that does not.
	Backfill bool `yaml:"backfill"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Backfill: true} }

// Order is the strategy.
type Order struct{ config Config }

var _ schedule.Order = Order{}

// New returns the order.
func New(c Config) Order { return Order{c} }

// Key is the priority, then the submission.
func (Order) Key(v plan.View, job plan.JobID) (schedule.Key, unit.Time) {
	j := v.Job(job)
	return schedule.Key{-int64(j.Priority), int64(j.Submit)}, unit.Never
}

// Rules never preempt.
func (o Order) Rules() schedule.Rules { return schedule.Rules{Strict: !o.config.Backfill} }
