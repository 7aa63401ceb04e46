package reproduce

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterdl/muster/allocate/search"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/report"
	"github.com/musterdl/muster/trace"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
	"github.com/musterdl/muster/world/pollux"
)

// PolluxArtefact is the mode of the world that follows the Pollux artefact to the
// second: ticks of 60 s, its interpolation of measured step times, its restart
// cost, its own two baselines, tiresias and optimus, which differ from the
// papers' (see package pollux), and its pollux, also as pollux-greedy with our
// deterministic search in the place of the genetic one.
const PolluxArtefact = "pollux-artefact"

// polluxProfiles finds the measured profiles that belong to a pollux trace: beside
// the trace, or one folder up.
func polluxProfiles(ref string) (string, error) {
	path, _, _ := strings.Cut(strings.TrimPrefix(ref, "pollux:"), "#")
	tried := []string{filepath.Join(path, "profiles")}
	for dir := filepath.Dir(path); len(tried) < 4; dir = filepath.Dir(dir) {
		tried = append(tried, filepath.Join(dir, "profiles"))
	}
	for _, dir := range tried {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("a pollux trace needs the measured profiles: no folder %s", strings.Join(tried, " or "))
}

// timed gives the jobs of a pollux trace their durations and menus, from the profiles
// that were measured.
type timed struct {
	trace.Reader
	apps  map[string]*pollux.Application
	fixed bool // batches stay as asked for
	known map[pollux.Request]pollux.Menu
}

// askedBatch behind a pollux trace keeps every job at the batch its user asked for;
// else the job takes the best one on what it is given.
const askedBatch = "?batch=asked"

func openPollux(ref string, o trace.Options) (trace.Reader, error) {
	ref, fixed := strings.CutSuffix(ref, askedBatch)
	dir, err := polluxProfiles(ref)
	if err != nil {
		return nil, err
	}
	apps, err := pollux.Load(dir)
	if err != nil {
		return nil, err
	}
	r, err := trace.Open(ref, o)
	return &timed{Reader: r, apps: apps, fixed: fixed, known: map[pollux.Request]pollux.Menu{}}, err
}

// Next returns the next job with its duration and menu.
func (t *timed) Next() (workload.Job, workload.Truth, error) {
	job, truth, err := t.Reader.Next()
	if err != nil {
		return job, truth, err
	}
	r, err := polluxRequest(&job)
	if err != nil {
		return job, truth, err
	}
	app, ok := t.apps[r.Application]
	if !ok {
		return job, truth, fmt.Errorf("job %s: application %q was not measured", job.Name, r.Application)
	}
	r.Name, r.SubmitSeconds = r.Application, 0
	menu, ok := t.known[r]
	if !ok {
		if menu, err = app.Menu(r, !t.fixed); err != nil {
			return job, truth, err
		}
		t.known[r] = menu
	}
	truth.Duration = unit.Seconds(menu.Seconds)
	job.Sizes, job.Menu = menu.Sizes, menu.Offers
	return job, truth, nil
}

// polluxRequest reads a job of a pollux trace back into the artefact's terms; its
// class is APPLICATION/BATCH.
func polluxRequest(j *workload.Job) (pollux.Request, error) {
	r := pollux.Request{Name: j.Name, SubmitSeconds: int(j.Submit.Seconds()), Replicas: int(j.Gang)}
	app, batch, ok := strings.Cut(j.Class, "/")
	if _, err := fmt.Sscan(batch, &r.Batch); !ok || err != nil {
		return r, fmt.Errorf("job %s: class %q: expected APPLICATION/BATCH", j.Name, j.Class)
	}
	r.Application = app
	return r, nil
}

// simulateArtefact runs a pollux trace in the artefact's own world.
func simulateArtefact(s Setup, c *cluster.Cluster) (report.Result, *report.Collector, error) {
	var policy pollux.Policy
	switch s.Strategy {
	case "tiresias":
		policy = pollux.NewTiresias()
	case "optimus":
		policy = pollux.Optimus{}
	case "pollux", "pollux-greedy":
		policy = pollux.NewElastic(pollux.ElasticConfig{Greedy: s.Strategy == "pollux-greedy", Effort: search.Patient(), Seed: s.Seed})
	default:
		return report.Result{}, nil, fmt.Errorf("the world %s has the artefact's own tiresias, optimus, pollux and pollux-greedy, not %q", PolluxArtefact, s.Strategy)
	}
	dir, err := polluxProfiles(s.Trace)
	if err != nil {
		return report.Result{}, nil, err
	}
	apps, err := pollux.Load(dir)
	if err != nil {
		return report.Result{}, nil, err
	}
	requests, err := polluxRequests(s)
	if err != nil {
		return report.Result{}, nil, err
	}
	shape := pollux.Default()
	shape.Nodes, shape.DevicesPerNode = len(c.Nodes), int(c.Nodes[0].Count)
	r, err := pollux.Run(requests, apps, shape, policy)
	if err != nil {
		return report.Result{}, nil, err
	}
	collector, hash := report.NewCollector(s.Limits), sha256.New()
	var held float64
	for i, o := range r.Jobs {
		fmt.Fprintf(hash, "%s %d %d\n", o.Name, o.Seconds, o.Restarts)
		held += float64(o.DeviceSeconds)
		submit := unit.Time(requests[i].SubmitSeconds) * unit.Time(unit.Second)
		outcome := report.Unfinished
		if o.Finished {
			outcome = report.Finished
		}
		run := unit.Duration(o.DeviceSeconds/max(1, requests[i].Replicas)) * unit.Second
		collector.Job(report.JobRecord{ID: int32(i), Name: o.Name, Submit: submit, FirstStart: submit, End: submit.Add(unit.Duration(o.Seconds) * unit.Second),
			Gang: int32(requests[i].Replicas), Devices: unit.Milli(requests[i].Replicas) * unit.Whole, Run: run,
			Waited: max(0, unit.Duration(o.Seconds)*unit.Second-run), Restarts: int32(o.Restarts), Outcome: outcome})
	}
	all := float64(r.LastSeconds) * float64(len(c.Devices))
	known := report.Result{}
	known.DecisionHash = hex.EncodeToString(hash.Sum(nil))
	known.DeviceSec, known.UsefulDeviceSec, known.IdleDeviceSec = all, held, all-held
	known.Balanced = held <= all && len(r.Jobs) == len(requests)
	out := collector.Result(known)
	out.Utilization = held / max(1, all)
	out.Notes = append(out.Notes, "the artefact's own semantics: 60 s ticks, its interpolation, its baselines; restarts count every change of nodes")
	return out, collector, nil
}

// polluxRequests reads the workload with its own clock: the artefact's first tick
// does not begin with the first submission.
func polluxRequests(s Setup) ([]pollux.Request, error) {
	path, member, archived := strings.Cut(strings.TrimPrefix(s.Trace, "pollux:"), "#")
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path, member, archived = filepath.Join(path, "pollux_workloads.tar.gz"), "workloads/workload-6.csv", true
	}
	all, err := readPollux(path, member, archived)
	if s.Limit > 0 {
		all = all[:min(len(all), s.Limit)]
	}
	return all, err
}

func readPollux(path, member string, archived bool) ([]pollux.Request, error) {
	if archived {
		return pollux.ReadArchive(path, member)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return pollux.ReadWorkload(f, path)
}
