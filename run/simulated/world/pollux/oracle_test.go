package pollux

// The files oracle*_test.go are the artefact's own simulator with its two deterministic
// baselines: what shows that the rates of this package are those it was published with
// (TestPublished). Nothing but tests decides here.

import (
	"fmt"
	"slices"
)

// Config is the shape of the simulated cluster and its clock.
type Config struct {
	Nodes          int
	DevicesPerNode int
	// TickSeconds is the interval at which the policy is asked.
	TickSeconds int
	// RestartSeconds is what a job loses each time its replicas are placed anew, the
	// first time included.
	RestartSeconds int
	// Slowdown is the part of its speed (0 to 1) that a job on several nodes loses
	// while it shares one of them with another job on several nodes.
	Slowdown float64
	// HorizonSeconds ends a history whose jobs do not finish.
	HorizonSeconds int
}

// Default is the cluster of the published experiments: 16 nodes of 4 T4.
func Default() Config {
	return Config{Nodes: 16, DevicesPerNode: 4, TickSeconds: 60, RestartSeconds: 30, HorizonSeconds: 60 * 86400}
}

// Validate says what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Nodes < 1 || c.DevicesPerNode < 1:
		return fmt.Errorf("pollux world: nodes and devices per node must be at least 1, found %d and %d", c.Nodes, c.DevicesPerNode)
	case c.TickSeconds < 1 || c.HorizonSeconds < c.TickSeconds:
		return fmt.Errorf("pollux world: tick must be at least 1 s and the horizon a tick, found %d s and %d s", c.TickSeconds, c.HorizonSeconds)
	case c.RestartSeconds < 0:
		return fmt.Errorf("pollux world: a restart must not take less than nothing, found %d s", c.RestartSeconds)
	case !(c.Slowdown >= 0 && c.Slowdown < 1):
		return fmt.Errorf("pollux world: slowdown must be in [0, 1), found %v", c.Slowdown)
	}
	return nil
}

// View is what a policy may know of an unfinished job. The application is the
// exact truth, which the published baselines are given as an oracle.
type View struct {
	Request
	App *Application
	// Epoch is the number of finished epochs.
	Epoch int
	// Nodes is the node of each replica, empty while the job waits.
	Nodes []int
	// Restarts counts its placements after the first, DeviceSeconds the device time
	// it has held.
	Restarts, DeviceSeconds int
}

// Grant is what a policy gives a job.
type Grant struct {
	// Nodes is the node of each replica; empty stops the job. Any difference from
	// the view's, be it in order, restarts the job.
	Nodes []int
	// Batch is the total batch size; 0 is the one asked for.
	Batch int
}

// Policy decides at every tick.
type Policy interface {
	// Allocate returns one grant per job, in the order of jobs, which is that of
	// the workload.
	Allocate(nowSeconds int, jobs []View, cluster Config) ([]Grant, error)
}

// Result is the outcome of a history.
type Result struct {
	// Jobs are in the order of the workload.
	Jobs []Outcome
	// Unfinished counts the jobs that the horizon cut off.
	Unfinished int
	// MeanSeconds is the mean completion time of the finished jobs and LastSeconds
	// the end of the last one.
	MeanSeconds float64
	LastSeconds int
}

// Outcome is how one job fared.
type Outcome struct {
	Name string
	// Finished says whether the job completed, and Seconds its time from submission to then.
	Finished bool
	Seconds  int
	Restarts int
	// DeviceSeconds is the device time it held.
	DeviceSeconds int
}

// world is a history in the making; nodes[i] is the node of each replica of job i.
type world struct {
	Config
	now   int
	jobs  []*Job
	nodes [][]int
}

// Run plays a workload under a policy.
func Run(workload []Request, apps map[string]*Application, cluster Config, policy Policy) (Result, error) {
	if err := cluster.Validate(); err != nil {
		return Result{}, err
	}
	w := world{Config: cluster, nodes: make([][]int, len(workload))}
	for _, r := range workload {
		app, ok := apps[r.Application]
		if !ok {
			return Result{}, fmt.Errorf("job %s: unknown application %q", r.Name, r.Application)
		}
		w.jobs = append(w.jobs, NewJob(r, app, cluster.RestartSeconds))
	}
	for !w.done() && w.now < w.HorizonSeconds {
		if err := w.tick(policy); err != nil {
			return Result{}, fmt.Errorf("at second %d: %w", w.now, err)
		}
	}
	return w.result(), nil
}

