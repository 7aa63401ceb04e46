package pollux

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/allocate/search"
	"github.com/musterdl/muster/profile/perf"
)

// folder of the measurements and workloads in the published data.
const folder = "pollux-sia/"

// experiment is what all measurements share.
type experiment struct {
	apps     map[string]*Application
	workload func(load string, number int) ([]Request, error)
	seed     uint64
}

func newExperiment(open Open, seed uint64) (*experiment, error) {
	apps, err := LoadFrom(func(path string) (io.ReadCloser, error) { return open(folder + "profiles/" + path) })
	if err != nil {
		return nil, err
	}
	return &experiment{apps: apps, seed: seed, workload: func(load string, number int) ([]Request, error) {
		const archive = folder + "pollux_workloads.tar.gz"
		f, err := open(archive)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readMember(f, archive, fmt.Sprintf("%s/workload-%d.csv", load, number))
	}}, nil
}

// setting is one history to be played.
type setting struct {
	policy  string // tiresias, optimus, genetic or greedy
	load    string
	number  int // of the workload
	mingle  bool
	cluster Config
}

func (x *experiment) play(s setting) (float64, error) {
	workload, err := x.workload(s.load, s.number)
	if err != nil {
		return 0, err
	}
	var policy Policy = Optimus{}
	switch s.policy {
	case "tiresias":
		policy = NewTiresias()
	case "genetic", "greedy":
		policy = NewElastic(ElasticConfig{Greedy: s.policy == "greedy", Mingle: s.mingle, Effort: search.Patient(), Seed: x.seed})
	}
	r, err := Run(workload, x.apps, s.cluster, policy)
	if err == nil && r.Unfinished > 0 {
		err = fmt.Errorf("%d jobs of workload %d did not finish under %s", r.Unfinished, s.number, s.policy)
	}
	return r.MeanSeconds, err
}

// eight plays the published workloads and returns their means.
func (x *experiment) eight(s setting) (means [8]float64, err error) {
	for i := range means {
		s.number = i + 1
		if means[i], err = x.play(s); err != nil {
			return means, err
		}
	}
	return means, nil
}

const workloads = "workloads"

// Measure plays the eight workloads under Pollux with either search and under the two
// baselines, and on workload 6 the greedy search at other loads, intervals, restart
// costs, and with neighbours that disturb each other.
func Measure(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	x, err := newExperiment(open, seed)
	if err != nil {
		return nil, err
	}
	m, means := map[string]float64{}, map[string][8]float64{}
	for _, policy := range []string{"tiresias", "optimus", "genetic", "greedy"} {
		all, err := x.eight(setting{policy: policy, load: workloads, cluster: Default()})
		if err != nil {
			return nil, err
		}
		means[policy] = all
		m[policy+"_jct_s_w6"] = all[5]
		for _, mean := range all {
			m[policy+"_jct_s_mean"] += mean / 8
		}
	}
	for i := range 8 {
		if means["genetic"][i] < means["tiresias"][i] && means["tiresias"][i] < means["optimus"][i] {
			m["in_order"]++
		}
	}
	if m["inner_rank_correlation"], m["relative_rank_correlation"], err = x.inner(true, .5); err != nil {
		return nil, err
	}
	if m["first_rank_correlation"], _, err = x.inner(true, 0); err != nil {
		return nil, err
	}
	return m, x.sweep(m)
}

// sweep adds the variations on workload 6.
func (x *experiment) sweep(m map[string]float64) error {
	plain := setting{policy: "greedy", load: workloads, number: 6, cluster: Default()}
	add := func(name string, change func(s *setting)) error {
		s := plain
		change(&s)
		mean, err := x.play(s)
		m[name] = mean
		return err
	}
	for _, load := range []string{"0.5", "1.5", "2.0"} {
		for _, policy := range []string{"greedy", "optimus", "tiresias"} {
			if err := add(policy+"_jct_s_w6_load"+load, func(s *setting) { s.policy, s.load = policy, workloads+"-"+load }); err != nil {
				return err
			}
		}
	}
	for _, seconds := range []int{30, 120, 240, 480} {
		if err := add(fmt.Sprintf("greedy_jct_s_w6_every%d", seconds), func(s *setting) { s.cluster.TickSeconds = seconds }); err != nil {
			return err
		}
	}
	for _, percent := range []int{0, 25, 50} {
		if err := add(fmt.Sprintf("greedy_jct_s_w6_mingle_slow%d", percent), func(s *setting) { s.mingle, s.cluster.Slowdown = true, float64(percent)/100 }); err != nil {
			return err
		}
	}
	for _, seconds := range []int{2, 120} {
		for _, policy := range []string{"greedy", "optimus", "tiresias"} {
			if err := add(fmt.Sprintf("%s_jct_s_w6_restart%d", policy, seconds), func(s *setting) { s.policy, s.cluster.RestartSeconds = policy, seconds }); err != nil {
				return err
			}
		}
	}
	return nil
}

// MeasureOptimus plays the eight workloads under the artefact's Optimus, workload 6 at
// other restart costs, and recovers made-up models from eight noisy samples.
func MeasureOptimus(open func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	x, err := newExperiment(open, seed)
	if err != nil {
		return nil, err
	}
	all, err := x.eight(setting{policy: "optimus", load: workloads, cluster: Default()})
	if err != nil {
		return nil, err
	}
	m := map[string]float64{"optimus_jct_s_w6": all[5]}
	for _, mean := range all {
		m["optimus_jct_s_mean"] += mean / 8
	}
	for _, seconds := range []int{2, 120} {
		s := setting{policy: "optimus", load: workloads, number: 6, cluster: Default()}
		s.cluster.RestartSeconds = seconds
		if m[fmt.Sprintf("optimus_jct_s_w6_restart%d", seconds)], err = x.play(s); err != nil {
			return nil, err
		}
	}
	if m["inner_rank_correlation"], m["relative_rank_correlation"], err = x.inner(false, 0); err != nil {
		return nil, err
	}
	m["sync_error"], m["async_error"] = recovered(perf.Sync, 5, seed), recovered(perf.Async, 4, seed)
	return m, nil
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
