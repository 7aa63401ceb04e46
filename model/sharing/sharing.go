// Package sharing says what becomes of work that shares a device: one law in one home,
// with parameters. The simulated world uses it with what is true, strategies with what
// they believe; neither knows the other's parameters.
//
// Together is the law of pairs that were measured; Divided is that of other training jobs, whose time on a device is divided in proportion to
// what each needs. Device.Predict is that of services that compute side by side, after
// iGniter (Xu et al., IEEE TPDS 2023): they slow each other down by the cache, by the power
// that makes the clock fall, and by the gaps before kernels.
package sharing

// Divided is what is left of a rate beside others that, with it, need so much of a device's
// time; 1 is all of it.
func Divided(rate, need float64) float64 { return rate / max(1, need) }

// Pairs are what was measured of work that shares a device.
type Pairs interface {
	// Pair is what two classes keep of their rates beside each other on a device of a model; nothing
	// where its memory does not hold both.
	Pair(a, b, model string) (float64, float64, bool)
}

// Together is what a run keeps of its rate beside one with which it was measured to keep so much while
// both compute, where they both do for a part of the time. Pairs are measured of jobs that compute all the time.
func Together(pair, part float64) float64 {
	if part >= 1 || pair <= 0 {
		return pair
	}
	return 1 / (1 + part*(1/pair-1))
}

// Device is what the law knows of one kind of device.
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

// Service is what the law knows of one neural network on that kind of device.
type Service struct {
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

// Law is what is true, or believed, of one kind of device and of the services on it.
type Law struct {
	Device   Device
	Services []Service
}

// Find returns a service by its name; nil where nothing is known of it.
func (l *Law) Find(name string) *Service {
	for i := range l.Services {
		if l.Services[i].Name == name {
			return &l.Services[i]
		}
	}
	return nil
}

// ActiveMs is how long a batch computes alone.
func (m *Service) ActiveMs(batch int, sharePercent float64) float64 {
	return m.Work(batch)/(sharePercent+m.K[3]) + m.K[4]
}

// Work is what a batch takes of a device, in percent times ms.
func (m *Service) Work(batch int) float64 {
	b := float64(batch)
	return m.K[0]*b*b + m.K[1]*b + m.K[2]
}

// Tenant is one service on a device.
type Tenant struct {
	Model        *Service
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
