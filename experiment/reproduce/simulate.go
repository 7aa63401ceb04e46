// Package reproduce runs experiments: one simulation from names (trace, cluster,
// strategy), comparisons of strategies over seeds or weeks, and the claims of the
// published systems. The command line only parses and prints.
package reproduce

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/run/simulated/world/speed"
)

// Setup names one simulation.
type Setup struct {
	// Trace is FORMAT:PATH or gen:NAME; or stand:NAME, and then the stand gives the
	// cluster and the prices too.
	Trace string
	// Jobs, where it is set, opens what no trace can hold, in the place of Trace.
	Jobs     func(seed uint64) (trace.Reader, error)
	Cluster  string // preset, openb or a YAML file
	Data     string // the folder of published data; "" is the usual one
	Strategy string // name, names joined by +, or a YAML file
	Without  []string
	Break    string // a system whose strategies decide no longer, see catalogue.Env
	Load     float64
	Seed     uint64
	Limit    int
	// Prices are what things cost.
	Prices simulated.Prices
	// Saving is how jobs save of which the trace does not say it.
	Saving trace.Saving
	Hazards
	// Queues is a tree of queues (preset or YAML file), and Tenants whose tenants, users
	// and priorities are drawn for jobs that have none; empty is none.
	Queues, Tenants string
	// MeasuredSpeeds uses the shipped tables for classes they know.
	MeasuredSpeeds bool
	services       *sharing.Law // what the stand's services were profiled to be

	Watching
}

// Hazards are what goes wrong in the world.
type Hazards struct {
	// NodeEvery and NodeFor are the mean time between a node's failures and to its
	// repair; the others those of a device and of a link. 0 never fails.
	NodeEvery, NodeFor, DeviceEvery, DeviceFor, LinkEvery, LinkFor unit.Duration
	// StragglerPart of the jobs run StragglerSlowdown times slower.
	StragglerPart, StragglerSlowdown float64
	// LinkJitter is by how much links fall short of what is written on them.
	LinkJitter float64
}

// Watching is what is looked at while a simulation runs, and kept of it.
type Watching struct {
	Explain   bool
	Decisions io.Writer
	// Perfetto gets a Chrome trace of all runs while they go on.
	Perfetto io.Writer
	Limits   report.Limits
	Commit   func(v plan.View, c *plan.Commit)
	Progress func(now unit.Time, submitted, ended int64)
	Check    bool
	NoBounds bool // of the average JCT
}

// Defaults are the settings used where a user gives none.
func Defaults() Setup {
	return Setup{Trace: "gen:rw-a", Cluster: "gpus:15x4", Strategy: catalogue.House, Seed: 1, Prices: simulated.DefaultPrices(), Hazards: Hazards{LinkJitter: .05}, MeasuredSpeeds: true}
}

// Outcome is a finished simulation.
type Outcome struct {
	Result    report.Result
	Collector *report.Collector
	Cluster   *cluster.Cluster
}

// Lanes names the rows of the Gantt chart.
func (o *Outcome) Lanes() []report.Lane {
	lanes := make([]report.Lane, len(o.Cluster.Devices))
	for i := range lanes {
		n := &o.Cluster.Nodes[o.Cluster.Devices[i].Node]
		lanes[i] = report.Lane{Node: n.Name, Name: fmt.Sprint(int32(i) - n.First)}
	}
	return lanes
}

// Simulate runs a setup to its end.
func Simulate(s Setup) (*Outcome, error) {
	began, cpu := time.Now(), cpuSeconds()
	on, err := s.set()
	if err != nil {
		return nil, err
	}
	defer on.jobs.Close()
	built, err := build(s)
	if err != nil {
		return nil, fmt.Errorf("strategy: %w", err)
	}
	jobs, first, err := s.shared(on)
	if err != nil {
		return nil, err
	}
	o := &Outcome{Collector: report.NewCollector(s.Limits), Cluster: on.cluster}
	if err := s.Saving.Validate(); err != nil {
		return nil, err
	}
	saved := trace.WithSaving(jobs, s.Saving, s.Seed)
	source := &adjusted{source: saved, trace: s.Trace, saves: built.OnRequest}
	config := simulated.Config{Cluster: on.cluster, Beginning: simulated.Beginning{First: first}, Jobs: source, Expected: trace.Left(on.jobs), Scheduler: built.Scheduler, Strategy: built.Composition.Name, Policy: engine.DefaultPolicy(),
		TellTruth: built.TellTruth, Prices: s.Prices, Collector: o.Collector,
		Decisions: s.Decisions, Hooks: simulated.Hooks{Commit: s.Commit, Progress: s.Progress}, Check: s.Check, NoBounds: s.NoBounds,
		World: world.Config{StragglerPart: s.StragglerPart, StragglerSlowdown: s.StragglerSlowdown, LinkJitter: s.LinkJitter, Seed: s.Seed},
		Breaks: simulated.Breaks{Seed: s.Seed, NodeEvery: s.NodeEvery, NodeFor: s.NodeFor,
			DeviceEvery: s.DeviceEvery, DeviceFor: s.DeviceFor, LinkEvery: s.LinkEvery, LinkFor: s.LinkFor}}
	if s.MeasuredSpeeds {
		config.World.Speeds = speeds{}
	}
	traced := s.trace(o.Lanes())
	if traced != nil {
		config.Span = traced.Span
	}
	if o.Result, err = on.finish(config); err != nil {
		return nil, err
	}
	if traced != nil {
		if err := o.ended(traced); err != nil {
			return nil, err
		}
	}
	r := &o.Result
	r.Strategy, r.Trace, r.Seed, r.Load = built.Composition.Name, s.Trace, s.Seed, s.Load
	r.Knows = built.Knows
	r.OfferedLoad, r.MeanDurationSec = source.offered(len(on.cluster.Devices)), source.meanDuration()
	for _, step := range s.Without {
		r.Strategy += " without " + step
	}
	r.WallSec, r.CPUSec, r.PeakRSSBytes = time.Since(began).Seconds(), cpuSeconds()-cpu, peakRSS()
	if t, ok := jobs.(*trace.Tenanted); ok {
		r.Notes = append(r.Notes, t.About())
	}
	if about := saved.About(); about != "" {
		r.Notes = append(r.Notes, about)
	}
	if waits := r.AvgWaitSec * 10; waits < r.MeanDurationSec {
		r.Notes = append(r.Notes, "hardly anybody waits: the mean wait is under a tenth of the mean duration, so strategies cannot differ much here")
	}
	return o, nil
}

