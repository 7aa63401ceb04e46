package pollux

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/allocate/search"
	"github.com/musterdl/muster/profile/perf"
)

// Elastic is the artefact's Pollux: it fits a model of each job's steps to what the
// job measured so far, lets each choose its batch, and searches every tick for the
// matrix of replicas of most fairness-weighted goodput. As in the artefact a job may
// have up to twice the replicas it was ever measured on, and the application ncf has one
// replica and a fixed batch. Two differences: populations are carried from tick to
// tick by job, where the artefact confuses jobs whose order changed; and the first
// population holds the matrix of today.
type Elastic struct {
	config     ElasticConfig
	agents     map[string]*agent
	population []search.Matrix
	names      []string // of the population's rows
	ticks      uint64
}

// ElasticConfig says how Elastic searches.
type ElasticConfig struct {
	// Greedy takes the deterministic search instead of the genetic one.
	Greedy bool
	// Mingle gives up the avoidance of interference.
	Mingle bool
	Effort search.Effort
	Seed   uint64
}

// NewElastic returns a Pollux that has seen no job.
func NewElastic(c ElasticConfig) *Elastic {
	if c.Effort.Population == 0 {
		c.Effort = search.Published()
	}
	return &Elastic{config: c, agents: make(map[string]*agent)}
}

// Tuner implements Tuning.
func (e *Elastic) Tuner(r Request, app *Application) Tuner {
	a := newAgent(app)
	e.agents[r.Name] = a
	return a
}

// mostReplicas of a job: more lie outside the measurements.
const mostReplicas = 64

// Allocate searches for the best matrix. Jobs that held devices for the shortest time
// come first where two want the same.
func (e *Elastic) Allocate(nowSeconds int, jobs []View, cluster Config) ([]Grant, error) {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(jobs[a].DeviceSeconds, jobs[b].DeviceSeconds), cmp.Compare(jobs[a].SubmitSeconds, jobs[b].SubmitSeconds))
	})
	p := search.Problem{Base: search.NewMatrix(len(jobs), cluster.Nodes), MostNodes: 16, Mingle: e.config.Mingle}
	for range cluster.Nodes {
		p.Room = append(p.Room, cluster.DevicesPerNode)
	}
	fair := (cluster.Nodes*cluster.DevicesPerNode + len(jobs) - 1) / len(jobs)
	names := make([]string, len(jobs))
	for row, i := range order {
		j := &jobs[i]
		a := e.agents[j.Name]
		age, restart := float64(nowSeconds-j.SubmitSeconds), max(float64(cluster.RestartSeconds), 1)
		p.Jobs = append(p.Jobs, search.Job{Most: a.most(), Speedup: a.speedup(fair),
			Factor: max(age-restart*float64(j.Restarts), 0) / (age + restart)})
		for _, n := range j.Nodes {
			p.Base.Row(row)[n]++
		}
		names[row] = j.Name
	}
	best := e.search(&p, names)
	grants := make([]Grant, len(jobs))
	for row, i := range order {
		for n, count := range best.Row(row) {
			for range count {
				grants[i].Nodes = append(grants[i].Nodes, n)
			}
		}
	}
	return grants, nil
}

func (e *Elastic) search(p *search.Problem, names []string) search.Matrix {
	if e.config.Greedy {
		return search.Greedy(p)
	}
	rows := make(map[string]int, len(e.names))
	for row, name := range e.names {
		rows[name] = row
	}
	from := make([]search.Matrix, len(e.population))
	for k, old := range e.population {
		from[k] = search.NewMatrix(len(names), len(p.Room))
		for row, name := range names {
			if was, ok := rows[name]; ok {
				copy(from[k].Row(row), old.Row(was))
			}
		}
	}
	e.ticks++
	var best search.Matrix
	best, e.population = search.Genetic(p, from, e.config.Effort, e.config.Seed<<32|e.ticks)
	e.names = names
	return best
}

// agent is what runs beside a job: it measures, fits, and chooses the batch.
type agent struct {
	app      *Application
	limits   perf.Batches
	seen     []perf.Observation
	known    map[point]bool
	stale    bool // observations came after the last fit
	params   perf.Params
	noise    perf.Noise
	choices  map[[2]int][]perf.Choice
	profiled int // most replicas measured
}

func newAgent(app *Application) *agent {
	return &agent{app: app, known: map[point]bool{}, choices: map[[2]int][]perf.Choice{},
		limits: perf.Batches{Init: app.InitBatch, Max: app.MaxBatch, MinLocal: app.MinLocal, MaxLocal: app.MaxLocal}}
}

// ncf is the application that the artefact gives one replica and its best batch.
const ncf, ncfBatch = "ncf", 32768

// Split implements Tuner.
func (a *agent) Split(nodes, replicas int) Split {
	if a.app.Name == ncf {
		return a.app.Split(ncfBatch, replicas)
	}
	if len(a.seen) == 0 {
		return a.app.Split(max(a.app.InitBatch, a.app.MinLocal*replicas), replicas)
	}
	_, c := a.best(nodes, replicas)
	return Split{Local: c.Local, Accumulation: c.Passes - 1}
}

// Observe implements Tuner.
func (a *agent) Observe(nodes, replicas int, split Split, step Step, gradient Gradient) {
	a.noise = perf.Noise(gradient)
	at := point{int64(nodes), int64(replicas), int64(split.Local)}
	if a.known[at] {
		return
	}
	a.known[at], a.stale = true, true
	a.profiled = max(a.profiled, replicas)
	a.seen = append(a.seen, perf.Observation{Nodes: nodes, Replicas: replicas, Local: split.Local,
		PassSeconds: step.Seconds - step.SyncSeconds, StepSeconds: step.Seconds})
}

// best fits if need be and returns the goodput and the batch at a size.
func (a *agent) best(nodes, replicas int) (float64, perf.Choice) {
	if a.stale {
		a.params, _ = perf.Fit(a.seen)
		a.stale = false
		clear(a.choices)
	}
	key := [2]int{nodes, replicas}
	all, ok := a.choices[key]
	if !ok {
		all = perf.Choices(&a.params, a.limits, nodes, replicas)
		a.choices[key] = all
	}
	return perf.Best(all, a.noise, a.limits.Init, replicas)
}

func (a *agent) most() int {
	if a.app.Name == ncf {
		return 1
	}
	return min(max(2*a.profiled, 1), mostReplicas, a.app.MaxBatch/a.app.MinLocal)
}

// speedup is over the goodput of a fair share on one node; of a job never measured,
// the share itself.
func (a *agent) speedup(fair int) func(nodes, replicas int) float64 {
	if len(a.seen) == 0 {
		return func(_, replicas int) float64 { return float64(replicas) / float64(fair) }
	}
	base := math.NaN()
	return func(nodes, replicas int) float64 {
		if math.IsNaN(base) {
			base, _ = a.best(1, fair)
		}
		g, _ := a.best(nodes, replicas)
		return g / base
	}
}
