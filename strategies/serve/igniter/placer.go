// Package igniter sizes inference services that share devices: the share of a
// device, the batch and the device of each, so that all answer in time and the
// fewest devices are used (iGniter: Xu et al., IEEE TPDS 2023).
//
// The idea: a model with a few measured coefficients predicts latency from batch,
// share and who else is on the device (cache, power and the scheduler's gaps all
// interfere). A service first gets the least share that would do alone; it is then
// put on the device where giving everybody what interference costs takes the least
// additional share. Half of the objective is planned for, since a request may wait
// for a batch to fill.
//
// Read: the public code's algorithm and its example, which is the golden test. Not
// repeated: its extra-device output indexes batches by the wrong field. Ours: services
// come one by one, in any order, and as an option who runs keeps its share (see Config).
// The coefficients come from a profile, which is not taken here. Left out: a service too large for one
// device, which asks for several replicas here; the shadow process that takes over where
// measured latency is too high.
package igniter

import (
	"fmt"
	"math"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/serve/igniter/sizing"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "igniter", System: "iGniter", Part: allocate.PlacePart, Status: "after",
	Source: "Xu et al., IEEE TPDS 2023; icloud-ecnu/igniter",
	Idea:   "each replica of a service on the device that it disturbs least, at the least share that answers in half the objective",
	Acts:   []strategy.Act{strategy.Share, strategy.Batch},
	Goal:   "cost", Needs: "fitted coefficients of each model on the device; rate and objective of the services",
	Live: "a share is a quota of a slot; under MPS it is a ceiling from the start, and nobody who runs gets another (reshare), so that it takes repack: false. " +
		"The batch is in MUSTER_BATCH, and what serves must obey it",
}

// Config is the fitted device and models; the class of a service names its model.
type Config struct {
	Device sharing.Device    `yaml:"device"`
	Models []sharing.Service `yaml:"models"`
	// Repack gives all services of a device other shares when one comes, as the published
	// greedy does: the least that serves them all. Where another share needs another
	// process, as under MPS, the published system has one stand by.
	Repack bool `yaml:"repack"`
	// SpareUnits of share are given to a replica above the least where nobody is given
	// another share, so that those who come later beside it do not make it late.
	SpareUnits int `yaml:"spare-units" least:"0"`
	// Blind sizes each as if nobody interfered: a baseline to compare with.
	Blind bool `yaml:"blind"`
}

// Default returns the configuration used where none is given: the limits of a V100,
// and no model. What is not fitted is not sized.
func Default() Config {
	return Config{Repack: true, SpareUnits: 2, Device: sharing.Device{MHz: 1530, PowerW: 300, BytesPerMs: 1e7, UnitPercent: 2.5}}
}

// Knowing is the configuration with what was profiled beforehand, where it names no model
// itself.
func (c Config) Knowing(law *sharing.Law) Config {
	if law != nil && len(c.Models) == 0 {
		c.Device, c.Models = law.Device, law.Services
	}
	return c
}

// Acts implements strategy.Acting: to repack is to give others another share.
func (c Config) Acts() []strategy.Act {
	if c.Repack {
		return []strategy.Act{strategy.Reshare}
	}
	return nil
}

// Validate says what is wrong with a configuration.
func (c Config) Validate() error {
	d := c.Device
	if !(d.MHz > 0 && d.PowerW > 0 && d.BytesPerMs > 0 && d.UnitPercent > 0 && d.UnitPercent <= 100) {
		return fmt.Errorf("device: mhz, power-w, bytes-per-ms and unit-percent must be positive")
	}
	if !(d.MHzPerWatt <= 0) {
		return fmt.Errorf("device: mhz-per-watt is %g: it must not be positive", d.MHzPerWatt)
	}
	names := map[string]bool{}
	for i, m := range c.Models {
		switch {
		case m.Name == "" || names[m.Name]:
			return fmt.Errorf("models[%d]: name is %q: each needs one of its own", i, m.Name)
		case !(m.ActiveMs(1, 100) > 0 && m.ActiveMs(1, d.UnitPercent) >= m.ActiveMs(1, 100)):
			return fmt.Errorf("models[%d]: k gives times that are not positive or grow with the share", i)
		}
		names[m.Name] = true
	}
	return nil
}

// Placer is the strategy for services whose replicas come one by one, each a job with a
// rate and an objective: the published greedy. Without Repack a replica that runs keeps
// the share it started with, so that the newcomer alone pays for what they do to each
// other. Its fields beyond the configuration are scratch.
type Placer struct {
	config  Config
	models  map[string]*sharing.Service
	tenants []sharing.Tenant
	each    []sharing.Prediction

	works   []sizing.Workload // of a device that is sized anew
	placed  []sizing.Placed
	beside  []allocate.Beside
	pack    sizing.Packer
	arrives bool // a service is on its way to a device that was looked at
}

var (
	_ allocate.Placer  = (*Placer)(nil)
	_ allocate.Picky   = (*Placer)(nil)
	_ allocate.Finder  = (*Placer)(nil)
	_ allocate.Patient = (*Placer)(nil)
)

// New returns the placer; the configuration must be valid.
func New(c Config) *Placer {
	p := &Placer{config: c, models: map[string]*sharing.Service{}, pack: sizing.Packer{Blind: c.Blind}}
	for i := range c.Models {
		p.models[c.Models[i].Name] = &c.Models[i]
	}
	return p
}

