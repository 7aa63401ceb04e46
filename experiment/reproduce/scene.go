package reproduce

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/experiment/reproduce/stand"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

// scene is where a setup runs, and on what jobs.
type scene struct {
	cluster *cluster.Cluster
	jobs    trace.Reader
	stand   *stand.Stand // nil where a trace and a cluster are named apart
	asked   *stand.List  // the jobs so far, on a stand
	seed    uint64
}

// set opens the trace and the cluster of a setup, or its stand.
func (s *Setup) set() (*scene, error) {
	if !strings.HasPrefix(s.Trace, stand.Prefix) {
		c, err := resolveCluster(s.Cluster, s.Data)
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		jobs, err := open(*s, len(c.Devices))
		return &scene{cluster: c, jobs: jobs}, err
	}
	made, err := stand.Open(s.Trace, opener(s.Data), s.Seed)
	if err != nil {
		return nil, err
	}
	s.Prices, s.Cluster, s.services = made.Prices, made.Cluster.Name, made.Services
	s.Limits.Jobs = math.MaxInt
	asked := &stand.List{}
	return &scene{cluster: made.Cluster, jobs: &noting{made.Jobs, asked}, stand: made, asked: asked, seed: s.Seed}, nil
}

// noting keeps the jobs that it passes on.
type noting struct {
	trace.Reader
	list *stand.List
}

// Next returns the next job.
func (n *noting) Next() (workload.Job, workload.Truth, error) {
	j, t, err := n.Reader.Next()
	if err == nil {
		n.list.Add(j, t)
	}
	return j, t, err
}

// finish simulates to the end, proves that every device-hour is in the accounts once,
// and reads what only the stand can.
func (on *scene) finish(config simulated.Config) (report.Result, error) {
	if on.stand != nil {
		on.furnish(&config)
	}
	s, err := simulated.New(config)
	for more := true; more && err == nil; {
		more, err = s.Advance()
	}
	if err != nil {
		return report.Result{}, err
	}
	if err := s.State().Balance(); err != nil {
		return report.Result{}, fmt.Errorf("check the accounts at the end: %w", err)
	}
	r, err := s.Result()
	if err == nil && on.stand != nil && config.Until == 0 && r.Censored > 0 {
		return r, fmt.Errorf("%d jobs: %w", r.Censored, errForever)
	}
	if err != nil || on.stand == nil || on.stand.Figures == nil {
		return r, err
	}
	o := &stand.Finished{Result: r, View: s.State().View(), Sim: s, Jobs: make([]stand.Job, len(on.asked.Jobs))}
	for _, j := range config.Collector.View().Jobs {
		o.Jobs[j.ID] = stand.Job{JobRecord: j, Asked: on.asked.Jobs[j.ID], Truth: on.asked.Truths[j.ID]}
	}
	r.Figures = on.stand.Figures(o)
	return r, nil
}

// errForever is of a history without an end in which nobody runs those that wait.
var errForever = errors.New("they are left waiting for ever")

// furnish makes the simulation that of the stand.
func (on *scene) furnish(c *simulated.Config) {
	c.World = on.stand.World
	if c.World.Seed == 0 {
		c.World.Seed = on.seed
	}
	if of, user := on.stand.Commit, c.Commit; of != nil {
		c.Commit = func(v plan.View, x *plan.Commit) {
			if of(v, x); user != nil {
				user(v, x)
			}
		}
	}
	if of := on.stand.Step; of != nil {
		c.Step = func(at unit.Time, _ []engine.Event, out *engine.Out, v plan.View) { of(at, out.Ready, v) }
	}
	if on.stand.Set != nil {
		on.stand.Set(c)
	}
}

// opener opens published data by its path in the folder; "" is the usual one.
func opener(data string) stand.Data {
	if data == "" {
		data = DataFolder()
	}
	return func(path string) (io.ReadCloser, error) {
		f, err := os.Open(filepath.Join(data, filepath.FromSlash(path)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, missing(filepath.Join(data, path))
		}
		return f, err
	}
}
