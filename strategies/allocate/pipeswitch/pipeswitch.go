// Package pipeswitch prices handing a device from one job to another the way
// PipeSwitch does it (Bai et al., OSDI 2020), and says in which groups: a standby process
// is ready, parameters lie pinned in host memory, and while they come over PCIe in groups
// of layers, the layers that have come compute already. The groups are the best there are (package
// switching), so most of the transfer hides behind the first pass.
//
// Read: the public code's stop, hand-over and per-block grouping; the paper's
// recursion is recalled. Ours: the exact search for the groups; that a training job
// that leaves has its persistent memory saved first, which the artefact's measured
// switches do not show; figures of a transfer's and a hand-over's fixed cost.
// Left out: the memory daemon, and two processes' memory at once.
package pipeswitch

import (
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
	Acts: []strategy.Act{strategy.Stream},
	Live: "cannot, because no driver brings a model layer by layer",
}

// Config is what a switch goes over.
type Config struct {
	// BandwidthGBps is that from host memory to the device and back.
	BandwidthGBps float64 `yaml:"bandwidth-gbytes-per-s" above:"0"`
	// TransferUs and HandOverUs are the fixed cost of a group's transfer, and of letting
	// it compute.
	TransferUs unit.Duration `yaml:"transfer-us" least:"0"`
	HandOverUs unit.Duration `yaml:"hand-over-us" least:"0"`
	// StopMs is how long the job that leaves takes to stop: the layer it is in.
	StopMs float64 `yaml:"stop-ms" least:"0"`
	// Groups is how layers are put together: best, or, to compare with, each for itself or
	// all in one, which computes when all has come.
	Groups string `yaml:"groups" of:"best each one"`
}

// Default has PCIe 3 with 16 lanes; the fixed costs are our assumptions.
func Default() Config {
	return Config{BandwidthGBps: 12, TransferUs: 20, HandOverUs: 20, StopMs: 1, Groups: "best"}
}

// switching is the mechanism with the costs of the configuration.
func (c Config) switching() switching.Switch {
	link := switching.Link{Fixed: c.TransferUs, BytesPerSec: c.BandwidthGBps * 1e9}
	return switching.Switch{Stop: unit.Seconds(c.StopMs / 1000), Save: link, Path: switching.Path{Links: []switching.Link{link}, Sync: c.HandOverUs}}
}

// Switcher is the strategy. How a job is brought follows from its profile and its shape,
// and is remembered by these.
type Switcher struct {
	by       switching.Switch
	groups   string
	bringing map[[2]int32]brought
}

// brought is in which groups a job comes, and what that takes beside computing.
type brought struct {
	ends []int
	cost unit.Duration
}

var _ allocate.Streamer = (*Switcher)(nil)

// New returns the switcher; the configuration must be valid.
func New(c Config) *Switcher {
	return &Switcher{by: c.switching(), groups: c.Groups, bringing: map[[2]int32]brought{}}
}

// Switch stops one job, saves what of it stays, and brings the other.
func (s *Switcher) Switch(v plan.View, from, to plan.JobID) (cost unit.Duration) {
	if from != plan.None {
		cost += s.by.Cost(switching.Persistent(v, from), nil)
	}
	if to != plan.None {
		cost += s.bring(v, to).cost
	}
	return cost
}

// Groups are those in which a job's layers come.
func (s *Switcher) Groups(v plan.View, job plan.JobID) (ends []int32) {
	for _, end := range s.bring(v, job).ends {
		ends = append(ends, int32(end))
	}
	return ends
}

func (s *Switcher) bring(v plan.View, job plan.JobID) brought {
	j := v.Job(job)
	b, known := s.bringing[[2]int32{j.Profile, j.Shape}]
	if !known {
		layers := switching.Layers(v, job)
		switch s.groups {
		case "each":
			b.ends = switching.Single(layers)
		case "one":
			b.ends = switching.Whole(layers)
		default:
			b.ends = s.by.Path.Group(layers).Ends
		}
		b.cost = s.by.Path.Overhead(layers, b.ends)
		s.bringing[[2]int32{j.Profile, j.Shape}] = b
	}
	return b
}
