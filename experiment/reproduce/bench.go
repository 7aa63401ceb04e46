package reproduce

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/run/report"
)

// Measurement is one line of muster bench. What was not measured is left out.
type Measurement struct {
	Name     string  `json:"name"`
	Jobs     int64   `json:"jobs,omitempty"`
	Devices  int     `json:"devices,omitempty"`
	CPUSec   float64 `json:"cpu_s,omitempty"`
	WallSec  float64 `json:"wall_s,omitempty"`
	RSSBytes int64   `json:"peak_rss_bytes,omitempty"`
	// JobsPerCPUSec is jobs simulated by second of processor time.
	JobsPerCPUSec float64 `json:"jobs_per_cpu_s,omitempty"`

	Commits         int64   `json:"commits,omitempty"`
	P50CommitSec    float64 `json:"p50_commit_s,omitempty"`
	P99CommitSec    float64 `json:"p99_commit_s,omitempty"`
	AllocsPerCommit float64 `json:"allocs_per_commit,omitempty"`
	BytesPerCommit  float64 `json:"bytes_per_commit,omitempty"`
	// AdmissionsPerSec is submissions taken in by second while a queue fills.
	AdmissionsPerSec float64 `json:"admissions_per_s,omitempty"`

	// Target is what the figures are held against; a missed one fails nothing, because
	// machines differ.
	Target string `json:"target,omitempty"`
	Missed bool   `json:"missed"`
	// Missing says why nothing was measured.
	Missing string `json:"missing,omitempty"`
}

// Benchmark is one thing that can be measured, in a process of its own so that its
// memory is its own.
type Benchmark struct {
	Name  string
	Group string // sim, commit or queues

	trace, cluster string // of a simulation; the trace may start with DATA/
	strategy       string
	commits        CommitWork
	queues         QueueWork
	mostCPUSec     float64
	mostRSSBytes   int64
	leastJobs      float64 // per second of processor time
}

// The targets: a trace of months in three seconds, and a million jobs in ten, in memory
// that any machine has.
const (
	traceCPUSec   = 3
	lasCPUSec     = 4 // least attained service looks again at whom it runs
	traceRSSBytes = 300e6
	largeCPUSec   = 10
	largeRSSBytes = 1.5e9
	// fifoJobs is how many jobs of a trace a second of processor time simulates that decides nothing hard.
	fifoJobs = 100_000
	// commitGrowth bounds the 99th percentile at 100,000 devices by that at 1,000.
	commitGrowth = 3
	// On a shared cluster with a long queue, on one core.
	queueAdmissions = 5000
	queueP99        = 20 * time.Millisecond
)

// Benchmarks lists all of them in the order they are run.
func Benchmarks() []Benchmark {
	var list []Benchmark
	for _, w := range []struct {
		name, trace, cluster string
		mostCPUSec           float64
		mostRSSBytes         int64
	}{
		{"venus", "helios:DATA/helios", "gpus:74x8", traceCPUSec, traceRSSBytes},
		{"philly", "philly:DATA/philly", "gpus:80x8", traceCPUSec, traceRSSBytes},
		{"generated", "gen:helios?jobs=100000&devices=592", "gpus:74x8", 0, 0},
	} {
		for _, s := range []string{"fifo", "srtf", "tiresias"} {
			list = append(list, Benchmark{Name: w.name + "/" + s, Group: "sim", trace: w.trace, cluster: w.cluster, strategy: s,
				mostCPUSec: w.mostCPUSec, mostRSSBytes: w.mostRSSBytes})
		}
	}
	list[0].leastJobs = fifoJobs // venus/fifo
	list = append(list, Benchmark{Name: "venus/las", Group: "sim", trace: "helios:DATA/helios", cluster: "gpus:74x8", strategy: "las",
		mostCPUSec: lasCPUSec, mostRSSBytes: traceRSSBytes})
	list = append(list, Benchmark{Name: "million/fifo", Group: "sim", trace: "gen:rw-a?jobs=1000000&devices=100000",
		cluster: "gpus:12500x8", strategy: "fifo", mostCPUSec: largeCPUSec, mostRSSBytes: largeRSSBytes})
	for _, s := range []string{"fifo", "srtf", "tiresias"} {
		for _, devices := range []int{1000, 100_000} {
			list = append(list, Benchmark{Name: fmt.Sprintf("commit/%s/%d", s, devices), Group: "commit", strategy: s,
				commits: CommitWork{Devices: devices, Load: 0.95, Measured: 50_000, Seed: 1}})
		}
	}
	for _, s := range []string{"fifo", "fifo+easy"} {
		list = append(list, Benchmark{Name: "queues/" + s, Group: "queues", strategy: s,
			queues: QueueWork{Queues: 1000, Groups: 30, Devices: 10_000, Waiting: 100_000, Measured: 1000, Seed: 1}})
	}
	return list
}

