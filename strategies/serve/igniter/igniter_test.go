package igniter_test

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/run/simulated/world/serving"
	"github.com/musterdl/muster/strategies/serve/igniter/sizing"
)

// v100 is the law of the public code's profile.
func v100(t testing.TB) *sharing.Law {
	t.Helper()
	measured, err := serving.V100(func(path string) (io.ReadCloser, error) {
		return os.Open(filepath.Join("..", "..", "..", "..", "shared", "data", filepath.FromSlash(path)))
	})
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the data set inference-sharing is not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	law, err := measured.Fit()
	if err != nil {
		t.Fatal(err)
	}
	return law
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
	law := v100(t)
	d := law.Device
	near(t, "MHz per W", d.MHzPerWatt, -1.0254, 1e-4)
	near(t, "gap per tenant", d.GapPerTenantMs, 4.751e-3, 1e-6)
	near(t, "gap", d.GapMs, -9.022e-3, 1e-6)
	for name, want := range map[string][6]float64{"alexnet": {.00415, 8.711, 23.73, .055, .346, 2.376e-3},
		"resnet50": {-.0175, 58.27, -.009, .345, 1.909, 2.163e-3}, "vgg19": {-.00484, 158.2, 44.53, .19, .920, 2.018e-3}} {
		m := law.Find(name)
		for i, within := range [5]float64{6e-5, .06, .1, 2e-3, 7e-3} {
			near(t, name, m.K[i], want[i], within)
		}
		near(t, name+" cache", m.CacheSlowdown, want[5], 1e-6)
	}
}

// At the least shares of its example, two of the three would be too slow.
func TestBound(t *testing.T) {
	law := v100(t)
	d := law.Device
	var blind []sharing.Tenant
	for _, want := range []struct {
		of    sizing.Workload
		batch int
		share float64
	}{
		{sizing.Workload{Model: law.Find("alexnet"), SLOMs: 15, RatePerSec: 500}, 4, 10},
		{sizing.Workload{Model: law.Find("resnet50"), SLOMs: 40, RatePerSec: 400}, 8, 27.5},
		{sizing.Workload{Model: law.Find("vgg19"), SLOMs: 60, RatePerSec: 200}, 6, 35},
	} {
		batch, share := sizing.Bound(&d, want.of)
		if batch != want.batch || share != want.share {
			t.Errorf("%s: batch %d, least share %g", want.of.Model.Name, batch, share)
		}
		blind = append(blind, sharing.Tenant{Model: want.of.Model, Batch: batch, SharePercent: share})
	}
	each, _, _ := d.Predict(blind, nil)
	near(t, "blind vgg19", each[2].LatencyMs, 30.49, .01)
	near(t, "blind resnet50", each[1].LatencyMs, 20.23, .01)
}