// shared puts the setup's tenants before the jobs, and makes the events of its queues.
func (s *Setup) shared(on *scene) (jobs trace.Reader, first []engine.Event, err error) {
	if s.Queues != "" {
		tree, err := spec.ResolveQueues(s.Queues, on.cluster)
		if err != nil {
			return nil, nil, fmt.Errorf("queues: %w", err)
		}
		first = append(first, engine.Event{Kind: engine.Shares, Queues: &tree})
	}
	if s.Tenants == "" {
		return on.jobs, first, nil
	}
	if jobs, err = trace.WithTenants(on.jobs, s.Tenants, s.Seed); err != nil {
		return nil, nil, fmt.Errorf("tenants: %w", err)
	}
	return jobs, first, nil
}

// resolveCluster reads what names a cluster; a claim may give the lines of a file. Data
// is the folder of published data, "" where it is usually.
func resolveCluster(ref, data string) (*cluster.Cluster, error) {
	if strings.Contains(ref, "\n") {
		return spec.Cluster("cluster", []byte(ref))
	}
	return spec.Resolve(ref, spec.ResolveOptions{Openb: trace.OpenbCluster, Data: data})
}

func open(s Setup, devices int) (trace.Reader, error) {
	if s.Jobs != nil {
		return s.Jobs(s.Seed)
	}
	o := trace.Options{Load: s.Load, Devices: devices, Limit: s.Limit, Seed: s.Seed}
	if strings.HasPrefix(s.Trace, "pollux:") {
		return openPollux(s.Trace, o)
	}
	return trace.Open(s.Trace, o)
}

func build(s Setup) (catalogue.Built, error) {
	c, err := catalogue.Resolve(s.Strategy)
	if err != nil {
		return catalogue.Built{}, err
	}
	for _, step := range s.Without {
		if c, err = c.Without(step); err != nil {
			return catalogue.Built{}, err
		}
	}
	return c.Build(catalogue.Env{Seed: s.Seed, Break: s.Break, Services: s.services, Pairs: speeds{}}, s.Explain)
}

// adjusted passes jobs on as step 6 treats them, and sums up what they ask.
type adjusted struct {
	source trace.Reader
	trace  string
	saves  bool // jobs are asked to save before they are stopped

	jobs          int64
	area, seconds float64
	last          unit.Time
}

// Next returns the next job.
func (a *adjusted) Next() (workload.Job, workload.Truth, error) {
	job, truth, err := a.source.Next()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return job, truth, err
		}
		return job, truth, fmt.Errorf("%s: %w", a.trace, err)
	}
	if truth.Duration == trace.NoDuration {
		return job, truth, fmt.Errorf("%s: job %s has no duration in this trace: it cannot be simulated in time", a.trace, job.Name)
	}
	job.Checkpoint.OnRequest = job.Checkpoint.OnRequest && a.saves
	a.jobs++
	a.area += float64(job.Workers()) / 1000 * truth.Duration.Seconds()
	a.seconds += truth.Duration.Seconds()
	a.last = job.Submit
	return job, truth, nil
}

// offered is the work of all jobs over what the devices could do between the first
// and the last submission.
func (a *adjusted) offered(devices int) float64 {
	if a.last == 0 || devices == 0 {
		return 0
	}
	return a.area / (a.last.Seconds() * float64(devices))
}

func (a *adjusted) meanDuration() float64 { return a.seconds / float64(max(1, a.jobs)) }

// speeds are the shipped tables as the world reads them.
type speeds struct{}

// Rate looks a class up; an empty model is the reference device of its table.
func (speeds) Rate(class, model string, workers, nodes int) (float64, bool) {
	if class == "" {
		return 0, false
	}
	if model != "" {
		return speed.Rate(class, strings.ToLower(model), workers, nodes)
	}
	if r, ok := speed.Rate(class, "v100", workers, nodes); ok {
		return r, true
	}
	return speed.Rate(class, "t4", workers, nodes)
}

// Pair is what two classes keep of their own rates beside each other: nothing where the
// table says that their memories do not fit together.
func (s speeds) Pair(a, b, model string) (float64, float64, bool) {
	rateA, rateB, ok := speed.Pair(a, b, strings.ToLower(model))
	aloneA, okA := s.Rate(a, model, 1, 1)
	aloneB, okB := s.Rate(b, model, 1, 1)
	if !ok || !okA || !okB {
		return 0, 0, false
	}
	return rateA / aloneA, rateB / aloneB, true
}

// cpuTime is the processor time that this process has had, its collector's too: unlike the
// clock it does not go on while somebody else has the processor.
func cpuTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func cpuSeconds() float64 { return cpuTime().Seconds() }

// peakRSS is the most memory the process had, as the kernel counted; where it does
// not, what the runtime took from it.
func peakRSS() int64 {
	if data, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(data)) {
			var kb int64
			if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
				return kb << 10
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}
