package simulated

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/allocate/envelope"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Prices are what things cost in the simulated world that take a device's time without
// any work being done. In the zero Prices all of that is free, for tests of decisions.
// docs/metrics.md says where the figures come from.
type Prices struct {
	// Start is what the start of a worker's process takes.
	Start unit.Duration `yaml:"start"`
	// Restart is what a resumed job that declares nothing loses in all, the start of its
	// processes included.
	Restart unit.Duration `yaml:"-"`
	// StoreGBps is how fast a checkpoint is written by a job that does not declare how
	// long it takes; 0 takes no time.
	StoreGBps float64 `yaml:"store-gbytes-per-s"`
	// Pause is the fixed part of suspending a run, and of resuming it; what it has to move
	// goes over the host's link, at HostGBps for each device; 0 takes no time.
	Pause    unit.Duration `yaml:"pause"`
	HostGBps float64       `yaml:"host-gbytes-per-s"`
	// Of a job that is brought in groups of layers (allocate.Streamer): the fixed cost of
	// each group's transfer over the host's link and of handing it over to compute; and how
	// long one that leaves takes to stop. What it saves goes over that link too.
	Transfer unit.Duration `yaml:"transfer"`
	HandOver unit.Duration `yaml:"hand-over"`
	Leave    unit.Duration `yaml:"leave"`
	// Instance is what making or removing one part of a device takes.
	Instance unit.Duration `yaml:"instance"`
	// Arrival is how long a rented node takes to come.
	Arrival unit.Duration `yaml:"arrival"`
	// Answer is how long whoever answers a question needs for one KiB of it.
	Answer unit.Duration `yaml:"answer"`
	// Probe is what measuring one offer of a menu takes, before the job starts for the first
	// time, and ProbeError the spread of what is measured around the truth: the standard
	// deviation of its logarithm. Only powers of two of workers are measured.
	Probe      unit.Duration `yaml:"probe"`
	ProbeError float64       `yaml:"probe-error"`
	// Settle is how long a law takes from its floor, where it begins with every new guest,
	// to where it holds.
	Settle unit.Duration `yaml:"settle"`
	// Switch is what it takes to hand a device to a guest, and back, in each window in which its
	// host's plan leaves it idle.
	Switch unit.Duration `yaml:"switch"`
}

// DefaultPrices are those of simulations whose user gives none.
func DefaultPrices() Prices {
	return Prices{Start: 6500 * unit.Millisecond, Restart: 30 * unit.Second, StoreGBps: 1,
		Pause: 100 * unit.Millisecond, HostGBps: 12, Transfer: 20, HandOver: 20, Leave: unit.Millisecond, Instance: envelope.InstanceTime, Arrival: 2 * unit.Minute,
		Answer: 100 * unit.Millisecond, Probe: 10 * unit.Second, ProbeError: .05, Settle: 40 * unit.Second, Switch: 2 * unit.Millisecond}
}

// moving is how long so many MiB take at so many GB/s.
func moving(mib int64, gbps float64) unit.Duration {
	if gbps <= 0 {
		return 0
	}
	return unit.Seconds(float64(mib<<20) / (gbps * 1e9))
}

// complete fills in what of a job's checkpoints its owner has not declared: every worker
// holds all of its state, and one of them saves it.
func (p Prices) complete(job *workload.Job) {
	c := &job.Checkpoint
	if c.Load == 0 {
		c.Load = max(0, p.Restart-p.Start)
	}
	if c.Save == 0 {
		kept := job.Persistent
		if kept == 0 {
			kept = job.Memory
		}
		c.Save = moving(int64(kept), p.StoreGBps)
	}
}

// measured puts what was measured of a job in the place of what is true of it: the rates
// of its menu, the parts of its iteration, the times of its layers.
func (s *Simulation) measured(id plan.JobID, job *workload.Job) {
	spread := s.config.Prices.ProbeError
	if spread == 0 || len(job.Menu)+len(job.Pipeline.Layers) == 0 && job.Phase == (workload.Phase{}) {
		return
	}
	r := rand.New(rand.NewPCG(s.config.World.Seed, 1<<40+uint64(id)))
	off := func(x float64) float64 { return x * math.Exp(spread*r.NormFloat64()) }
	job.Menu = slices.Clone(job.Menu)
	for i := range job.Menu {
		job.Menu[i].Rate = off(job.Menu[i].Rate)
	}
	took := func(d *unit.Duration) { *d = unit.Duration(off(float64(*d))) }
	took(&job.Phase.Compute)
	took(&job.Phase.Communicate)
	job.Pipeline.Layers = slices.Clone(job.Pipeline.Layers)
	for i := range job.Pipeline.Layers {
		took(&job.Pipeline.Layers[i].Forward)
		took(&job.Pipeline.Layers[i].Backward)
	}
}

// probing is what measuring a job takes before it starts for the first time.
func (s *Simulation) probing(v plan.View, id plan.JobID) (all unit.Duration) {
	for _, o := range v.Menu(id) {
		if o.Workers&(o.Workers-1) == 0 {
			all += s.config.Prices.Probe
		}
	}
	return all
}

// swapping is what suspending a run takes, or resuming it: every device has a link of its
// own to its host.
func (s *Simulation) swapping(id plan.RunID) unit.Duration {
	p := &s.config.Prices
	return p.Pause + moving(int64(s.engine.View().Run(id).Terms.Share.Swap), p.HostGBps)
}

// another is what it takes to replace a run's processes by others: they save, start and
// load.
func (s *Simulation) another(id plan.RunID) unit.Duration {
	if s.config.Prices.Start == 0 {
		return 0
	}
	c := s.engine.View().Job(s.runs[id].job).Checkpoint
	return c.Save + s.config.Prices.Start + c.Load
}

// cutting is what it takes to cut a device as a geometry says; parts that stay are left
// alone.
func (s *Simulation) cutting(device plan.DeviceID, to int16) unit.Duration {
	v := s.engine.View()
	all := v.Cluster().Models[v.Cluster().Nodes[v.Cluster().Devices[device].Node].Model].Geometries
	var was, will []cluster.Part
	if now := s.cut[device]; now > 0 {
		was = all[now].Parts
	}
	if to > 0 {
		will = all[to].Parts
	}
	s.cut[device] = to
	return envelope.RecutTime(was, will) / envelope.InstanceTime * s.config.Prices.Instance
}
