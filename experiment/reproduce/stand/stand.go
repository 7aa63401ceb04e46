// Package stand has the stands on which claims are tried: for each published set-up
// that no trace and no preset of a cluster can hold, a function that makes its devices,
// its jobs with what is true of them, and how fast they go there. The engine decides on
// a stand and the simulated driver acts, as in every simulation; a stand knows of no
// strategy.
package stand

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
)

// Stand is where a claim runs: devices, the jobs of one seed with what is true of them,
// and how fast they go there. It is used for one run.
type Stand struct {
	Cluster *cluster.Cluster
	// Jobs come in the order of submission.
	Jobs trace.Reader
	// World has the rates, alone and in pairs; without Speeds jobs go as fast as their
	// truths and the models of the devices say.
	World world.Config
	// Prices are those of the published set-up; what it does not name is free there.
	Prices simulated.Prices
	// Services is what was profiled beforehand of services, for strategies that go by it.
	Services *sharing.Law
	// Set changes what else of the simulation the published set-up had; nil is nothing.
	Set func(c *simulated.Config)
	// Step sees every step of the engine, with the changes that it hands to the driver; nil
	// sees none.
	Step func(at unit.Time, ready []plan.Change, v plan.View)
	// Commit is called after every decision, so that a stand can count what a Result
	// does not tell; nil counts nothing.
	Commit func(v plan.View, c *plan.Commit)
	// Figures are those that only this stand can read from the finished simulation,
	// besides those of the Result; nil is none.
	Figures func(o *Finished) map[string]float64
}

// Finished is a simulation that has ended.
type Finished struct {
	Result report.Result
	View   plan.View
	Sim    *simulated.Simulation
	Jobs   []Job // in the order of submission
}

// Job is how one job fared, what was asked and what was true of it.
type Job struct {
	report.JobRecord
	Asked workload.Job
	Truth workload.Truth
}

// Late reports whether a job missed the deadline that it had; one that was refused or
// never ended did.
func (j *Job) Late() bool {
	return j.Asked.Deadline > 0 && (j.Outcome != report.Finished || j.End > j.Submit.Add(j.Asked.Deadline))
}

// Data opens a file by its path in the folder of published data. The error of one that
// is not there is returned as it is or wrapped: it skips the claim.
type Data func(path string) (io.ReadCloser, error)

// Maker makes a stand for a seed.
type Maker func(open Data, o *Options, seed uint64) (*Stand, error)

type named struct {
	about string
	make  Maker
}

var stands = map[string]named{}

// register adds a stand under a name; each file of this package does so for its own.
func register(name, about string, make Maker) { stands[name] = named{about, make} }

// Prefix stands before the name of a stand where a trace may be named.
const Prefix = "stand:"

// Open makes the stand that NAME?key=value&key=value names, for a seed.
func Open(ref string, open Data, seed uint64) (*Stand, error) {
	ref = strings.TrimPrefix(ref, Prefix)
	name, query, _ := strings.Cut(ref, "?")
	n, ok := stands[name]
	if !ok {
		var known strings.Builder
		for _, n := range Names() {
			fmt.Fprintf(&known, "\n%s: %s", n, stands[n].about)
		}
		return nil, fmt.Errorf("there is no stand %q: choose one of%s", name, known.String())
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("stand %s: %w", ref, err)
	}
	o := &Options{values: values, known: map[string]bool{}}
	s, err := n.make(open, o, seed)
	// Options are read behind data too: where that is absent, nobody knows which others there are.
	if mistake := o.mistake(); mistake != nil && !errors.Is(err, fs.ErrNotExist) {
		err = mistake
	}
	if err != nil {
		return nil, fmt.Errorf("stand %s: %w", ref, err)
	}
	return s, nil
}

// Names lists the stands.
func Names() []string { return slices.Sorted(maps.Keys(stands)) }

// List is a reader of jobs that are in memory, in order of submission.
type List struct {
	Jobs   []workload.Job
	Truths []workload.Truth
	next   int
}

// Add appends a job.
func (l *List) Add(j workload.Job, t workload.Truth) {
	l.Jobs, l.Truths = append(l.Jobs, j), append(l.Truths, t)
}

// Next returns the next job.
func (l *List) Next() (workload.Job, workload.Truth, error) {
	if l.next == len(l.Jobs) {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	l.next++
	return l.Jobs[l.next-1], l.Truths[l.next-1], nil
}

// Close does nothing.
func (l *List) Close() error { return nil }
