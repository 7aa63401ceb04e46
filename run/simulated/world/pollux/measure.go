package pollux

import (
	"io"
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/profile/perf"
)

// folder of the measurements and workloads in the published data.
const folder = "pollux-sia/"

// experiment is what the measurements of inner scores share.
type experiment struct {
	apps     map[string]*Application
	workload []Request // the sixth
	seed     uint64
}

func newExperiment(open Open, seed uint64) (*experiment, error) {
	apps, err := LoadFrom(func(path string) (io.ReadCloser, error) { return open(folder + "profiles/" + path) })
	if err != nil {
		return nil, err
	}
	const archive = folder + "pollux_workloads.tar.gz"
	f, err := open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	workload, err := readMember(f, archive, "workloads/workload-6.csv")
	return &experiment{apps: apps, workload: workload, seed: seed}, err
}

// Measure is how well the inner score of Pollux orders allocations.
func Measure(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	x, err := newExperiment(open, seed)
	if err != nil {
		return nil, err
	}
	seconds, relative, err := x.inner(true)
	return map[string]float64{"inner_rank_correlation": seconds, "relative_rank_correlation": relative}, err
}

// MeasureOptimus is how well the inner score of Optimus orders allocations, and with what
// error made-up models are recovered from eight noisy samples.
func MeasureOptimus(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	x, err := newExperiment(open, seed)
	if err != nil {
		return nil, err
	}
	seconds, relative, err := x.inner(false)
	return map[string]float64{"inner_rank_correlation": seconds, "relative_rank_correlation": relative,
		"sync_error": recovered(perf.Sync, 5, seed), "async_error": recovered(perf.Async, 4, seed)}, err
}

// recovered is the mean relative error of predictions for up to 12 workers and servers
// after a fit to eight samples with 5 % of noise, over forty models.
func recovered(form perf.Form, terms int, seed uint64) float64 {
	sampled := [][2]int{{1, 1}, {2, 1}, {4, 2}, {8, 4}, {4, 8}, {8, 1}, {12, 6}, {12, 12}}
	rng := rand.New(rand.NewPCG(seed, uint64(form)))
	sum, n := 0.0, 0.0
	for range 40 {
		truth := perf.Speed{Form: form, Batch: 256}
		for range terms {
			truth.Terms = append(truth.Terms, .02+.2*rng.Float64())
		}
		if form == perf.Sync {
			truth.Terms[0] /= 16 // per sample
		}
		var seen []perf.Sample
		for _, c := range sampled {
			seen = append(seen, perf.Sample{Workers: c[0], Servers: c[1], StepsPerSec: truth.StepsPerSec(c[0], c[1]) * math.Exp(.05*rng.NormFloat64())})
		}
		fitted := perf.FitSpeed(form, truth.Batch, seen)
		for w := 1; w <= 12; w++ {
			for p := 1; p <= 12; p++ {
				sum, n = sum+math.Abs(fitted.StepsPerSec(w, p)/truth.StepsPerSec(w, p)-1), n+1
			}
		}
	}
	return sum / n
}
