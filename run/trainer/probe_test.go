package trainer

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/musterdl/muster/run/trainer/progress"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
)

// TestDevicesAreTold: all workers of two pipelines of two stages tell of their devices, by rank, in windows that
// they have in common.
func TestDevicesAreTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "timings")
	c := tiny()
	c.Steps = 60
	plan := planned(zerobubble.H1{}, 2, 3, 2)
	attempt(t, 4, flags(c, "--timings-every", "5", "--step-delay", "20ms"), map[string]string{"MUSTER_TIMINGS": file, "MUSTER_PLAN": writePlan(t, plan)}).must(t, ExitDone)
	got, err := progress.ReadTimings(file)
	if err != nil || !got.Devices.Tells(4) || got.Devices.Windows < 1 || len(got.Devices.Times) != int(min(got.Devices.Windows, progress.WindowsMost)) {
		t.Fatalf("%+v, %v", got.Devices, err)
	}
	best := [4]bool{}
	for _, times := range got.Devices.Times {
		for rank, is := range times {
			if is > 0 && is < 1 {
				t.Errorf("rank %d took %g of what it takes at best", rank, is)
			}
			best[rank] = best[rank] || is == 1
		}
	}
	if got.Devices.Windows < progress.WindowsMost && best != [4]bool{true, true, true, true} {
		t.Errorf("somebody was never as fast as at best: %+v", got.Devices)
	}
}

// TestWindowsAreAgreedOn: workers agree on windows of as many steps, however long each of them takes
// itself, and those are at least as long as said.
func TestWindowsAreAgreedOn(t *testing.T) {
	var all [2]probe
	x := make([]float32, 2*probeFloats)
	for i := range all {
		all[i].agreed, all[i].since = time.Now().Add(-time.Duration(90+20*i)*time.Millisecond), 10
		all[i].tell(x[i*probeFloats:])
	}
	for i := range all {
		all[i].heard(x)
	}
	if all[0].per != all[1].per || all[0].per < 19 || all[0].per > 20 { // of 10 steps in 100 ms, and a little more
		t.Errorf("windows of %d and %d steps", all[0].per, all[1].per)
	}
}

// TestProbeCostsLittle: between steps without end, products and looks at passes take no more than their part
// of the time that goes by, each as long as the quickest of its kind.
func TestProbeCostsLittle(t *testing.T) {
	p := newProbe()
	if p.quick == 0 || p.read == 0 {
		t.Fatalf("before the first step a product takes %s and a look %s: it has to be known", p.quick, p.read)
	}
	const passes, step = 4, time.Millisecond
	products, looks := 0, 0
	began := time.Now()
	for time.Since(began) < 300*time.Millisecond {
		was := p.multiplied
		if p.between(passes); p.multiplied != was {
			products++
		}
		if p.looks {
			looks++
		}
		time.Sleep(step)
	}
	took := time.Since(began)
	if most := took/(probePart*p.quick) + 2; time.Duration(products) > most || products == 0 {
		t.Errorf("%d products of %s in %s", products, p.quick, took)
	}
	if most := took/(probePart*2*passes*p.read) + 2; time.Duration(looks) > most || looks == 0 {
		t.Errorf("%d looks of %s in %s", looks, 2*passes*p.read, took)
	}
}