func (w *world) done() bool {
	return !slices.ContainsFunc(w.jobs, func(j *Job) bool { return !j.Finished })
}

// tick lets one interval pass and then asks the policy about the jobs that were
// submitted and have not finished by its end.
func (w *world) tick(policy Policy) error {
	crowded := w.crowded()
	for i, j := range w.jobs {
		slowdown := 0.0
		if spread(w.nodes[i]) && slices.ContainsFunc(w.nodes[i], func(n int) bool { return crowded[n] }) {
			slowdown = w.Slowdown
		}
		if err := j.Advance(w.TickSeconds, slowdown); err != nil {
			return err
		}
	}
	w.now += w.TickSeconds
	var asked []int
	var views []View
	for i, j := range w.jobs {
		if j.Finished {
			w.nodes[i] = nil
		} else if j.SubmitSeconds <= w.now {
			asked = append(asked, i)
			views = append(views, View{Request: j.Request, App: j.App, Epoch: j.Epoch, Nodes: slices.Clone(w.nodes[i]),
				Restarts: j.Restarts, DeviceSeconds: j.DeviceSeconds})
		}
	}
	if len(asked) == 0 {
		return nil
	}
	grants, err := policy.Allocate(w.now, views, w.Config)
	if err != nil {
		return fmt.Errorf("allocating: %w", err)
	}
	if err := w.check(views, grants); err != nil {
		return err
	}
	for k, i := range asked {
		w.carryOut(i, grants[k])
	}
	return nil
}

// spread says whether replicas are on more than one node.
func spread(nodes []int) bool {
	return slices.ContainsFunc(nodes, func(n int) bool { return n != nodes[0] })
}

// crowded marks the nodes with replicas of two or more jobs on several nodes.
func (w *world) crowded() []bool {
	count := make([]int, w.Nodes)
	for _, nodes := range w.nodes {
		if !spread(nodes) {
			continue
		}
		for _, n := range slices.Compact(slices.Sorted(slices.Values(nodes))) {
			count[n]++
		}
	}
	crowded := make([]bool, w.Nodes)
	for n := range count {
		crowded[n] = count[n] > 1
	}
	return crowded
}

// check holds the grants against the cluster.
func (w *world) check(jobs []View, grants []Grant) error {
	if len(grants) != len(jobs) {
		return fmt.Errorf("policy returned %d grants for %d jobs", len(grants), len(jobs))
	}
	used := make([]int, w.Nodes)
	for k, g := range grants {
		for _, n := range g.Nodes {
			if n < 0 || n >= w.Nodes {
				return fmt.Errorf("policy put job %s on node %d of %d", jobs[k].Name, n, w.Nodes)
			}
			if used[n]++; used[n] > w.DevicesPerNode {
				return fmt.Errorf("policy put more than %d replicas on node %d", w.DevicesPerNode, n)
			}
		}
	}
	return nil
}

func (w *world) carryOut(i int, g Grant) {
	j := w.jobs[i]
	batch := g.Batch
	if batch == 0 {
		batch = j.Request.Batch
	}
	j.SetBatch(batch)
	if slices.Equal(g.Nodes, w.nodes[i]) {
		return
	}
	w.nodes[i] = slices.Clone(g.Nodes)
	j.Place(placement(g.Nodes))
}

// placement counts the replicas of each run of equal nodes.
func placement(nodes []int) []int {
	var counts []int
	for i, n := range nodes {
		if i == 0 || n != nodes[i-1] {
			counts = append(counts, 0)
		}
		counts[len(counts)-1]++
	}
	return counts
}

func (w *world) result() Result {
	var r Result
	sum := 0
	for _, j := range w.jobs {
		o := Outcome{Name: j.Name, Finished: j.Finished, Restarts: j.Restarts, DeviceSeconds: j.DeviceSeconds}
		if j.Finished {
			o.Seconds = j.FinishSeconds - j.SubmitSeconds
			sum += o.Seconds
			r.LastSeconds = max(r.LastSeconds, j.FinishSeconds)
		} else {
			r.Unfinished++
		}
		r.Jobs = append(r.Jobs, o)
	}
	if finished := len(w.jobs) - r.Unfinished; finished > 0 {
		r.MeanSeconds = float64(sum) / float64(finished)
	}
	return r
}
