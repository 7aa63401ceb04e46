package igniter_test

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/strategies/serve/igniter"
)

// v100 is the device and the networks of the public code's profile.
func v100(t testing.TB) (igniter.Device, map[string]*igniter.Model) {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "..", "shared", "data", "inference-sharing", "igniter", "v100_coefficients.config"))
	if err != nil {
		t.Skipf("the data set inference-sharing is not here: %v", err)
	}
	defer file.Close()
	profile, networks, err := igniter.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := profile.Fit()
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]*igniter.Model{}
	for name, n := range networks {
		m, err := n.Fit(name, &d)
		if err != nil {
			t.Fatal(err)
		}
		models[name] = &m
	}
	return d, models
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s is %.6g, want %g", what, got, want)
	}
}

// The coefficients are those of the public code's method; the published ones come from
// a search in steps of 0.005, so that vgg19 is a little off them.
func TestFit(t *testing.T) {
	d, models := v100(t)
	near(t, "MHz per W", d.MHzPerWatt, -1.0254, 1e-4)
	near(t, "gap per tenant", d.GapPerTenantMs, 4.751e-3, 1e-6)
	near(t, "gap", d.GapMs, -9.022e-3, 1e-6)
	for name, want := range map[string][6]float64{"alexnet": {.00415, 8.711, 23.73, .055, .346, 2.376e-3},
		"resnet50": {-.0175, 58.27, -.009, .345, 1.909, 2.163e-3}, "vgg19": {-.00484, 158.2, 44.53, .19, .920, 2.018e-3}} {
		m := models[name]
		for i, within := range [5]float64{6e-5, .06, .1, 2e-3, 7e-3} {
			near(t, name, m.K[i], want[i], within)
		}
		near(t, name+" cache", m.CacheSlowdown, want[5], 1e-6)
	}
}

// example is that of the public code.
func example(models map[string]*igniter.Model) []igniter.Workload {
	return []igniter.Workload{{Model: models["alexnet"], SLOMs: 15, RatePerSec: 500}, {Model: models["resnet50"], SLOMs: 40, RatePerSec: 400},
		{Model: models["vgg19"], SLOMs: 60, RatePerSec: 200}}
}

// Its example comes out as published: one device, these shares and batches, these
// latencies; sized without interference, two of the three would be too slow.
func TestGolden(t *testing.T) {
	d, models := v100(t)
	work := example(models)
	blind := make([]igniter.Tenant, 3)
	for i, want := range []struct {
		batch int
		share float64
	}{{4, 10}, {8, 27.5}, {6, 35}} {
		batch, share := d.Bound(work[i])
		if batch != want.batch || share != want.share {
			t.Errorf("%s: batch %d, least share %g", work[i].Model.Name, batch, share)
		}
		blind[i] = igniter.Tenant{Model: work[i].Model, Batch: batch, SharePercent: share}
	}
	each, _, _ := d.Predict(blind, nil)
	near(t, "blind vgg19", each[2].LatencyMs, 30.49, .01)
	near(t, "blind resnet50", each[1].LatencyMs, 20.23, .01)
}

// The example comes out as published in every order of arrival: one device, these shares,
// batches and latencies. Of a hundred services nobody is late.
func TestMeasure(t *testing.T) {
	v100(t) // skips where the data is missing
	for seed := range uint64(6) {
		got, err := igniter.Measure(func(path string) (io.ReadCloser, error) {
			return os.Open(filepath.Join("..", "..", "..", "..", "shared", "data", filepath.FromSlash(path)))
		}, seed+1)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]float64{"devices": 1, "alexnet_share_percent": 10, "resnet50_share_percent": 30, "vgg19_share_percent": 37.5,
			"alexnet_batch": 4, "resnet50_batch": 8, "vgg19_batch": 6, "late_of_100": 0} {
			if got[name] != want {
				t.Errorf("order %d: %s is %g, want %g", seed, name, got[name], want)
			}
		}
		near(t, "latency of vgg19", got["vgg19_ms"], 28.73, .01)
		if got["blind_late_of_100"] == 0 {
			t.Error("at least shares nobody is late")
		}
	}
}
