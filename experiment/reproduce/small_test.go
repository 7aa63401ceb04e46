package reproduce

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/report"
)

// mix is a small cluster and the jobs that come to it.
type mix struct {
	cluster string
	jobs    []workload.Job
	truths  []workload.Truth
}

// drawMix draws a cluster of 4 to 32 devices and 4 to 60 jobs of a few kinds, each of one user and
// name and about one length, gangs of the whole cluster among them. Nobody declares a time.
func drawMix(seed uint64) *mix {
	dice := rand.New(rand.NewPCG(seed, 24))
	between := func(least, most int) int { return least + dice.IntN(most-least+1) }
	shape := [][2]int{{1, 4}, {1, 8}, {2, 2}, {2, 4}, {2, 8}, {4, 4}, {4, 8}}[dice.IntN(7)]
	devices := shape[0] * shape[1]
	m := &mix{cluster: fmt.Sprintf("gpus:%dx%d", shape[0], shape[1])}
	type kind struct {
		gang         int32
		mean, spread float64
		weight       float64
		user, name   string
	}
	var kinds []kind
	total := 0.
	for i := range between(1, 5) {
		sizes := []int{1, 1, 2, 4, max(1, devices/2), devices}
		k := kind{gang: int32(min(devices, sizes[dice.IntN(len(sizes))])), mean: 120 * math.Pow(240, dice.Float64()),
			spread: []float64{0, .1, .5, 1.2}[dice.IntN(4)], weight: .1 + dice.Float64(), user: fmt.Sprint("user", dice.IntN(3)), name: fmt.Sprintf("kind%c", 'a'+i)}
		kinds, total = append(kinds, k), total+k.weight
	}
	n, load := between(4, 60), []float64{.6, .9, 1.1, 1.5, 3}[dice.IntN(5)]
	var at float64
	even := dice.IntN(2) == 0
	for i := range n {
		pick, k := dice.Float64()*total, kinds[0]
		for _, k = range kinds {
			if pick -= k.weight; pick < 0 {
				break
			}
		}
		takes := max(10, k.mean*math.Exp(k.spread*dice.NormFloat64()-k.spread*k.spread/2))
		m.jobs = append(m.jobs, workload.Job{Name: k.name + "-" + strconv.Itoa(i), Submit: unit.Time(unit.Seconds(at)), Tenant: k.user, User: k.user,
			Resources: workload.Resources{Gang: k.gang, Devices: 1, Share: 1000}})
		m.truths = append(m.truths, workload.Truth{Duration: unit.Seconds(takes)})
		wait := 1.
		if !even {
			wait = dice.ExpFloat64()
		}
		at += wait * takes * float64(k.gang) / float64(devices) / load
	}
	return m
}

// list hands the jobs out.
type mixJobs struct {
	*mix
	next int
}

