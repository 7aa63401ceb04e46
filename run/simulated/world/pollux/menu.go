package pollux

import (
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/model/workload"
)

// Menu is how long a request takes on what it asks for and how fast it goes on other
// numbers of replicas, for a world that knows a job by such rates.
type Menu struct {
	// Seconds is the training time on the replicas and the batch asked for, four to a
	// node, without restarts.
	Seconds float64
	// Sizes are the legal numbers of replicas that were measured, and the one asked for.
	Sizes []int32
	// Offers has each size on the fewest nodes and, where one node would do, on two. Rate
	// 1 is what was asked for.
	Offers []workload.Offer
}

// powers and few are the numbers of replicas that are offered: a job may have eight with
// the one it asks for.
var (
	powers = []int32{1, 2, 4, 8, 16, 32, 64}
	few    = []int32{1, 2, 3, 4, 6, 8, 12}
)

// Menu returns the rates of a request from the measurements: the training time on so
// many replicas is the sum over the epochs of their progress over its rate, so that a
// rate is what the job makes on the average of its life. The batch is the one asked for,
// or, if the job tunes it, the one of most goodput in each epoch. Fine sizes are more of
// the small ones, in the place of the largest.
func (a *Application) Menu(r Request, tuned, fine bool) (Menu, error) {
	seconds, ok := a.train(packing(r.Replicas), []int{r.Batch})
	if !ok {
		return Menu{}, fmt.Errorf("job %s: %d replicas at batch %d lie outside the measurements of %s", r.Name, r.Replicas, r.Batch, a.Name)
	}
	m := Menu{Seconds: seconds}
	asked := append([]int32{int32(r.Replicas)}, powers...)
	if fine {
		asked = append([]int32{int32(r.Replicas)}, few...)
	}
	slices.Sort(asked)
	for _, n := range slices.Compact(asked) {
		if a.Name == ncf && n > 1 && n != int32(r.Replicas) {
			continue // as in the artefact
		}
		batches := []int{r.Batch}
		if tuned {
			batches = append(a.batches(int(n)), r.Batch)
		}
		if offers := a.offers(n, batches, seconds); len(offers) > 0 {
			m.Sizes, m.Offers = append(m.Sizes, n), append(m.Offers, offers...)
		}
	}
	return m, nil
}

// offers are the rates on a number of replicas over what takes so long: on one node and
// on two where there is the choice; more than one node holds are on the fewest either way.
func (a *Application) offers(replicas int32, batches []int, reference float64) (list []workload.Offer) {
	placements := [][]int{packing(int(replicas)), packing(int(replicas))}
	switch {
	case replicas == 1:
		placements = placements[:1]
	case len(placements[1]) == 1:
		placements[1] = []int{int(replicas+1) / 2, int(replicas) / 2}
	}
	for i, placement := range placements {
		if seconds, ok := a.train(placement, batches); ok {
			list = append(list, workload.Offer{Workers: replicas, Nodes: int32(i) + 1, Rate: reference / seconds})
		}
	}
	return list
}

// packing fills nodes of four.
func packing(replicas int) (placement []int) {
	const perNode = 4
	for ; replicas > 0; replicas -= perNode {
		placement = append(placement, min(replicas, perNode))
	}
	return placement
}

// batches are total batches that so many replicas can compute, evenly apart in
// logarithms.
func (a *Application) batches(replicas int) (all []int) {
	const steps = 30
	first, last := float64(max(a.InitBatch, a.MinLocal*replicas)), float64(a.MaxBatch)
	for i := 0; i <= steps && first <= last; i++ {
		all = append(all, int(math.Round(first*math.Pow(last/first, float64(i)/steps))))
	}
	return slices.Compact(all)
}

// train is the time of all epochs on a placement, each at the best of the batches;
// false where none can be computed there.
func (a *Application) train(placement []int, batches []int) (seconds float64, ok bool) {
	_, replicas := size(placement)
	type way struct {
		batch   int
		seconds float64 // of a step
	}
	var ways []way
	for _, batch := range batches {
		split := a.Split(batch, replicas)
		if split.Local < 1 {
			continue
		}
		step, err := a.StepTime(placement, split.Local)
		if err == nil {
			ways = append(ways, way{replicas * split.Local * (split.Accumulation + 1), step.Accumulated(split.Accumulation)})
		}
	}
	for epoch := range a.Epochs {
		best := 0.0
		for _, w := range ways {
			if g, err := a.Gradient(w.batch, epoch); err == nil {
				best = max(best, g.Gain(float64(w.batch)/float64(a.InitBatch))/w.seconds)
			}
		}
		if best == 0 {
			return 0, false
		}
		seconds += (a.Progress(epoch+1) - a.Progress(epoch)) / best
	}
	return seconds, true
}
