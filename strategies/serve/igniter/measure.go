package igniter

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Measure lets the placer serve the example of the public code on its V100 profile, in an
// order of arrival for each seed, and services drawn at random; sized anew when one
// comes, by default, and at least shares by first fit, as if nobody interfered.
func Measure(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	fitted, err := Fitted(open)
	if err != nil {
		return nil, err
	}
	d, models, figures := fitted.Device, fitted.Models, map[string]float64{}
	example, arrive := []Workload{{&models[0], 15, 500}, {&models[1], 40, 400}, {&models[2], 60, 200}}, []Workload(nil)
	for order, left := int(seed-1)%6, slices.Clone(example); len(left) > 0; {
		n := order % len(left)
		order, arrive, left = order/len(left), append(arrive, left[n]), slices.Delete(left, n, n+1)
	}
	dice := rand.New(rand.NewPCG(seed, 0))
	var work []Workload
	for range 100 {
		n := dice.IntN(len(models))
		work = append(work, Workload{&models[n], []float64{15, 40, 60, 100}[n] * (1 + dice.Float64()), 20 + 280*dice.Float64()})
	}
	anew := fitted
	anew.Repack = true
	for of, c := range map[string]Config{"": anew, "_default": fitted} {
		served, err := serve(c, arrive)
		if err != nil {
			return nil, err
		}
		figures["devices"+of] = float64(len(served))
		for _, on := range served {
			each, watts, mhz := d.Predict(tenants(on), nil)
			figures["power_w"+of], figures["clock_mhz"+of] = watts, mhz
			for i, p := range on {
				name := p.Model.Name
				figures[name+"_share_percent"+of], figures[name+"_batch"+of], figures[name+"_ms"+of] = p.SharePercent, float64(p.Batch), each[i].LatencyMs
			}
		}
		if served, err = serve(c, work); err != nil {
			return nil, err
		}
		late, devices := d.late(work, served)
		figures["late_of_100"+of], figures["devices_of_100"+of] = float64(late), float64(devices)
	}
	var blind []Tenant
	for _, w := range example {
		batch, share := d.Bound(w)
		blind = append(blind, Tenant{Model: w.Model, Batch: batch, SharePercent: share})
		figures[w.Model.Name+"_bound_percent"] = share
	}
	each, _, _ := d.Predict(blind, nil)
	for i, w := range example {
		figures[w.Model.Name+"_blind_ms"] = each[i].LatencyMs
	}
	late, devices := d.late(work, d.blind(work))
	figures["blind_late_of_100"], figures["blind_devices_of_100"] = float64(late), float64(devices)
	return figures, nil
}

// serve lets the placer put services on devices, one after the other, and returns who is
// on each. A service without a place is an error: there is a device for everybody.
func serve(c Config, work []Workload) (served [][]Placed, err error) {
	s := plan.NewState(cluster.Uniform("v100s", len(work), 1, cluster.Model{Name: "v100", Memory: 32 << 10, Speed: 1}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}
	for i := range c.Models {
		s.Classes = append(s.Classes, c.Models[i].Name)
	}
	placer := New(c)
	for i, w := range work {
		s.Profiles = append(s.Profiles, plan.Profile{RatePerSecMilli: int64(1000*w.RatePerSec + .5), SLO: unit.Seconds(w.SLOMs / 1000)})
		class := slices.Index(s.Classes, w.Model.Name)
		job := s.Admit(fmt.Sprint(i), plan.Job{Profile: int32(i), Class: int32(class)})
		found := placer.Place(s.View(), allocate.Need{Job: job, Workers: 1, Shape: &s.Shapes[0]}, 1, nil)
		if len(found) == 0 {
			return nil, fmt.Errorf("%s in %g ms at %g per second has no place", w.Model.Name, w.SLOMs, w.RatePerSec)
		}
		d := s.Edit()
		for _, b := range found[0].Beside {
			d.Regrant(b.Run, d.Run(b.Run).Terms.WithShare(&b.Share), plan.Reason{})
		}
		run, why := d.Start(job, found[0].Slots, plan.DefaultTerms().WithShare(found[0].Share), plan.Reason{})
		if why.Code != plan.NoReason {
			return nil, errors.New(why.Words(s.View()))
		}
		d.Commit()
		s.Dispatch(run)
		s.Began(run)
	}
	for id := range plan.DeviceID(s.View().Devices()) {
		var on []Placed
		s.View().GrantsOn(id, func(g plan.Grant) {
			r := s.View().Run(g.Run)
			on = append(on, Placed{int(r.Job), Tenant{Model: work[r.Job].Model, Batch: int(r.Terms.Share.Batch), SharePercent: float64(g.Reserve) / 10}})
		})
		if on != nil {
			served = append(served, on)
		}
	}
	return served, nil
}

func tenants(on []Placed) (all []Tenant) {
	for _, p := range on {
		all = append(all, p.Tenant)
	}
	return all
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

// blind packs least shares by first fit in descending order, as if nobody interfered.
func (d *Device) blind(work []Workload) (served [][]Placed) {
	var all []Placed
	for i, w := range work {
		if batch, share := d.Bound(w); share <= 100 {
			all = append(all, Placed{i, Tenant{Model: w.Model, Batch: batch, SharePercent: share}})
		}
	}
	slices.SortStableFunc(all, func(a, b Placed) int { return cmp.Compare(b.SharePercent, a.SharePercent) })
	for _, p := range all {
		i := slices.IndexFunc(served, func(on []Placed) bool { return shares(on)+p.SharePercent <= 100 })
		if i < 0 {
			served, i = append(served, nil), len(served)
		}
		served[i] = append(served[i], p)
	}
	return served
}

// late counts replicas that miss half their objective, and devices.
func (d *Device) late(work []Workload, served [][]Placed) (late, devices int) {
	for _, on := range served {
		each, _, _ := d.Predict(tenants(on), nil)
		for i, p := range on {
			if each[i].LatencyMs > work[p.Workload].SLOMs/2 {
				late++
			}
		}
	}
	return late, len(served)
}
