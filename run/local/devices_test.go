package local

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/run/trainer/progress"
)

// workplace makes up how long the workers of a run take for the same work, window after window: each as
// slow as its device is, all as slow as the machine, and besides by chance.
type workplace struct {
	dice   *rand.Rand
	slow   []float64
	noise  float64 // standard deviation of a logarithm
	hangs  float64 // how the noise of two windows that follow each other is correlated
	last   []float64
	report progress.Devices
}

func (w *workplace) windows(n int) *progress.Devices {
	for range n {
		machine, times := math.Exp(w.dice.Float64()), []float64(nil)
		w.last = append(w.last, make([]float64, len(w.slow)-len(w.last))...)
		for i, slow := range w.slow {
			w.last[i] = w.hangs*w.last[i] + math.Sqrt(1-w.hangs*w.hangs)*w.noise*w.dice.NormFloat64()
			times = append(times, slow*machine*math.Exp(w.last[i]))
		}
		w.report.Windows++
		if w.report.Times = append(w.report.Times, times); len(w.report.Times) > progress.WindowsMost {
			w.report.Times = w.report.Times[1:]
		}
	}
	return &w.report
}

// TestWhichDeviceIsSlow: a device that takes three times as long is found out among others, by how much,
// and is forgotten when it is well again, on a quiet machine and on one that is much disturbed.
func TestWhichDeviceIsSlow(t *testing.T) {
	for seed := range uint64(20) {
		for _, noise := range []float64{.01, .4} {
			for _, workers := range []int{2, 3, 4} {
				w := workplace{dice: rand.New(rand.NewPCG(seed, 1)), noise: noise, slow: make([]float64, workers)}
				for i := range w.slow {
					w.slow[i] = 1
				}
				var d devices
				settle := func() (reports int) {
					for d.again(); !d.known(); reports++ {
						d.learn(w.windows(3), workers)
					}
					d.told = d.slow()
					return reports
				}
				settle()
				w.slow[1] = 3
				settle()
				for i, is := range d.told {
					if off := math.Abs(math.Log(is / w.slow[i])); i != 1 && is != 1 || off > .05+noise {
						t.Errorf("%d workers, noise %g: %v, expected %v", workers, noise, d.told, w.slow)
						break
					}
				}
				if w.slow[1] = 1; settle() > windowsMost {
					t.Errorf("%d workers, noise %g: it takes ever so long", workers, noise)
				}
				for _, is := range d.told {
					if is != 1 {
						t.Errorf("%d workers, noise %g: %v when all is well again", workers, noise, d.told)
						break
					}
				}
			}
		}
	}
}

// TestNoiseIsNoSlowDevice: on a machine that is much disturbed and has no slow device one is seen no
// oftener than chance may be behind it: what is said stays said, so each of many runs is asked at each
// of its reports. Disturbances that outlast a window deceive oftener, but not one run in three.
func TestNoiseIsNoSlowDevice(t *testing.T) {
	const runs, reports = 200, 50
	for hangs, most := range map[float64]int{0: runs / 20, .8: runs / 3} {
		wrong := 0
		for seed := range uint64(runs) {
			w := workplace{dice: rand.New(rand.NewPCG(seed, 2)), noise: .8, hangs: hangs, slow: []float64{1, 1}}
			var d devices
			for range reports {
				if d.learn(w.windows(1), 2); d.known() && d.other(d.slow()) {
					wrong++
					break
				}
			}
		}
		if t.Logf("correlation %g: in %d of %d runs a device is said to be slow", hangs, wrong, runs); wrong > most {
			t.Error("that is too often")
		}
	}
}

// TestDevicesOfBadReports: what cannot be is not believed, and what nobody measured tells nothing.
func TestDevicesOfBadReports(t *testing.T) {
	for name, d := range map[string]*progress.Devices{
		"none": nil, "of three workers": {Times: [][]float64{{1, 1, 1}}}, "negative": {Times: [][]float64{{1, -1}}}, "endless": {Times: [][]float64{{1, 1e300}}},
		"too many": {Times: make([][]float64, progress.WindowsMost+1)},
	} {
		if d.Tells(2) {
			t.Errorf("%s: believed", name)
		}
	}
	var d devices
	for i := range 40 {
		d.learn(&progress.Devices{Windows: int64(i), Times: [][]float64{{0, 1}}}, 2)
	}
	if d.known() {
		t.Errorf("known from windows in which one worker was not measured: %+v", d)
	}
	d.learn(&progress.Devices{Windows: 3, Times: [][]float64{{1, 1}, {1, 2}, {1, 1}}}, 2)
	if len(d.windows) != 3 {
		t.Errorf("a program that counts anew: %+v", d.windows)
	}
}
