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
	"math"

	"github.com/musterdl/muster/model/sharing"
)

// Device is what the strategy believes of one kind of device (package sharing).
type Device struct {
	sharing.Device `yaml:",inline"`
}

// What it believes of services that share one is the law of package sharing, with
// coefficients of its own.
type (
	// Line is a straight line.
	Line = sharing.Line
	// Model is what is known of one neural network.
	Model = sharing.Service
	// Tenant is one service on a device.
	Tenant = sharing.Tenant
	// Prediction is what one tenant does beside the others.
	Prediction = sharing.Prediction
)

// Workload is a service that is to be sized.
type Workload struct {
	Model      *Model
	SLOMs      float64
	RatePerSec float64
}

// Bound is the batch that the rate fills within half the objective, and the least
// share that computes it in time alone; more than 100 is more than a device, and
// infinite where no share would do.
func (d *Device) Bound(w Workload) (batch int, sharePercent float64) {
	m, slo, perMs := w.Model, w.SLOMs/2, w.RatePerSec/1000
	batch = max(1, int(math.Ceil(slo*perMs*d.BytesPerMs/(d.BytesPerMs+m.InBytes*perMs))))
	left := slo - m.GapMs - float64(batch)*(m.InBytes+m.OutBytes)/d.BytesPerMs - m.K[4]
	if left <= 0 {
		return batch, math.Inf(1)
	}
	return batch, max(1, math.Ceil((m.Work(batch)/left-m.K[3])/d.UnitPercent)) * d.UnitPercent
}

// Placed is one replica of a workload on a device.
type Placed struct {
	Workload int
	Tenant
}

func shares(on []Placed) (sum float64) {
	for _, p := range on {
		sum += p.SharePercent
	}
	return sum
}

// packer is scratch of one packing; a blind one leaves interference out.
type packer struct {
	blind   bool
	try     []Placed
	tenants []Tenant
	each    []Prediction
}

// fit adds a replica to those of a device and gives a unit more to all who are too
// slow until nobody is, and says how much is used then and whether that is a device.
func (p *packer) fit(d *Device, workloads []Workload, on []Placed, r Placed) (total float64, ok bool) {
	p.try = append(on, r)
	for total = shares(p.try); total <= 100; total = shares(p.try) {
		if p.blind {
			return total, true
		}
		p.tenants = p.tenants[:0]
		for _, t := range p.try {
			p.tenants = append(p.tenants, t.Tenant)
		}
		p.each, _, _ = d.Predict(p.tenants, p.each[:0])
		enough := true
		for i := range p.try {
			if p.each[i].LatencyMs > workloads[p.try[i].Workload].SLOMs/2 {
				p.try[i].SharePercent += d.UnitPercent
				enough = false
			}
		}
		if enough {
			return total, true
		}
	}
	return total, false
}
