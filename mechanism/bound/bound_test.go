package bound

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// job takes whole seconds and devices.
func job(submit, duration, devices int) Job {
	return Job{Submit: unit.Time(unit.Duration(submit) * unit.Second), Duration: unit.Duration(duration) * unit.Second,
		Devices: unit.Milli(devices) * unit.Whole}
}

func TestByHand(t *testing.T) {
	tests := []struct {
		name                         string
		jobs                         []Job
		devices                      int
		isolated, squashed, makespan float64
	}{
		{"none", nil, 4, 0, 0, 0},
		{"one", []Job{job(5, 10, 2)}, 4, 10, 5, 10},
		// One machine of speed 4 needs 1 s and 4 s: done at 1 and 5.
		{"two at once", []Job{job(0, 4, 4), job(0, 4, 1)}, 4, 4, 3, 5},
		// The long job (8 s of all devices) gives way to the short one at 2 s.
		{"preemption", []Job{job(0, 8, 4), job(2, 1, 4)}, 4, 4.5, 5, 9},
		{"an idle gap", []Job{job(0, 2, 1), job(100, 3, 1)}, 1, 2.5, 2.5, 103},
		// The second half alone keeps the devices busy from 100 s to 120 s.
		{"work released late", []Job{job(0, 1, 2), job(100, 10, 2), job(100, 10, 2)}, 2, 7, 31. / 3, 120},
		{"no device", []Job{job(0, 7, 0)}, 1, 7, 0, 7},
	}
	for _, test := range tests {
		b := Compute(test.jobs, Room{Devices: test.devices})
		got := [...]float64{b.Isolated.Seconds(), b.SquashedSRPT.Seconds(), b.Makespan.Seconds(), b.MeanJCT.Seconds()}
		want := [...]float64{test.isolated, test.squashed, test.makespan, max(test.isolated, test.squashed, b.Queueing.Seconds())}
		for i := range got {
			if math.Abs(got[i]-want[i]) >= 1e-6 {
				t.Errorf("%s: got %v, want %v", test.name, got, want)
				break
			}
		}
	}
}

// TestLoose: a job that may end sooner than on what it asks for has no bound, and the reason
// is said.
func TestLoose(t *testing.T) {
	two := workload.Resources{Gang: 2, Devices: 1, Share: unit.Whole}
	elastic := two
	elastic.Sizes = []int32{1, 2, 4}
	fixed := two
	fixed.Sizes = []int32{2}
	for _, c := range []struct {
		job   workload.Job
		truth workload.Truth
		want  unit.Duration
		why   string
	}{
		{job: workload.Job{Resources: two}, want: 4 * unit.Second},
		{job: workload.Job{Resources: fixed}, want: 4 * unit.Second},
		{job: workload.Job{Resources: elastic}, why: "more or fewer workers"},
		{job: workload.Job{Resources: two, Traits: workload.Traits{Pipeline: workload.Pipeline{Stages: 2}}}, why: "plans"},
		{job: workload.Job{Resources: two}, truth: workload.Truth{Drifts: []workload.Drift{{From: .5, Times: .5}}}, why: "plans"},
		{job: workload.Job{Resources: two, Traits: workload.Traits{Service: workload.Service{RatePerSec: 1}}}, why: "services"},
	} {
		c.truth.Duration = 5 * unit.Second
		b := Compute([]Job{Of(c.job, c.truth), job(0, 3, 1)}, Room{Devices: 4})
		if b.MeanJCT != c.want || (b.Why == "") != (c.why == "") || !strings.Contains(b.Why, c.why) {
			t.Errorf("%+v: the mean JCT is bounded by %s, want %s; why: %q", c.job, b.MeanJCT, c.want, b.Why)
		}
	}
}