// Takes reports whether a job is a service of a known model that asks for one device.
func (p *Placer) Takes(v plan.View, job plan.JobID) bool {
	shape := v.Shape(job)
	return p.workload(v, job).Model != nil && shape.Gang == 1 && shape.Devices == 1 && shape.Share == 1000
}

// Finds reports whether there may be a place beside other services.
func (p *Placer) Finds(v plan.View, job plan.JobID) bool { return p.workload(v, job).Model != nil }

// onItsWay is how often somebody who waits for a service to arrive looks whether it has.
const onItsWay = unit.Second

// Retry is soon where a service is on its way to a device on which there may be room
// beside it: its share can be changed once it is there.
func (p *Placer) Retry(v plan.View, _ plan.JobID) unit.Time {
	if p.arrives {
		return v.Now().Add(onItsWay)
	}
	return v.Now()
}

// workload is what a job has to answer; without a model where it is no known service.
func (p *Placer) workload(v plan.View, job plan.JobID) sizing.Workload {
	profile := v.ProfileOf(job)
	if profile.RatePerSecMilli == 0 {
		return sizing.Workload{}
	}
	return sizing.Workload{Model: p.models[v.Class(v.Job(job).Class)], SLOMs: 1000 * profile.SLO.Seconds(), RatePerSec: float64(profile.RatePerSecMilli) / 1000}
}

// Place looks at the devices that have services already, and at one that is free. The
// one on which the replica needs the least share is best; a fresh one is opened only
// where no other will do. The score is what of a device is left to others.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	work := p.workload(v, need.Job)
	if work.Model == nil || k < 1 {
		return into
	}
	batch, bound := sizing.Bound(&p.config.Device, work)
	p.arrives = false
	best, least := plan.DeviceID(plan.None), math.Inf(1)
	costs := p.share
	if p.config.Repack {
		costs = p.together
	}
	consider := func(id plan.DeviceID) {
		if share := costs(v, id, work, batch, bound, need.Shape.Memory); share < least {
			best, least = id, share
		}
	}
	for m := range v.Room().Models() {
		if need.Shape.Models&(1<<m) == 0 {
			continue
		}
		for n := v.Room().NextPartial(m, 0); n != plan.None; n = v.Room().NextPartial(m, n+1) {
			if v.Allows(need.Shape, n) {
				devicesOf(v, n, func(id plan.DeviceID) {
					if v.Device(id).First != plan.None {
						consider(id)
					}
				})
			}
		}
	}
	if best == plan.None && !p.arrives {
		fresh := v.Room().NextAny(need.Shape.Models, 1, 0)
		for fresh != plan.None && !v.Allows(need.Shape, fresh) {
			fresh = v.Room().NextAny(need.Shape.Models, 1, fresh+1)
		}
		if fresh != plan.None {
			devicesOf(v, fresh, func(id plan.DeviceID) {
				if d := v.Device(id); best == plan.None && d.Free == 1000 && d.Geometry == 0 && !d.Status.Out() {
					consider(id)
				}
			})
		}
	}
	if best == plan.None {
		return into
	}
	into = allocate.Extend(into)
	c := &into[len(into)-1]
	milli := min(v.Device(best).Free, int32(math.Ceil(10*(least+float64(p.config.SpareUnits)*p.config.Device.UnitPercent))))
	if p.config.Repack {
		costs(v, best, work, batch, bound, need.Shape.Memory)
		milli = p.repack(c)
	}
	c.Slots = append(c.Slots, plan.Slot{Node: v.Device(best).Node, Device: best, Workers: 1})
	c.Score = int64(1000 - milli)
	c.Share = plan.NewShare()
	c.Share.Milli, c.Share.Ceiling, c.Share.Batch, c.Share.Fence = milli, milli, int32(batch), plan.MPS
	return into
}

func devicesOf(v plan.View, node plan.NodeID, f func(plan.DeviceID)) {
	n := v.Node(node)
	for id := n.First; id < n.First+plan.DeviceID(n.Count); id++ {
		f(id)
	}
}

// share is the least at which a replica meets its objective on a device beside the
// services there, and they theirs; infinite where that cannot be.
func (p *Placer) share(v plan.View, id plan.DeviceID, work sizing.Workload, batch int, bound float64, memory int32) float64 {
	d := v.Device(id)
	if d.Status.Out() || d.Geometry != 0 || d.FreeMemory < memory {
		return math.Inf(1)
	}
	p.tenants = append(p.tenants[:0], sharing.Tenant{Model: work.Model, Batch: batch, SharePercent: bound})
	late := [16]float64{work.SLOMs / 2}
	alone := false
	v.GrantsOn(id, func(g plan.Grant) {
		r := v.Run(g.Run)
		w := p.workload(v, r.Job)
		if w.Model == nil || r.Terms.Share.Batch == 0 || len(p.tenants) == len(late) {
			alone = true // what is there is no service: nothing is known of it
			return
		}
		late[len(p.tenants)] = w.SLOMs / 2
		p.tenants = append(p.tenants, sharing.Tenant{Model: w.Model, Batch: int(r.Terms.Share.Batch), SharePercent: float64(g.Reserve) / 10})
	})
	for share := bound; !alone && share*10 <= float64(d.Free); share += p.config.Device.UnitPercent {
		p.tenants[0].SharePercent = share
		p.each, _, _ = p.config.Device.Predict(p.tenants, p.each[:0])
		for i := range p.each {
			if i > 0 && p.each[i].LatencyMs > late[i] {
				return math.Inf(1) // a neighbour would be late, and keeps the share it has
			}
		}
		if p.each[0].LatencyMs <= late[0] {
			return share
		}
	}
	return math.Inf(1)
}
