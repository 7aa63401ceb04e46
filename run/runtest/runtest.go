// Package runtest is what tests of drivers share: one text for each act of what must be
// seen to happen, and Show, which plays it on a driver for each act that the driver says
// that it can. So a yes in a driver's table is one that was seen.
package runtest

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Job is a job of a text, with what is true of it. One that saves on request is to be a
// training program that saves and goes on, any other one computes for as long as it may.
type Job struct {
	workload.Job
	workload.Truth
}

// Stage is a driver behind an engine that decides nothing by itself. Its jobs have the ids
// 0, 1 and so on.
type Stage interface {
	// Decide edits the state as a strategy would, now, and lets the driver carry it out.
	Decide(edit func(d *plan.Draft))
	// Pass lets so much time pass.
	Pass(d unit.Duration)
	// View is what the engine knows.
	View() plan.View
	Sight
}

// Sight is what happens as it is seen from outside of the engine.
type Sight interface {
	// Workers are the devices on which workers of a job are alive, one by one and ascending.
	Workers(id plan.JobID) []plan.DeviceID
	// Done is the work that a job has done and not lost: of one that computes all the time
	// the seconds that it had a device to itself, else a count that grows with it.
	Done(id plan.JobID) float64
	// Batch is how many samples a step of a job takes.
	Batch(id plan.JobID) int
	// Off is by how much a part of a device that was measured may be off.
	Off() float64
}

// Capped is a Stage that has no device whose parts it could measure. Part is what a job's
// process was told of its device.
type Capped interface {
	Part(id plan.JobID) float64
}

// Losing is a Stage whose driver keeps the processes that are left of a run. Lose lets the node 1 be lost, after an hour
// or so.
type Losing interface {
	Lose()
}

// Open makes a stage with four devices or more, the first four on node 0, and those jobs
// waiting.
type Open func(t *testing.T, jobs []Job) Stage

// Show plays the text of every act that a driver can. It fails for one without a text.
func Show(t *testing.T, able strategy.Ability, open Open) {
	for _, act := range slices.Concat(strategy.Basic, strategy.Acts) {
		if able.Means[act] == "" {
			continue
		}
		t.Run(string(act), func(t *testing.T) {
			text, ok := texts[act]
			if !ok {
				t.Fatalf("%s: %s %q, and nothing says what is to be seen", able.Driver, act, able.Means[act])
			}
			for i := range text.jobs {
				text.jobs[i].Name = string(rune('a' + i))
			}
			text.play(&look{T: t, Stage: open(t, text.jobs), able: able})
		})
	}
}

// Puppet is a Scheduler that decides what it is told to, once, and else nothing.
type Puppet struct {
	// Every is how long what it is told may wait.
	Every unit.Duration
	edit  func(d *plan.Draft)
}

// Tell has an edit be made at the next decision.
func (p *Puppet) Tell(edit func(d *plan.Draft)) { p.edit = edit }

// Idle reports whether what it was told has been decided.
func (p *Puppet) Idle() bool { return p.edit == nil }

// Decide implements schedule.Scheduler.
func (p *Puppet) Decide(d *plan.Draft, _ schedule.Trigger) unit.Time {
	if edit := p.edit; edit != nil {
		p.edit = nil
		edit(d)
	}
	return d.Now().Add(p.Every)
}
