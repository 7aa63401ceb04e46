package igniter

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
)

// Measure runs the example of the public code on its V100 profile, sized with and
// without regard to interference, and packs services drawn at random.
func Measure(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	fitted, err := Fitted(open)
	if err != nil {
		return nil, err
	}
	d, models := fitted.Device, fitted.Models
	figures := example(&d, models)
	dice := rand.New(rand.NewPCG(seed, 0))
	var work []Workload
	for range 100 {
		n := dice.IntN(len(models))
		work = append(work, Workload{&models[n], []float64{15, 40, 60, 100}[n] * (1 + dice.Float64()), 20 + 280*dice.Float64()})
	}
	late, devices := d.late(work, d.Pack(work))
	figures["late_of_100"], figures["devices_of_100"] = float64(late), float64(devices)
	late, devices = d.late(work, d.blind(work))
	figures["blind_late_of_100"], figures["blind_devices_of_100"] = float64(late), float64(devices)
	return figures, nil
}

// Fitted is the configuration for a V100 and the four networks of the public profile,
// fitted to it anew: the file may be used and not passed on.
func Fitted(open func(path string) (io.ReadCloser, error)) (Config, error) {
	c := Default()
	file, err := open("inference-sharing/igniter/v100_coefficients.config")
	if err != nil {
		return c, err
	}
	defer file.Close()
	profile, networks, err := Read(file)
	if err != nil {
		return c, fmt.Errorf("reading the profile of the V100: %w", err)
	}
	if c.Device, err = profile.Fit(); err != nil {
		return c, err
	}
	for _, name := range []string{"alexnet", "resnet50", "vgg19", "ssd"} {
		p := networks[name]
		m, err := p.Fit(name, &c.Device)
		if err != nil {
			return c, err
		}
		c.Models = append(c.Models, m)
	}
	return c, nil
}

// example is alexnet at 15 ms and 500 per second, resnet50 at 40 and 400, vgg19 at 60
// and 200.
func example(d *Device, models []Model) map[string]float64 {
	work := []Workload{{&models[0], 15, 500}, {&models[1], 40, 400}, {&models[2], 60, 200}}
	plan := d.Pack(work)
	figures := map[string]float64{"devices": float64(len(plan.Devices))}
	for _, on := range plan.Devices {
		var tenants []Tenant
		for _, p := range on {
			tenants = append(tenants, p.Tenant)
		}
		each, watts, mhz := d.Predict(tenants, nil)
		figures["power_w"], figures["clock_mhz"] = watts, mhz
		for i, p := range on {
			name := p.Model.Name
			figures[name+"_share_percent"], figures[name+"_batch"], figures[name+"_ms"] = p.SharePercent, float64(p.Batch), each[i].LatencyMs
		}
	}
	var blind []Tenant
	for _, w := range work {
		batch, share := d.Bound(w)
		blind = append(blind, Tenant{w.Model, batch, share})
		figures[w.Model.Name+"_bound_percent"] = share
	}
	each, _, _ := d.Predict(blind, nil)
	for i, w := range work {
		figures[w.Model.Name+"_blind_ms"] = each[i].LatencyMs
	}
	return figures
}

// blind packs least shares by first fit in descending order, as if nobody interfered.
func (d *Device) blind(work []Workload) Plan {
	var all []Placed
	for i, w := range work {
		if batch, share := d.Bound(w); share <= 100 {
			all = append(all, Placed{i, Tenant{w.Model, batch, share}})
		}
	}
	slices.SortStableFunc(all, func(a, b Placed) int { return cmp.Compare(b.SharePercent, a.SharePercent) })
	var plan Plan
	for _, p := range all {
		i := slices.IndexFunc(plan.Devices, func(on []Placed) bool { return shares(on)+p.SharePercent <= 100 })
		if i < 0 {
			plan.Devices, i = append(plan.Devices, nil), len(plan.Devices)
		}
		plan.Devices[i] = append(plan.Devices[i], p)
	}
	return plan
}

// late counts replicas that miss half their objective, and devices.
func (d *Device) late(work []Workload, plan Plan) (late, devices int) {
	for _, on := range plan.Devices {
		var tenants []Tenant
		for _, p := range on {
			tenants = append(tenants, p.Tenant)
		}
		each, _, _ := d.Predict(tenants, nil)
		for i, p := range on {
			if each[i].LatencyMs > work[p.Workload].SLOMs/2 {
				late++
			}
		}
	}
	return late, len(plan.Devices)
}
