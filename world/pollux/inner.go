package pollux

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/allocate/search"
	"github.com/musterdl/muster/strategy"
)

// Inner scores are compared on allocations drawn for some jobs of workload 6, each kept
// until the last job ends: then what a job takes is known from the measurements, and the
// better allocation is the one of the lower mean.
const (
	drawnJobs        = 16
	drawnAllocations = 60
	drawsOfJobs      = 10
)

// layout is one allocation: replicas by job and node.
type layout struct {
	jobs []Request
	rows [][]int
}

// draw gives each job a few replicas, on the freest nodes or scattered.
func draw(rng *rand.Rand, jobs []Request, cluster Config) layout {
	free := make([]int, cluster.Nodes)
	for n := range free {
		free[n] = cluster.DevicesPerNode
	}
	left := cluster.Nodes * cluster.DevicesPerNode
	d := layout{jobs: jobs}
	for i := range jobs {
		count := min(1<<rng.IntN(4), left-(len(jobs)-1-i))
		if jobs[i].Application == ncf {
			count = 1
		}
		left -= count
		row, scattered := make([]int, len(free)), rng.IntN(2) == 0
		for range count {
			at := rng.IntN(len(free))
			for free[at] == 0 {
				at = (at + 1) % len(free)
			}
			if !scattered {
				at = slices.Index(free, slices.Max(free))
				if last := slices.IndexFunc(row, func(n int) bool { return n > 0 }); last >= 0 && free[last] > 0 {
					at = last
				}
			}
			row[at]++
			free[at]--
		}
		d.rows = append(d.rows, row)
	}
	return d
}

// replicas of a row, node by node.
func used(row []int) []int {
	return slices.DeleteFunc(slices.Clone(row), func(n int) bool { return n == 0 })
}

// means are what the jobs take on the average, each with the batch asked for, or tuned: in
// seconds, and over what four replicas on one node would take.
func (x *experiment) means(d layout, tuned bool) (seconds, relative float64, err error) {
	for i, j := range d.jobs {
		app, placement := x.apps[j.Application], used(d.rows[i])
		_, replicas := size(placement)
		batches, fair := []int{j.Batch}, []int{min(4, replicas)}
		if j.Application != ncf {
			fair[0] = 4
		}
		if tuned {
			batches = append(app.batches(replicas), j.Batch)
		}
		took, ok := app.train(placement, batches)
		if tuned {
			batches = append(app.batches(fair[0]), j.Batch)
		}
		reference, known := app.train(fair, batches)
		if !ok || !known {
			return 0, 0, fmt.Errorf("job %s cannot be trained on %v", j.Name, placement)
		}
		seconds += took / float64(len(d.jobs))
		relative += took / reference / float64(len(d.jobs))
	}
	return seconds, relative, nil
}

// fitness is what Pollux makes large, by models fitted to four placements.
func (x *experiment) fitness(d layout, agents map[string]*agent, cluster Config) float64 {
	p := search.Problem{Base: search.NewMatrix(len(d.jobs), cluster.Nodes), MostNodes: cluster.Nodes, Mingle: true}
	m := search.NewMatrix(len(d.jobs), cluster.Nodes)
	for range cluster.Nodes {
		p.Room = append(p.Room, cluster.DevicesPerNode)
	}
	fair := cluster.Nodes * cluster.DevicesPerNode / len(d.jobs)
	for i, j := range d.jobs {
		p.Jobs = append(p.Jobs, search.Job{Most: mostReplicas, Factor: 1, Speedup: agents[j.Application].speedup(fair)})
		for n, count := range d.rows[i] {
			m.Row(i)[n] = uint8(count)
		}
	}
	return p.Value(m)
}

// seen lets an agent measure a job of each application after a part of its epochs.
func (x *experiment) seen(part float64) (map[string]*agent, error) {
	agents := map[string]*agent{}
	for name, app := range x.apps {
		a := newAgent(app)
		for _, placement := range [][]int{{1}, {2}, {4}, {4, 4}} {
			nodes, replicas := size(placement)
			split := app.Split(max(app.InitBatch, app.MinLocal*replicas), replicas)
			step, err := app.StepTime(placement, split.Local)
			if err != nil {
				return nil, err
			}
			g, err := app.Gradient(app.InitBatch, int(part*float64(app.Epochs)))
			if err != nil {
				return nil, err
			}
			a.Observe(nodes, replicas, split, step, g)
		}
		agents[name] = a
	}
	return agents, nil
}

// timeLeft is what Optimus makes small: the sum of the times left, as it predicts them.
func timeLeft(d layout, apps map[string]*Application) (sum float64, err error) {
	for i, j := range d.jobs {
		v := View{Request: j, App: apps[j.Application]}
		_, replicas := size(used(d.rows[i]))
		step, err := packedStep(&v, replicas)
		if err != nil {
			return 0, err
		}
		iterations, err := iterationsLeft(&v)
		if err != nil {
			return 0, err
		}
		sum += step * iterations
	}
	return sum, nil
}

// inner is the rank correlation of the inner score of Pollux, or of Optimus, with the
// mean completion time over drawn allocations, and with the mean over the jobs of their
// time over that on a fair share; each the mean over the draws of jobs. Pollux has seen
// the jobs after a part of their epochs.
func (x *experiment) inner(ofPollux bool, part float64) (seconds, relative float64, err error) {
	all, err := x.workload(workloads, 6)
	if err != nil {
		return 0, 0, err
	}
	agents, err := x.seen(part)
	if err != nil {
		return 0, 0, err
	}
	all = slices.DeleteFunc(all, func(r Request) bool { // as wide as any may be drawn
		return r.Application != ncf && r.Batch < 8*x.apps[r.Application].MinLocal
	})
	rng := rand.New(rand.NewPCG(x.seed, 6))
	for range drawsOfJobs {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var scores, means, parts []float64
		for range drawnAllocations {
			d := draw(rng, all[:drawnJobs], Default())
			mean, part, err := x.means(d, ofPollux)
			if err != nil {
				return 0, 0, err
			}
			score := 0.0
			if ofPollux {
				score = x.fitness(d, agents, Default())
			} else if score, err = timeLeft(d, x.apps); err != nil {
				return 0, 0, err
			} else {
				score = -score
			}
			scores, means, parts = append(scores, score), append(means, -mean), append(parts, -part)
		}
		seconds += strategy.RankCorrelation(scores, means) / drawsOfJobs
		relative += strategy.RankCorrelation(scores, parts) / drawsOfJobs
	}
	return seconds, relative, nil
}