func (l *mixJobs) Next() (workload.Job, workload.Truth, error) {
	if l.next == len(l.jobs) {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	l.next++
	return l.jobs[l.next-1], l.truths[l.next-1], nil
}

func (*mixJobs) Close() error { return nil }

// play simulates a mix under a strategy.
func (m *mix) play(strategy string) (report.Result, error) {
	s := Defaults()
	s.Cluster, s.Strategy, s.NoBounds, s.Limits = m.cluster, strategy, true, report.Limits{Points: 2}
	s.Jobs = func(uint64) (trace.Reader, error) { return &mixJobs{mix: m}, nil }
	o, err := Simulate(s)
	if err != nil {
		return report.Result{}, err
	}
	return o.Result, nil
}

func TestSmallTry(t *testing.T) {
	n := 300
	if x, err := strconv.Atoi(os.Getenv("SMALL")); err == nil {
		n = x
	}
	names := []string{"muster", "tiresias", "srsf+oracle"}
	if os.Getenv("NAMES") != "" {
		names = []string{os.Getenv("NAMES")}
	}
	type row struct {
		seed  int
		over  []float64
		pre   []float64
		facts int
	}
	rows := make([]row, n)
	var wg sync.WaitGroup
	next := make(chan int)
	for range 2 {
		wg.Go(func() {
			for i := range next {
				m := drawMix(uint64(i))
				best := math.Inf(1)
				for _, s := range []string{"fifo", "las"} {
					r, err := m.play(s)
					if err != nil {
						panic(err)
					}
					best = min(best, r.AvgJCTSec)
				}
				rows[i].seed = i
				for _, s := range names {
					r, err := m.play(s)
					if err != nil {
						panic(err)
					}
					rows[i].over = append(rows[i].over, r.AvgJCTSec/best)
					rows[i].pre = append(rows[i].pre, float64(r.Preemptions)/float64(2*2*len(m.jobs)))
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	for k, s := range names {
		slices.SortFunc(rows, func(a, b row) int { return int(1e6 * (a.over[k] - b.over[k])) })
		pre := 0.
		for _, r := range rows {
			pre = max(pre, r.pre[k])
		}
		at := func(p float64) float64 { return rows[int(p*float64(n-1))].over[k] }
		mean := 0.
		for _, r := range rows {
			mean += math.Log(r.over[k]) / float64(n)
		}
		t.Logf("%-12s geomean %.3f median %.3f p90 %.3f p95 %.3f p99 %.3f worst %.3f  most preemptions over bound %.2f", s, math.Exp(mean), at(.5), at(.9), at(.95), at(.99), at(1), pre)
		for _, r := range rows[n-min(n, 6):] {
			m := drawMix(uint64(r.seed))
			t.Logf("   seed %d: %.3f, %d jobs on %s", r.seed, r.over[k], len(m.jobs), m.cluster)
		}
	}
}

func TestSmallShow(t *testing.T) {
	seed, err := strconv.Atoi(os.Getenv("SEED"))
	if err != nil {
		t.Skip()
	}
	m := drawMix(uint64(seed))
	for i := range m.jobs {
		t.Logf("%-10s at %8.0f gang %d takes %.0f", m.jobs[i].Name, unit.Time(m.jobs[i].Submit).Sub(0).Seconds(), m.jobs[i].Gang, m.truths[i].Duration.Seconds())
	}
	for _, strategy := range []string{"fifo", "las", "srsf+oracle", "muster"} {
		s := Defaults()
		s.Cluster, s.Strategy, s.NoBounds, s.Limits = m.cluster, strategy, true, report.Limits{Points: 2, Jobs: 1000}
		if strategy == "muster" && os.Getenv("DEC") != "" {
			s.Decisions, _ = os.Create(os.Getenv("DEC"))
		}
		s.Jobs = func(uint64) (trace.Reader, error) { return &mixJobs{mix: m}, nil }
		o, err := Simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.0f preemptions %d", strategy, o.Result.AvgJCTSec, o.Result.Preemptions)
		line := ""
		for _, j := range o.Collector.View().Jobs {
			line += fmt.Sprintf("%d:%.0f ", j.ID, j.JCT().Seconds())
		}
		t.Log(line)
	}
}

func TestBigTry(t *testing.T) {
	if os.Getenv("BIG") == "" {
		t.Skip()
	}
	const data = "../../../shared/data/"
	type work struct {
		name, trace, cluster string
		load                 float64
		limit                int
	}
	works := []work{{"Venus", "helios:" + data + "helios", "gpus:74x8", 0, 0}, {"Philly", "philly:" + data + "philly", "philly", .95, 0}, {"PAI", "pai:" + data + "pai2020", "gpus:100x8", 1, 30000}, {"RW-A", "gen:rw-a", "gpus:15x4", 0, 0}}
	var wg sync.WaitGroup
	next := make(chan func(), 100)
	for range 2 {
		wg.Go(func() {
			for f := range next {
				f()
			}
		})
	}
	for _, w := range works {
		if o := os.Getenv("ONLY"); o != "" && o != w.name {
			continue
		}
		next <- func() {
			seeds := 1
			if w.name == "RW-A" {
				seeds = 20
			}
			sums, pre, jobs := map[string]float64{}, int64(0), int64(0)
			for seed := range seeds {
				names := []string{"muster"}
				if os.Getenv("BIG") == "2" {
					names = append(names, "srsf+oracle")
				}
				for _, strategy := range names {
					s := Defaults()
					s.Trace, s.Cluster, s.Load, s.Limit, s.Strategy, s.Seed = w.trace, w.cluster, w.load, w.limit, strategy, uint64(seed+1)
					s.Limits, s.NoBounds = report.Limits{Points: 2}, true
					o, err := Simulate(s)
					if err != nil {
						panic(err)
					}
					sums[strategy] += o.Result.AvgJCTSec / float64(seeds)
					if strategy == "muster" {
						pre += o.Result.Preemptions
						jobs += o.Result.Jobs
					}
				}
			}
			known := map[string]float64{"Venus": 10007, "Philly": 13739, "PAI": 5699, "RW-A": 9509}[w.name]
			if x := sums["srsf+oracle"]; x > 0 {
				known = x
			}
			t.Logf("%s: muster %.0f srsf %.0f: %.4f  preemptions per 100 %.1f", w.name, sums["muster"], sums["srsf+oracle"], sums["muster"]/known, 100*float64(pre)/float64(jobs))
		}
	}
	close(next)
	wg.Wait()
}

func TestNamed(t *testing.T) {
	job := func(name string, at, takes float64, gang int32) (workload.Job, workload.Truth) {
		return workload.Job{Name: name, Submit: unit.Time(unit.Seconds(at)), Resources: workload.Resources{Gang: gang, Devices: 1, Share: 1000}}, workload.Truth{Duration: unit.Seconds(takes)}
	}
	for _, c := range []struct {
		name string
		make func(add func(name string, at, takes float64, gang int32)) string
	}{
		{"gang16", func(add func(name string, at, takes float64, gang int32)) string {
			add("gang", 0, 3600, 16)
			for i := range 50 {
				add(fmt.Sprint("s", i), float64(i)*600, 2400, 4)
			}
			return "gpus:2x8"
		}},
		{"gang4", func(add func(name string, at, takes float64, gang int32)) string {
			add("gang", 0, 7200, 4)
			for i := range 60 {
				add(fmt.Sprint("s", i), float64(i)*300, 1200, 1)
			}
			return "gpus:1x4"
		}},
		{"A2", func(add func(name string, at, takes float64, gang int32)) string {
			add("r0", 0, 3600, 4)
			add("big", 10, 3600, 8)
			add("s1", 20, 1500, 2)
			add("s2", 30, 1500, 2)
			return "gpus:1x8"
		}},
	} {
		m := &mix{}
		m.cluster = c.make(func(name string, at, takes float64, gang int32) {
			j, r := job(name, at, takes, gang)
			m.jobs, m.truths = append(m.jobs, j), append(m.truths, r)
		})
		for _, s := range []string{"fifo", "tiresias", "las", "srsf+oracle", "muster", "muster+easy"} {
			r, err := m.play(s)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %s: %.0f, %d preemptions", c.name, s, r.AvgJCTSec, r.Preemptions)
		}
	}
}