// TestFastest: where a job goes twice as fast on some devices, its bound is by those.
func TestFastest(t *testing.T) {
	one := Of(workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}, workload.Truth{Duration: 6 * unit.Second}).At(2)
	if got := Compute([]Job{one}, Room{Devices: 1}).MeanJCT; got > 3*unit.Second || got < 3*unit.Second-2 {
		t.Errorf("bounded by %s, want 3 s", got)
	}
}

// TestShared: where devices work for several jobs at once only the isolated bound is left.
func TestShared(t *testing.T) {
	jobs := []Job{job(0, 4, 4), job(0, 4, 4), job(0, 9, 1)}
	alone, shared := Compute(jobs, Room{Devices: 4}), Compute(jobs, Room{Devices: 4, Shared: true})
	if shared.MeanJCT != shared.Isolated || shared.Queueing != 0 || shared.SquashedSRPT != 0 || shared.Makespan != 9*unit.Second || shared.Why == "" {
		t.Errorf("shared: %+v", shared)
	}
	if alone.MeanJCT <= alone.Isolated || alone.Why != "" {
		t.Errorf("alone: %+v", alone)
	}
}

func TestSkipped(t *testing.T) {
	endless := job(0, 1, 1)
	endless.Duration = unit.Forever
	b := Compute([]Job{job(0, 5, 9), endless, job(3, 2, 1)}, Room{Devices: 4})
	if b.Jobs != 1 || b.Skipped != 2 || b.MeanJCT != 2*unit.Second || b.Makespan != 2*unit.Second {
		t.Errorf("%+v", b)
	}
}

// best finds the least sum of completion times and the least makespan of all
// preemptive schedules in steps of one second, by trying them all.
type best struct {
	jobs    []Job
	devices int
	sums    map[string]int
	ends    map[string]int
}

func (b *best) search(now int, left []int) (sum, end int) {
	key := fmt.Sprint(now, left)
	if s, ok := b.sums[key]; ok {
		return s, b.ends[key]
	}
	waiting, done := []int{}, true
	for i, l := range left {
		if l > 0 {
			done = false
			if b.jobs[i].Submit.Seconds() <= float64(now) {
				waiting = append(waiting, i)
			}
		}
	}
	if done {
		return 0, now
	}
	sum, end = math.MaxInt, math.MaxInt
	for set := range 1 << len(waiting) {
		used, finished := 0, 0
		after := append([]int(nil), left...)
		for k, i := range waiting {
			if set>>k&1 == 0 {
				continue
			}
			used += int(b.jobs[i].Devices / unit.Whole)
			if after[i]--; after[i] == 0 {
				finished += now + 1 - int(b.jobs[i].Submit.Seconds())
			}
		}
		if used > b.devices || set == 0 && len(waiting) > 0 {
			continue
		}
		s, e := b.search(now+1, after)
		sum, end = min(sum, s+finished), min(end, e)
	}
	b.sums[key], b.ends[key] = sum, end
	return sum, end
}

// No schedule of small instances beats the bounds; and where every job takes all
// devices, the squashed bound and the makespan are met exactly.
func TestAgainstAllSchedules(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		devices := rapid.IntRange(1, 3).Draw(t, "devices")
		wide := rapid.Bool().Draw(t, "wide")
		search := best{devices: devices, sums: map[string]int{}, ends: map[string]int{}}
		var left []int
		first := math.MaxInt
		for range rapid.IntRange(1, 4).Draw(t, "jobs") {
			submit, duration := rapid.IntRange(0, 4).Draw(t, "submit"), rapid.IntRange(1, 4).Draw(t, "duration")
			n := devices
			if !wide {
				n = rapid.IntRange(1, devices).Draw(t, "n")
			}
			search.jobs, left, first = append(search.jobs, job(submit, duration, n)), append(left, duration), min(first, submit)
		}
		sum, end := search.search(0, left)
		mean := float64(sum) / float64(len(left))
		b := Compute(search.jobs, Room{Devices: devices})
		if b.MeanJCT.Seconds() > mean+1e-9 || b.Makespan.Seconds() > float64(end-first)+1e-9 {
			t.Fatalf("%+v is above the best: mean %g, makespan %d", b, mean, end-first)
		}
		if wide && (math.Abs(b.SquashedSRPT.Seconds()-mean) >= 1e-6 || math.Abs(b.Makespan.Seconds()-float64(end-first)) >= 1e-6) {
			t.Fatalf("%+v, where the best is exactly mean %g, makespan %d", b, mean, end-first)
		}
	})
}

