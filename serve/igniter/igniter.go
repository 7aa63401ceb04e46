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
// repeated: its extra-device output indexes batches by the wrong field. Ours: the fit
// searches one coefficient and solves for the other four; services come one by one, and
// by default who runs keeps its share (see Config). Left out: a service too large for one
// device, which asks for several replicas here; the shadow process that takes over where
// measured latency is too high.
package igniter

import (
	"math"
)

// Device is what the model knows of one kind of device.
type Device struct {
	MHz        float64 `yaml:"mhz"`          // when not throttled
	PowerW     float64 `yaml:"power-w"`      // beyond which it throttles
	IdleW      float64 `yaml:"idle-w"`       //
	MHzPerWatt float64 `yaml:"mhz-per-watt"` // by how much, negative
	// GapPerTenantMs and GapMs say by how much the gap before each kernel grows with
	// the tenants, from two on.
	GapPerTenantMs float64 `yaml:"gap-per-tenant-ms"`
	GapMs          float64 `yaml:"gap-ms"`
	BytesPerMs     float64 `yaml:"bytes-per-ms"` // to and from the host
	UnitPercent    float64 `yaml:"unit-percent"` // the smallest difference between shares
}

// Line is a straight line.
type Line struct {
	Slope float64 `yaml:"slope"`
	At0   float64 `yaml:"at-0"`
}

// At is its value.
func (l Line) At(x float64) float64 { return l.Slope*x + l.At0 }

// Model is what the model knows of one neural network on that kind of device.
type Model struct {
	Name     string  `yaml:"name"`
	Kernels  float64 `yaml:"kernels"`
	GapMs    float64 `yaml:"gap-ms"` // of all kernels, alone
	InBytes  float64 `yaml:"in-bytes"`
	OutBytes float64 `yaml:"out-bytes"`
	// K are the coefficients of the time it computes, in ms:
	// (K0 b^2 + K1 b + K2) / (share + K3) + K4, the share in percent.
	K [5]float64 `yaml:"k"`
	// Power and Cache are watts, and percent of the cache, by requests per second of
	// computing.
	Power Line `yaml:"power"`
	Cache Line `yaml:"cache"`
	// CacheSlowdown is the part by which computing slows per percent that others use.
	CacheSlowdown float64 `yaml:"cache-slowdown"`
}

// ActiveMs is how long a batch computes alone.
func (m *Model) ActiveMs(batch int, sharePercent float64) float64 {
	return m.work(batch)/(sharePercent+m.K[3]) + m.K[4]
}

func (m *Model) work(batch int) float64 {
	b := float64(batch)
	return m.K[0]*b*b + m.K[1]*b + m.K[2]
}

// Tenant is one service on a device.
type Tenant struct {
	Model        *Model
	Batch        int
	SharePercent float64
}

// Prediction is what one tenant does beside the others.
type Prediction struct{ LatencyMs, PerSec float64 }

// Predict appends what each tenant of one device does, and says what the device does.
func (d *Device) Predict(tenants []Tenant, into []Prediction) (each []Prediction, watts, mhz float64) {
	gap, cache := 0.0, 0.0
	if len(tenants) > 1 {
		gap = d.GapPerTenantMs*float64(len(tenants)) + d.GapMs
	}
	watts, mhz = d.IdleW, d.MHz
	for _, t := range tenants {
		ability := t.ability()
		watts, cache = watts+t.Model.Power.At(ability), cache+t.Model.Cache.At(ability)
	}
	if watts > d.PowerW {
		mhz += d.MHzPerWatt * (watts - d.PowerW)
	}
	for _, t := range tenants {
		m, b := t.Model, float64(t.Batch)
		active := m.ActiveMs(t.Batch, t.SharePercent) * (1 + m.CacheSlowdown*(cache-m.Cache.At(t.ability())))
		gpu := (m.GapMs + m.Kernels*gap + active) / (mhz / d.MHz)
		into = append(into, Prediction{gpu + (m.InBytes+m.OutBytes)*b/d.BytesPerMs, 1000 * b / (gpu + m.OutBytes*b/d.BytesPerMs)})
	}
	return into, watts, mhz
}

// ability is the requests per second while it computes.
func (t *Tenant) ability() float64 {
	return 1000 * float64(t.Batch) / t.Model.ActiveMs(t.Batch, t.SharePercent)
}

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
	return batch, max(1, math.Ceil((m.work(batch)/left-m.K[3])/d.UnitPercent)) * d.UnitPercent
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

// packer is scratch of one packing.
type packer struct {
	try, best []Placed
	tenants   []Tenant
	each      []Prediction
}

// fit adds a replica to those of a device and gives a unit more to all who are too
// slow until nobody is, and says how much is used then and whether that is a device.
func (p *packer) fit(d *Device, workloads []Workload, on []Placed, r Placed) (total float64, ok bool) {
	p.try = append(on, r)
	for total = shares(p.try); total <= 100; total = shares(p.try) {
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
