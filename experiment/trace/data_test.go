package trace

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

// data returns a folder of the evaluation data, which lies beside the repository.
func data(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "data", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the data set %s is not here: %v", name, err)
	}
	return dir
}

func summary(t testing.TB, ref string, opt Options) Stats {
	t.Helper()
	r, err := Open(ref, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := Summarise(r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*math.Abs(want) {
		t.Errorf("%s is %g, want %g within %g%%", what, got, want, 100*part)
	}
}

// The figures are those that the data sets publish with their files.
func TestPublishedFigures(t *testing.T) {
	tests := []struct {
		format, folder    string
		jobs, tenants     int
		hours, spanDays   float64
		median, mean, p95 float64
		widest            int
	}{
		{"philly", "philly", 74_167, 15, 894_968, 87.56, 1_213, 13_108, 37_937, 32},
		{"helios", "helios", 99_707, 0, 1_990_761, 166.83, 205, 9_311, 58_791, 200},
		{"pai", "pai2020", 43_308, 0, 498_721, 48.80, 637, 5_255, 24_351, 400},
		{"tiresias", "tiresias", 60, 0, 7, 0.02, 125, 178, 368, 8},
		{"chronus", "chronus", 30_940, 11, 371_328, 0.23 * 60, 3_600, 15_645, 84_240, 32},
	}
	for _, test := range tests {
		t.Run(test.format, func(t *testing.T) {
			s := summary(t, test.format+":"+data(t, test.folder), Options{})
			if s.Jobs != test.jobs || s.Tenants != test.tenants || s.Unknown != 0 {
				t.Errorf("%d jobs of %d tenants, %d without duration", s.Jobs, s.Tenants, s.Unknown)
			}
			slack := 0.001
			if test.jobs < 100 {
				slack = 0.01 // published rounded, and percentiles of few jobs differ by definition
			}
			near(t, "work", s.DeviceHours, test.hours, 10*slack)
			near(t, "span", s.Span.Seconds()/86400, test.spanDays, 20*slack)
			near(t, "median", s.P50.Seconds(), test.median, 0.02)
			near(t, "mean", s.Mean.Seconds(), test.mean, 0.02)
			near(t, "p95", s.P95.Seconds(), test.p95, 20*slack)
			if got := s.Gangs[len(s.Gangs)-1].Devices; got != unit.Milli(test.widest)*unit.Whole {
				t.Errorf("the widest gang has %s devices, want %d", got, test.widest)
			}
		})
	}
}

func TestChronus(t *testing.T) {
	dir := data(t, "chronus")
	s := summary(t, "chronus:"+dir, Options{})
	if s.CPUOnly != 184 || s.Deadlines != 21_724 {
		t.Errorf("%d jobs without devices and %d with a deadline, want 184 and 21724", s.CPUOnly, s.Deadlines)
	}
	all := summary(t, "chronus:"+filepath.Join(dir, "trace_job_Philly_SLO.csv.gz"), Options{})
	if all.CPUOnly != 205 || all.Deadlines != 30_940 {
		t.Errorf("%d jobs without devices and %d with a deadline, want 205 and 30940", all.CPUOnly, all.Deadlines)
	}
}

func TestOpenbPods(t *testing.T) {
	dir := data(t, "openb2023")
	s := summary(t, "openb:"+dir, Options{})
	if s.Jobs != 8_152 || s.CPUOnly != 1_088 || s.Fractional != 3_078 || s.Unknown != 0 {
		t.Errorf("%d pods, %d without a GPU, %d with a fraction, %d without times", s.Jobs, s.CPUOnly, s.Fractional, s.Unknown)
	}
	var demand unit.Milli
	for _, g := range s.Gangs {
		demand += g.Devices * unit.Milli(g.Jobs)
	}
	near(t, "demand", float64(demand)/1000, 6_087, 0.001)
	if got := s.P50.Seconds(); got != 540 {
		t.Errorf("median lifetime %g s, want 540", got)
	}
	spec := readJobs(t, "openb:"+filepath.Join(dir, "openb_pod_list_gpuspec33.csv.gz"))
	named := 0
	for _, e := range spec {
		named += count(len(e.job.Models) > 0)
	}
	if named != 2_388 {
		t.Errorf("%d pods name models, want 2388", named)
	}
	timeless := summary(t, "openb:"+filepath.Join(dir, "openb_pod_list_multigpu20.csv.gz"), Options{})
	if timeless.Jobs != 8_324 || timeless.Unknown != 8_324 || timeless.Span != 0 {
		t.Errorf("the list without times: %+v", timeless)
	}
}

func TestOpenbCluster(t *testing.T) {
	dir := data(t, "openb2023")
	c, err := OpenbCluster(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Nodes) != 1_213 || len(c.Devices) != 6_212 {
		t.Errorf("%d nodes with %d devices, want 1213 with 6212", len(c.Nodes), len(c.Devices))
	}
	devices := map[string]int{}
	for _, n := range c.Nodes {
		devices[c.Models[n.Model].Name] += int(n.Count)
	}
	want := map[string]int{"A10": 2, "G2": 4392, "G3": 312, "P100": 265, "T4": 842, "V100M16": 195, "V100M32": 204}
	for model, n := range want {
		if devices[model] != n {
			t.Errorf("%d devices of %s, want %d", devices[model], model, n)
		}
	}
	all, err := OpenbCluster(filepath.Join(dir, "openb_node_list_all_node.csv"))
	if err != nil || len(all.Nodes) != 1_523 {
		t.Errorf("with the nodes without GPUs: %v", err)
	}
}

func TestPolluxMembers(t *testing.T) {
	dir := data(t, "pollux-sia")
	archive := "pollux:" + filepath.Join(dir, "pollux_workloads.tar.gz")
	for _, ref := range []string{"pollux:" + dir, archive + "#workloads-0.5/workload-1.csv",
		"pollux:" + filepath.Join(dir, "workloads", "philly", "workload-6.csv")} {
		s := summary(t, ref, Options{})
		if s.Jobs == 0 || s.Unknown != s.Jobs {
			t.Errorf("%s: %+v", ref, s)
		}
	}
	first := readJobs(t, "pollux:"+filepath.Join(dir, "workloads", "philly", "workload-6.csv"))[0].job
	if first.Name != "cifar10-0" || first.Class != "cifar10/2048" || first.Gang != 6 || first.Submit != 0 {
		t.Errorf("first job %+v", first)
	}
	for _, ref := range []string{archive, archive + "#workloads/nothing.csv"} {
		if _, err := Open(ref, Options{}); err == nil {
			t.Errorf("%s opened", ref)
		} else {
			t.Log(err)
		}
	}
}

// Everything that ships with a data set must read.
func TestEveryFile(t *testing.T) {
	patterns := map[string][]string{
		"openb":   {"openb2023/openb_pod_list_*.csv.gz"},
		"chronus": {"chronus/*.csv.gz"},
		"pollux":  {"pollux-sia/workloads/*/*.csv", "pollux-sia/workloads/*/*/*.csv"},
	}
	root := filepath.Dir(data(t, "openb2023"))
	for format, globs := range patterns {
		n := 0
		for _, glob := range globs {
			files, err := filepath.Glob(filepath.Join(root, glob))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				r, err := Open(format+":"+file, Options{})
				if err != nil {
					t.Error(err)
					continue
				}
				n++
				r.Close()
			}
		}
		if n == 0 {
			t.Errorf("no file of %s was found", format)
		}
	}
}

func TestLoadIsMet(t *testing.T) {
	ref := "helios:" + data(t, "helios")
	for _, opt := range []Options{{Load: 0.9, Devices: 1064}, {Load: 1.5, Devices: 64, Limit: 2000}} {
		s := summary(t, ref, opt)
		near(t, "load", s.Load(opt.Devices), opt.Load, 1e-6)
		if opt.Limit > 0 && s.Jobs != opt.Limit {
			t.Errorf("%d jobs, want %d", s.Jobs, opt.Limit)
		}
	}
	unsorted := summary(t, "chronus:"+data(t, "chronus"), Options{Load: 0.7, Devices: 960, Limit: 500})
	near(t, "load", unsorted.Load(960), 0.7, 1e-6)
}

func BenchmarkHelios(b *testing.B) {
	ref := "helios:" + data(b, "helios")
	for b.Loop() {
		if s := summary(b, ref, Options{}); s.Jobs != 99_707 {
			b.Fatal(s.Jobs)
		}
	}
}

func BenchmarkGenerateMillion(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		r, err := Open("gen:philly?jobs=1000000", Options{})
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, _, err = r.Next()
		}
	}
}