// Squashed bounds scale: k times the devices for jobs k times as wide changes
// nothing, and the order of the jobs in the slice does not matter.
func TestScaleAndOrder(t *testing.T) {
	jobs := random(500)
	want := Compute(jobs, Room{Devices: 64})
	wide := append([]Job(nil), jobs...)
	for i := range wide {
		wide[i].Devices *= 4
	}
	if got := Compute(wide, Room{Devices: 256}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] })
	if got := Compute(jobs, Room{Devices: 64}); got != want {
		t.Errorf("shuffled: got %+v, want %+v", got, want)
	}
}

func random(n int) []Job {
	r := rand.New(rand.NewPCG(7, 7))
	jobs := make([]Job, n)
	at := 0.0
	for i := range jobs {
		at += r.ExpFloat64() * 300
		jobs[i] = Job{Submit: unit.Time(unit.Seconds(at)), Duration: unit.Seconds(1800 * math.Exp(1.8*r.NormFloat64())),
			Devices: unit.Whole << r.IntN(6)}
	}
	return jobs
}

// load reads the first jobs of a trace, of one tenant where that is named, that
// run at least so long.
func load(t *testing.T, ref, tenant string, least unit.Duration, limit int) []Job {
	t.Helper()
	r, err := trace.Open(ref, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var jobs []Job
	for len(jobs) < limit {
		j, truth, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if (tenant == "" || j.Tenant == tenant) && truth.Duration >= least {
			jobs = append(jobs, Of(j, truth))
		}
	}
	return jobs
}

// Bounds of public traces that were computed before, by another program. It took
// the first jobs of Philly that run for a minute or more.
func TestPublicTraces(t *testing.T) {
	root := filepath.Join("..", "..", "..", "shared", "data")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("the evaluation data is not here: %v", err)
	}
	philly, tiresias := "philly:"+filepath.Join(root, "philly"), "tiresias:"+filepath.Join(root, "tiresias")
	tests := []struct {
		ref, tenant                  string
		least                        unit.Duration
		limit, devices               int
		isolated, squashed, makespan float64
	}{
		{tiresias, "", 0, 60, 128, 178.4, 3.5, 3_271},
		{philly, "", unit.Minute, 480, 128, 213_059, 55_101, 5_944_538},
		{philly, "", unit.Minute, 1000, 128, 104_009, 28_426, 5_944_538},
		{philly, "6214e9", unit.Minute, 2000, 64, 29_520.5, 967, 4_243_293},
		{philly, "6214e9", unit.Minute, 5000, 64, 15_656.6, 8_454, 4_430_715},
	}
	for _, test := range tests {
		b := Compute(load(t, test.ref, test.tenant, test.least, test.limit), Room{Devices: test.devices})
		if b.Jobs != test.limit || math.Abs(b.Isolated.Seconds()-test.isolated) > 0.5 ||
			math.Abs(b.SquashedSRPT.Seconds()-test.squashed) > 1 || math.Abs(b.Makespan.Seconds()-test.makespan) > 0.5 {
			t.Errorf("%s %s %d: isolated %.1f, squashed %.1f, makespan %.1f; %d jobs", test.ref, test.tenant, test.limit,
				b.Isolated.Seconds(), b.SquashedSRPT.Seconds(), b.Makespan.Seconds(), b.Jobs)
		}
	}
}

func BenchmarkCompute100k(b *testing.B) {
	jobs := random(100_000)
	for b.Loop() {
		Compute(jobs, Room{Devices: 128})
	}
}
