// Package sizing finds the least shares of a device at which services that share it answer
// in time, under the law of package sharing (after iGniter, Xu et al., IEEE TPDS 2023).
// Half of the objective is planned for, since a request may wait for a batch to fill.
package sizing

import (
	"math"

	"github.com/musterdl/muster/model/sharing"
)

// Workload is a service that is to be sized.
type Workload struct {
	Model      *sharing.Service
	SLOMs      float64
	RatePerSec float64
}

// Bound is the batch that the rate fills within half the objective, and the least
// share that computes it in time alone; more than 100 is more than a device, and
// infinite where no share would do.
func Bound(d *sharing.Device, w Workload) (batch int, sharePercent float64) {
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
	sharing.Tenant
}

func shares(on []Placed) (sum float64) {
	for _, p := range on {
		sum += p.SharePercent
	}
	return sum
}

// Packer sizes one device after another; a blind one leaves interference out.
type Packer struct {
	Blind bool
	// Try are those of the last device, with the shares they were given.
	Try     []Placed
	tenants []sharing.Tenant
	each    []sharing.Prediction
}

// Fit adds a replica to those of a device and gives a unit more to all who are too
// slow until nobody is, and says how much is used then and whether that is a device.
func (p *Packer) Fit(d *sharing.Device, workloads []Workload, on []Placed, r Placed) (total float64, ok bool) {
	p.Try = append(on, r)
	for total = shares(p.Try); total <= 100; total = shares(p.Try) {
		if p.Blind {
			return total, true
		}
		p.tenants = p.tenants[:0]
		for _, t := range p.Try {
			p.tenants = append(p.tenants, t.Tenant)
		}
		p.each, _, _ = d.Predict(p.tenants, p.each[:0])
		enough := true
		for i := range p.Try {
			if p.each[i].LatencyMs > workloads[p.Try[i].Workload].SLOMs/2 {
				p.Try[i].SharePercent += d.UnitPercent
				enough = false
			}
		}
		if enough {
			return total, true
		}
	}
	return total, false
}
