// Package pipeswitch prices handing a device from one job to another the way
// PipeSwitch does it (Bai et al., OSDI 2020): a standby process is ready, parameters
// lie pinned in host memory, and while they come over PCIe in groups of layers, the
// layers that have come compute already. The groups are the best there are (package
// switching), so most of the transfer hides behind the first pass.
//
// Read: the public code's stop, hand-over and per-block grouping; the paper's
// recursion is recalled. Ours: the exact search for the groups; that a training job
// that leaves has its persistent memory saved first, which the artefact's measured
// switches do not show; figures of a transfer's and a hand-over's fixed cost.
// Left out: the memory daemon, and two processes' memory at once.
package pipeswitch

import (
	"errors"
	"fmt"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/switching"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "pipeswitch", System: "PipeSwitch", Part: allocate.SwitchPart, Status: "read",
	Source: "Bai et al., OSDI 2020; netx-repo/PipeSwitch",
	Idea:   "parameters come in the best groups while earlier ones compute: a switch costs milliseconds",
	Goal:   "latency", Needs: "layers with parameters and times; else memory that stays",
	Live: "streams nothing, because no driver moves a model layer by layer: it only says how long a turn must last to pay for its switch",
}

// Switcher prices a switch: how long the device does nothing useful when one job gives
// way to another; plan.None is nobody.
type Switcher interface {
	Switch(v plan.View, from, to plan.JobID) unit.Duration
}

// Config is what a switch goes over. Transfers can be calibrated with switching.Fit.
type Config struct {
	// BandwidthGBps is that from host memory to the device and back.
	BandwidthGBps float64 `yaml:"bandwidth-gbytes-per-s"`
	// TransferUs and HandOverUs are the fixed cost of a group's transfer, and of letting
	// it compute.
	TransferUs unit.Duration `yaml:"transfer-us"`
	HandOverUs unit.Duration `yaml:"hand-over-us"`
	// StopMs is how long the job that leaves takes to stop: the layer it is in.
	StopMs float64 `yaml:"stop-ms"`
}

// Default has PCIe 3 with 16 lanes; the fixed costs are our assumptions.
func Default() Config {
	return Config{BandwidthGBps: 12, TransferUs: 20, HandOverUs: 20, StopMs: 1}
}

// Validate says what is wrong with a configuration.
func (c Config) Validate() error {
	switch {
	case !(c.BandwidthGBps > 0):
		return fmt.Errorf("bandwidth-gbytes-per-s is %g: it must be positive", c.BandwidthGBps)
	case c.TransferUs < 0 || c.HandOverUs < 0 || !(c.StopMs >= 0):
		return errors.New("transfer-us, hand-over-us and stop-ms must not be negative")
	}
	return nil
}

// switching is the mechanism with the costs of the configuration.
func (c Config) switching() switching.Switch {
	link := switching.Link{Fixed: c.TransferUs, BytesPerSec: c.BandwidthGBps * 1e9}
	return switching.Switch{Stop: unit.Seconds(c.StopMs / 1000), Save: link, Path: switching.Path{Links: []switching.Link{link}, Sync: c.HandOverUs}}
}

// Pricer is the strategy. The price of bringing a job follows from its profile alone
// and is remembered by job.
type Pricer struct {
	by       switching.Switch
	bringing map[plan.JobID]unit.Duration
}

var _ Switcher = (*Pricer)(nil)

// New returns the pricer; the configuration must be valid.
func New(c Config) *Pricer {
	return &Pricer{by: c.switching(), bringing: map[plan.JobID]unit.Duration{}}
}

// Switch stops one job, saves what of it stays, and brings the other.
func (p *Pricer) Switch(v plan.View, from, to plan.JobID) unit.Duration {
	cost := unit.Duration(0)
	if from != plan.None {
		cost += p.by.Cost(persistent(v, from), nil)
	}
	if to == plan.None {
		return cost
	}
	bring, known := p.bringing[to]
	if !known {
		bring = switching.Switch{Path: p.by.Path}.Cost(0, layers(v, to))
		p.bringing[to] = bring
	}
	return cost + bring
}

// persistent is what of a job's memory has to be moved, on each of its devices: what
// it declared, or its parameters, or else all of it.
func persistent(v plan.View, id plan.JobID) int64 {
	profile, bytes := v.ProfileOf(id), int64(0)
	for _, l := range profile.Layers {
		bytes += l.ParamKiB << 10
	}
	switch {
	case profile.Persistent > 0:
		return int64(profile.Persistent) << 20
	case bytes > 0:
		return bytes
	}
	return int64(v.Shape(id).Memory) << 20
}

// layers are those of a job's profile, as its first forward pass uses them; without a
// profile it is one block that has to come before anything computes. What stays beside
// the parameters, such as the optimizer's state, comes last: the forward pass does not
// wait for it.
func layers(v plan.View, id plan.JobID) []switching.Layer {
	var all []switching.Layer
	rest := persistent(v, id)
	for _, l := range v.ProfileOf(id).Layers {
		all = append(all, switching.Layer{Bytes: l.ParamKiB << 10, Compute: l.Forward})
		rest -= l.ParamKiB << 10
	}
	if rest > 0 {
		all = append(all, switching.Layer{Bytes: rest})
	}
	return all
}