func (b Benchmark) measureQueues(m Measurement) (Measurement, error) {
	began := time.Now()
	cost, err := MeasureQueues(b.strategy, b.queues)
	if err != nil {
		return m, fmt.Errorf("%s: %w", b.Name, err)
	}
	m.Jobs, m.Devices, m.Commits = int64(b.queues.Waiting+b.queues.Measured), b.queues.Devices, cost.Steps
	m.WallSec, m.CPUSec, m.RSSBytes = time.Since(began).Seconds(), cpuSeconds(), peakRSS()
	m.P50CommitSec, m.P99CommitSec, m.AllocsPerCommit, m.AdmissionsPerSec = cost.P50.Seconds(), cost.P99.Seconds(), cost.AllocsPerStep, cost.AdmissionsPerSec
	m.Target = fmt.Sprintf("p99 %s, and at least %d admissions/s", queueP99, queueAdmissions)
	m.Missed = cost.P99 > queueP99 || cost.AdmissionsPerSec < queueAdmissions
	return m, nil
}

// Measure runs a benchmark in this process, of which it takes the processor time and
// the memory: run nothing else in it.
func (b Benchmark) Measure() (Measurement, error) {
	m := Measurement{Name: b.Name}
	if _, err := catalogue.Resolve(b.strategy); err != nil {
		m.Missing = err.Error()
		return m, nil
	}
	switch b.Group {
	case "commit":
		return b.measureCommits(m)
	case "queues":
		return b.measureQueues(m)
	}
	s := Defaults()
	s.Cluster, s.Strategy = b.cluster, b.strategy
	s.Limits, s.NoBounds = report.Limits{Points: 2, Jobs: 1}, true // nobody is shown them
	var missing string
	if s.Trace, missing = resolveData(b.trace); missing != "" {
		m.Missing = missing
		return m, nil
	}
	began := time.Now()
	o, err := Simulate(s)
	if err != nil {
		return m, fmt.Errorf("%s: %w", b.Name, err)
	}
	m.Jobs, m.Devices, m.Commits = o.Result.Jobs, len(o.Cluster.Devices), o.Result.Commits
	m.WallSec, m.CPUSec, m.RSSBytes = time.Since(began).Seconds(), cpuSeconds(), peakRSS()
	m.JobsPerCPUSec = float64(m.Jobs) / m.CPUSec
	m.Missed = b.mostRSSBytes > 0 && m.RSSBytes > b.mostRSSBytes || b.mostCPUSec > 0 && m.CPUSec > b.mostCPUSec || m.JobsPerCPUSec < b.leastJobs
	var targets []string
	if b.mostCPUSec > 0 {
		targets = append(targets, fmt.Sprintf("%g CPU s", b.mostCPUSec))
	}
	if b.mostRSSBytes > 0 {
		targets = append(targets, fmt.Sprintf("%d MB", b.mostRSSBytes/1e6))
	}
	if m.Target = strings.Join(targets, " and "); b.leastJobs > 0 {
		m.Target += fmt.Sprintf(", and at least %.0f jobs per CPU s", b.leastJobs)
	}
	return m, nil
}

func (b Benchmark) measureCommits(m Measurement) (Measurement, error) {
	began := time.Now()
	cost, err := MeasureCommits(b.strategy, b.commits)
	if err != nil {
		return m, fmt.Errorf("%s: %w", b.Name, err)
	}
	m.Jobs, m.Devices, m.Commits = cost.Jobs, b.commits.Devices, cost.Commits
	m.WallSec, m.CPUSec, m.RSSBytes = time.Since(began).Seconds(), cpuSeconds(), peakRSS()
	m.P50CommitSec, m.P99CommitSec = cost.P50.Seconds(), cost.P99.Seconds()
	m.AllocsPerCommit, m.BytesPerCommit = cost.Allocs, cost.Bytes
	return m, nil
}

// JudgeCommits compares the commits of each strategy at its largest size with those
// at its smallest: the target is about their growth.
func JudgeCommits(list []Measurement) {
	first := map[string]*Measurement{}
	for i := range list {
		m := &list[i]
		strategy, _, isCommit := strings.Cut(strings.TrimPrefix(m.Name, "commit/"), "/")
		if !isCommit || !strings.HasPrefix(m.Name, "commit/") || m.Missing != "" {
			continue
		}
		base, seen := first[strategy]
		if !seen {
			first[strategy] = m
			continue
		}
		// An allocation may fall on one side or the other of the measured part; half
		// of one more per commit is a new one.
		m.Target = fmt.Sprintf("p99 %d times that of %d devices, no more allocations", commitGrowth, base.Devices)
		m.Missed = m.P99CommitSec > commitGrowth*base.P99CommitSec || m.AllocsPerCommit > base.AllocsPerCommit+0.5
	}
}

// resolveData puts the folder of published traces in the place of DATA, or says that
// it is not there.
func resolveData(ref string) (resolved, missing string) {
	kind, path, isData := strings.Cut(ref, ":DATA/")
	if !isData {
		return ref, ""
	}
	folders := []string{filepath.Join("..", "shared", "data"), filepath.Join("..", "..", "..", "shared", "data")}
	if data := os.Getenv("MUSTER_DATA"); data != "" {
		folders = []string{data}
	}
	for _, f := range folders {
		if info, err := os.Stat(filepath.Join(f, path)); err == nil && info.IsDir() {
			return kind + ":" + filepath.Join(f, path), ""
		}
	}
	return "", fmt.Sprintf("its trace is at none of %s; set MUSTER_DATA to the folder that holds %s; docs/data.md says where it comes from", strings.Join(folders, ", "), path)
}
