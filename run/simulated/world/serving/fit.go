package serving

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/musterdl/muster/model/sharing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"
)

// The points at which a network is profiled alone.
var (
	batches = [3]float64{1, 16, 32}
	percent = [3]float64{10, 50, 100}
)

// Grid are measurements at those points, by batch, then share.
type Grid [3][3]float64

// Profile is what is measured of one network: alone on the grid, its cache use at the
// three corners (1, 10), (16, 50) and (32, 100), and once beside another.
type Profile struct {
	Kernels   float64    `json:"kernel"`
	GapMs     float64    `json:"idletime_1"`
	InBytes   float64    `json:"inputdata"`
	OutBytes  float64    `json:"outputdata"`
	LatencyMs Grid       `json:"gpulatency"`
	Watts     Grid       `json:"power"`
	MHz       Grid       `json:"frequency"`
	Cache     [3]float64 `json:"l2caches"`
	// Of the run beside another: what the other used of the cache, how long this one
	// computed alone and beside it, and the clock then.
	OtherCache float64 `json:"l2cache"`
	AloneMs    float64 `json:"activetime_1"`
	BesideMs   float64 `json:"activetime_2"`
	BesideMHz  float64 `json:"frequency_2"`
}

// DeviceProfile is what is measured of the device: with one to five copies of a
// network, watts, clock and the gap before a kernel.
type DeviceProfile struct {
	IdleW       float64   `json:"idlepower"`
	PowerW      float64   `json:"maxGPUpower"`
	MHz         float64   `json:"maxGPUfrequency"`
	BytesPerMs  float64   `json:"bandwidth"`
	UnitPercent float64   `json:"unit"`
	Watts       []float64 `json:"power"`
	Clock       []float64 `json:"frequency"`
	Gap         []float64 `json:"idletime"`
}

// Read reads profiles as the public code writes them: a line each of
// {name: {quantity: value}}, the device being called "hardware".
func Read(r io.Reader) (Measured, error) {
	m := Measured{Networks: map[string]Profile{}}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		var line map[string]json.RawMessage
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return m, fmt.Errorf("line %d: %w", n, err)
		}
		for name, value := range line {
			var err error
			if p := m.Networks[name]; name == "hardware" {
				err = json.Unmarshal(value, &m.Device)
			} else if err = json.Unmarshal(value, &p); err == nil {
				m.Networks[name] = p
			}
			if err != nil {
				return m, fmt.Errorf("line %d: %s: %w", n, name, err)
			}
		}
	}
	return m, lines.Err()
}

// Fit returns the coefficients of the device.
func (p *DeviceProfile) Fit() (sharing.Device, error) {
	d := sharing.Device{MHz: p.MHz, PowerW: p.PowerW, IdleW: p.IdleW, BytesPerMs: p.BytesPerMs, UnitPercent: p.UnitPercent}
	throttled := slices.IndexFunc(p.Clock, func(mhz float64) bool { return mhz < p.MHz })
	if throttled < 2 || len(p.Watts) != len(p.Clock) || len(p.Gap) != len(p.Clock) {
		return d, fmt.Errorf("the device needs two points before it throttles and one after; it throttles at %d of %d", throttled, len(p.Clock))
	}
	// A throttled device draws what it may; what it would draw goes on as before.
	step := (p.Watts[throttled-1] - p.Watts[0]) / float64(throttled-1)
	over, slower, gaps, count := []float64{}, []float64{}, []float64{}, []float64{}
	for i := throttled; i < len(p.Clock); i++ {
		over = append(over, p.Watts[throttled-1]+step*float64(i-throttled+1)-p.PowerW)
		slower = append(slower, p.Clock[i]-p.MHz)
	}
	_, d.MHzPerWatt = stat.LinearRegression(over, slower, nil, true)
	for i := 1; i < len(p.Gap); i++ {
		count = append(count, float64(i+1))
		gaps = append(gaps, p.Gap[i]*p.Clock[i]/p.MHz-p.Gap[0]*p.Clock[0]/p.MHz)
	}
	d.GapMs, d.GapPerTenantMs = stat.LinearRegression(count, gaps, nil, false)
	return d, nil
}

// Fit returns the coefficients of a network on a device.
func (p *Profile) Fit(name string, d *sharing.Device) (sharing.Service, error) {
	m := sharing.Service{Name: name, Kernels: p.Kernels, GapMs: p.GapMs, InBytes: p.InBytes, OutBytes: p.OutBytes}
	var ability Grid
	var free, watts []float64
	var active Grid
	for i, b := range batches {
		for j := range percent {
			active[i][j] = p.LatencyMs[i][j]*min(1, p.MHz[i][j]/d.MHz) - p.GapMs
			ability[i][j] = 1000 * b / (p.LatencyMs[i][j] - p.GapMs)
			if p.MHz[i][j] > d.MHz-1 {
				free, watts = append(free, ability[i][j]), append(watts, p.Watts[i][j]-d.IdleW)
			}
		}
	}
	if len(free) < 2 || p.AloneMs <= 0 || p.OtherCache <= 0 {
		return m, fmt.Errorf("%s: its profile is incomplete", name)
	}
	m.Power.At0, m.Power.Slope = stat.LinearRegression(free, watts, nil, false)
	m.Cache.At0, m.Cache.Slope = stat.LinearRegression([]float64{ability[0][0], ability[1][1], ability[2][2]}, p.Cache[:], nil, false)
	m.CacheSlowdown = (p.BesideMs*p.BesideMHz/d.MHz/p.AloneMs - 1) / p.OtherCache
	var err error
	m.K, err = fitActive(&active)
	return m, err
}

// fitActive finds the five coefficients by least squares: for a given K3 the others
// are a linear problem, so only K3 is searched, first coarsely, then by bisection.
func fitActive(active *Grid) (k [5]float64, err error) {
	miss := func(k3 float64) float64 {
		_, r := linear(active, k3)
		return r
	}
	best := -percent[0] / 2
	for k3 := best; k3 <= 2*percent[2]; k3 += .25 {
		if miss(k3) < miss(best) {
			best = k3
		}
	}
	found, err := optimize.Minimize(optimize.Problem{Func: func(x []float64) float64 {
		if x[0] <= -percent[0] {
			return math.Inf(1)
		}
		return miss(x[0])
	}}, []float64{best}, nil, &optimize.NelderMead{})
	if err != nil {
		return k, fmt.Errorf("fitting the time it computes: %w", err)
	}
	k, _ = linear(active, found.X[0])
	return k, nil
}

// linear solves for the other four coefficients and returns the sum of the squares of
// what is missed.
func linear(active *Grid, k3 float64) (k [5]float64, miss float64) {
	a, y := mat.NewDense(9, 4, nil), mat.NewVecDense(9, nil)
	for i, b := range batches {
		for j, r := range percent {
			a.SetRow(3*i+j, []float64{b * b / (r + k3), b / (r + k3), 1 / (r + k3), 1})
			y.SetVec(3*i+j, active[i][j])
		}
	}
	var x, back mat.VecDense
	if err := x.SolveVec(a, y); err != nil {
		return k, math.Inf(1)
	}
	back.MulVec(a, &x)
	back.SubVec(&back, y)
	return [5]float64{x.AtVec(0), x.AtVec(1), x.AtVec(2), k3, x.AtVec(3)}, mat.Dot(&back, &back)
}
