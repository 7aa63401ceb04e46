package pollux

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/allocate/search"
	"github.com/musterdl/muster/mechanism/rank"
)

// Inner scores are compared on allocations drawn for some jobs of workload 6, each kept
// until the last job ends: then what a job takes is known from the measurements, and the
// better allocation is the one of the lower mean.
const (
	nodes, perNode   = 16, 4
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
func draw(rng *rand.Rand, jobs []Request) layout {
	free := make([]int, nodes)
	for n := range free {
		free[n] = perNode
	}
	left := nodes * perNode
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

// menu is what a strategy knows of a request.
func (x *experiment) menu(r Request, tuned bool) (known Menu, rate func(replicas int, several bool) float64, err error) {
	known, err = x.apps[r.Application].Menu(r, tuned, false)
	return known, func(replicas int, several bool) float64 {
		best := 0.0 // of the largest size up to so many
		for _, o := range known.Offers {
			if int(o.Workers) <= replicas && (o.Nodes > 1) == (several && o.Workers > 1) {
				best = o.Rate
			}
		}
		return best
	}, err
}

// fitness is what Pollux makes large, by the menus of the jobs.
func (x *experiment) fitness(d layout) (float64, error) {
	p := search.Problem{Base: search.NewMatrix(len(d.jobs), nodes), MostNodes: nodes, Mingle: true}
	m := search.NewMatrix(len(d.jobs), nodes)
	for range nodes {
		p.Room = append(p.Room, perNode)
	}
	fair := nodes * perNode / len(d.jobs)
	for i, j := range d.jobs {
		_, rate, err := x.menu(j, true)
		if err != nil {
			return 0, err
		}
		p.Jobs = append(p.Jobs, search.Job{Most: nodes * perNode, Factor: 1,
			Speedup: func(on, replicas int) float64 { return rate(replicas, on > 1) / rate(fair, false) }})
		for n, count := range d.rows[i] {
			m.Row(i)[n] = uint8(count)
		}
	}
	return p.Value(m), nil
}

// timeLeft is what Optimus makes small: the sum of the times left, by the menus.
func (x *experiment) timeLeft(d layout) (sum float64, err error) {
	for i, j := range d.jobs {
		known, rate, err := x.menu(j, false)
		if err != nil {
			return 0, err
		}
		_, replicas := size(used(d.rows[i]))
		sum += known.Seconds / rate(replicas, replicas > perNode)
	}
	return sum, nil
}

// inner is the rank correlation of the inner score of Pollux, or of Optimus, with the
// mean completion time over drawn allocations, and with the mean over the jobs of their
// time over that on a fair share; each the mean over the draws of jobs.
func (x *experiment) inner(ofPollux bool) (seconds, relative float64, err error) {
	all := slices.Clone(x.workload)
	all = slices.DeleteFunc(all, func(r Request) bool { // as wide as any may be drawn
		return r.Application != ncf && r.Batch < 8*x.apps[r.Application].MinLocal
	})
	rng := rand.New(rand.NewPCG(x.seed, 6))
	for range drawsOfJobs {
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var scores, means, parts []float64
		for range drawnAllocations {
			d := draw(rng, all[:drawnJobs])
			mean, part, err := x.means(d, ofPollux)
			if err != nil {
				return 0, 0, err
			}
			score := 0.0
			if ofPollux {
				score, err = x.fitness(d)
			} else {
				score, err = x.timeLeft(d)
				score = -score
			}
			if err != nil {
				return 0, 0, err
			}
			scores, means, parts = append(scores, score), append(means, -mean), append(parts, -part)
		}
		seconds += rank.Correlation(scores, means) / drawsOfJobs
		relative += rank.Correlation(scores, parts) / drawsOfJobs
	}
	return seconds, relative, nil
}
