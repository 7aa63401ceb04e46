package pollux

import (
	"fmt"
	"slices"
)

// Optimus is the artefact's baseline "Optimus+Oracle". It differs from the system
// of the paper (EuroSys'18): there are only replicas that exchange gradients, no
// parameter servers; step times and the iterations left are the simulator's truth
// at the user's batch size instead of fits, and the time of a step is that of the
// tightest packing; iterations left are counted from the end of the epoch at hand,
// and are one in the last epoch; it decides at every tick instead of every 600 s; a
// job keeps its nodes as long as its number of replicas stays, others are placed
// smallest first on the freest nodes without spreading evenly. One replica always
// takes two passes per step in its estimate, though not in the simulated truth
// unless the batch is above the initial one. NCF is limited to one replica.
type Optimus struct{}

// Allocate gives every job one replica while there are devices, then one more at a
// time to the job whose remaining time falls most.
func (Optimus) Allocate(_ int, jobs []View, cluster Config) ([]Grant, error) {
	free := cluster.Nodes * cluster.DevicesPerNode
	replicas, gain := make([]int, len(jobs)), make([]float64, len(jobs))
	for i := range jobs {
		if free == 0 {
			break
		}
		replicas[i] = 1
		if free--; free == 0 {
			break
		}
		var err error
		if gain[i], err = marginalGain(&jobs[i], 1); err != nil {
			return nil, err
		}
	}
	for free > 0 {
		best := 0
		for i := range gain {
			if gain[i] > gain[best] {
				best = i
			}
		}
		if gain[best] <= 0 {
			break
		}
		free--
		replicas[best]++
		var err error
		if gain[best], err = marginalGain(&jobs[best], replicas[best]); err != nil {
			return nil, err
		}
	}
	return settle(jobs, replicas, cluster), nil
}

// settle turns replica counts into nodes.
func settle(jobs []View, replicas []int, cluster Config) []Grant {
	grants := make([]Grant, len(jobs))
	order := make([]int, len(jobs))
	for i := range jobs {
		order[i] = i
		if len(jobs[i].Nodes) == replicas[i] {
			grants[i].Nodes = jobs[i].Nodes
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return replicas[a] - replicas[b] })
	room := newRoom(cluster, grants)
	for _, i := range order {
		if len(grants[i].Nodes) == 0 {
			grants[i].Nodes = room.take(replicas[i])
		}
	}
	return grants
}

// marginalGain is the remaining time saved by one more replica than n.
func marginalGain(j *View, n int) (float64, error) {
	most := j.Batch / j.App.MinLocal
	if j.App.Name == "ncf" {
		most = 1
	}
	if n+1 > most {
		return 0, nil
	}
	left, err := iterationsLeft(j)
	if err != nil {
		return 0, fmt.Errorf("job %s: %w", j.Name, err)
	}
	now, err := packedStep(j, n)
	if err != nil {
		return 0, fmt.Errorf("job %s: %w", j.Name, err)
	}
	then, err := packedStep(j, n+1)
	if err != nil {
		return 0, fmt.Errorf("job %s: %w", j.Name, err)
	}
	return (now - then) * left, nil
}

func iterationsLeft(j *View) (float64, error) {
	last := j.App.Epochs - 1
	if j.Epoch >= last {
		return 1, nil
	}
	all, err := iterations(j.App, j.Batch, last)
	if err != nil {
		return 0, err
	}
	done, err := iterations(j.App, j.Batch, j.Epoch)
	return all - done, err
}

// packedStep is the time of one step on n replicas packed four to a node.
func packedStep(j *View, n int) (float64, error) {
	const perNode = 4
	var placement []int
	for left := n; left > 0; left -= perNode {
		placement = append(placement, min(left, perNode))
	}
	split := j.App.Split(j.Batch, n)
	if n == 1 {
		split = j.App.fit(j.Batch, 1, max(split.Accumulation+1, 2))
	}
	step, err := j.App.StepTime(placement, split.Local)
	return step.Accumulated(split.Accumulation), err
}

// iterations returns the steps after the epoch with this index (from 0) at a batch size.
func iterations(a *Application, batch, epoch int) (float64, error) {
	lower, upper, w, err := a.between(batch)
	if err != nil {
		return 0, err
	}
	l, u := lower.iterations[epoch], upper.iterations[epoch]
	return l + w*(u-l), nil
}
