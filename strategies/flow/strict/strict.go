// Package strict gives each run one of eight strict classes on the links: the first
// class sends as much as it wants, the next what is left, and so on. By size, small
// jobs come first, in classes that grow geometrically with the device time a job
// still needs; so a short job is never slowed by a long one's traffic, and a long
// one is slowed by short ones only while they last. By priority, the owner says.
//
// This is folklore: what one does with a switch that has eight strict queues and
// nothing else. It looks at jobs one by one, where coflow schedulers weigh what
// shares a bottleneck. Left out: starvation of the last class by an unending stream
// of small jobs, and moving a run between classes while it runs.
package strict

import (
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/remaining"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "strict", Part: flow.PolicyPart, Status: "null",
	Source: "folklore: strict priority queues of a switch",
	Idea:   "eight strict classes on every link; small jobs, or those of high priority, send first",
	Acts:   []strategy.Act{strategy.Class},
	Goal:   "throughput", Needs: "an estimate of the run time, where by size", Live: "cannot, because no driver sets classes on a link",
}

// Classes is how many strict classes there are, as switches have.
const Classes = 8

// The ways to choose a class.
const (
	BySize     = "size"
	ByPriority = "priority"
)

// Config says who comes first.
type Config struct {
	// By is size or priority.
	By string `yaml:"by" of:"size priority"`
	// FirstDeviceSec is the device time below which a job is in the first class, and
	// Ratio how much wider each further class is.
	FirstDeviceSec float64 `yaml:"first-device-s" above:"0"`
	Ratio          float64 `yaml:"ratio" above:"1"`
}

// Default returns the configuration used where none is given: from ten device
// minutes to four device weeks, which is what training jobs are like.
func Default() Config { return Config{By: BySize, FirstDeviceSec: 600, Ratio: 4} }

// Policy is the strategy.
type Policy struct{ config Config }

var _ flow.Policy = Policy{}

// New returns the policy; the configuration must be valid.
func New(c Config) Policy { return Policy{c} }

// Traffic puts the run in its class.
func (p Policy) Traffic(v plan.View, job plan.JobID) (t plan.TrafficTerms) {
	if v.Job(job).Traffic == 0 {
		return t // it sends nothing that could be ordered
	}
	if p.config.By == ByPriority {
		t.Class = byPriority(v.Job(job).Priority)
	} else {
		t.Class = p.bySize(v, job)
	}
	return t
}

// byPriority puts priority 0 in the middle: 4 and more is first, -3 and less last.
func byPriority(priority int32) int32 {
	return int32(min(max(Classes/2-int64(priority), 0), Classes-1))
}

// bySize counts how often the first bound must be widened to hold the job; one of
// unknown size comes last.
func (p Policy) bySize(v plan.View, job plan.JobID) int32 {
	left, _, known := remaining.Of(v, job)
	if !known {
		return Classes - 1
	}
	shape := v.Shape(job)
	size := left.Seconds() * float64(shape.Milli(shape.Gang)) / float64(unit.Whole)
	class := int32(0)
	for bound := p.config.FirstDeviceSec; size >= bound && class < Classes-1; bound *= p.config.Ratio {
		class++
	}
	return class
}
