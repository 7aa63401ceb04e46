package pollux

import (
	"fmt"
	"math"
	"slices"
)

// Step is the time of one training step on all replicas.
type Step struct {
	// Seconds is the whole step, SyncSeconds the part spent in the exchange of gradients.
	Seconds, SyncSeconds float64
}

// Gradient is the squared norm and the variance of the gradient at the initial
// batch size: what the efficiency of larger batches follows from.
type Gradient struct {
	Sqr, Var float64
}

// Split is how a total batch is computed: Local samples per replica and pass,
// with Accumulation extra passes before the gradients are exchanged.
type Split struct {
	Local, Accumulation int
}

// run is one recorded training run at a fixed batch size, epoch by epoch.
type run struct {
	batch      int
	progress   []float64 // in steps of the initial batch size
	iterations []float64
	gradients  []Gradient
}

// timing is the measured curve of one placement over the local batch.
type timing struct {
	local []int
	times []Step
}

// Application is one kind of training job with everything measured about it. It
// may be shared by concurrent simulations.
type Application struct {
	Name string
	// InitBatch is the batch size that progress is counted in, MaxBatch the largest
	// total batch with a recorded run.
	InitBatch, MaxBatch int
	// MinLocal and MaxLocal bound the batch of one replica in one pass.
	MinLocal, MaxLocal int
	// Epochs is the number of epochs (of the slowest recorded run) that complete the job.
	Epochs int

	runs    []run             // by ascending batch
	placed  map[string]timing // by ring
	scatter scatter
}

// StepTime returns the time of one step at a placement (replicas on each node
// used, in ring order) and local batch. A measured placement is interpolated over
// the local batch; any other between all measurements, by number of nodes,
// replicas and local batch, where only the first sixteen nodes count.
func (a *Application) StepTime(placement []int, local int) (Step, error) {
	const mostNodes = 16
	nodes, replicas := size(placement)
	if t, ok := a.placed[ring(placement)]; ok {
		if step, ok := t.at(local); ok {
			return step, nil
		}
	} else if step, ok := a.scatter.at(point{int64(min(nodes, mostNodes)), int64(replicas), int64(local)}); ok {
		return step, nil
	}
	return Step{}, fmt.Errorf("%s: %d replicas on %d nodes at local batch %d lie outside the measurements",
		a.Name, replicas, nodes, local)
}

// at interpolates linearly between neighbouring local batches.
func (t *timing) at(local int) (Step, bool) {
	last := len(t.local) - 1
	if last < 1 || local < t.local[0] || local > t.local[last] {
		return Step{}, false
	}
	hi, _ := slices.BinarySearch(t.local, local)
	hi = max(hi, 1)
	x, width := float64(local-t.local[hi-1]), float64(t.local[hi]-t.local[hi-1])
	lo, up := t.times[hi-1], t.times[hi]
	return Step{
		Seconds:     (up.Seconds-lo.Seconds)/width*x + lo.Seconds,
		SyncSeconds: (up.SyncSeconds-lo.SyncSeconds)/width*x + lo.SyncSeconds,
	}, true
}

// ring names a placement independent of the node that the ring starts on: the
// smallest rotation of its digits.
func ring(placement []int) string {
	digits := make([]byte, 0, len(placement))
	for _, n := range placement {
		if n > 0 {
			digits = append(digits, byte('0'+n))
		}
	}
	least := string(digits)
	for i := range digits {
		least = min(least, string(digits[i:])+string(digits[:i]))
	}
	return least
}

// size counts the nodes and replicas of a placement.
func size(placement []int) (nodes, replicas int) {
	for _, n := range placement {
		if n > 0 {
			nodes++
			replicas += n
		}
	}
	return nodes, replicas
}

// between finds the recorded runs around a batch size and the weight of the upper one.
func (a *Application) between(batch int) (lower, upper *run, weight float64, err error) {
	i := slices.IndexFunc(a.runs, func(r run) bool { return r.batch >= batch })
	if i < 0 || a.runs[i].batch > batch && i == 0 {
		return nil, nil, 0, fmt.Errorf("%s: batch %d outside the recorded %d..%d",
			a.Name, batch, a.runs[0].batch, a.runs[len(a.runs)-1].batch)
	}
	upper = &a.runs[i]
	if upper.batch == batch {
		return upper, upper, 0, nil
	}
	lower = &a.runs[i-1]
	return lower, upper, float64(batch-lower.batch) / float64(upper.batch-lower.batch), nil
}

// Gradient returns the gradient's statistics during an epoch (from 0) of training
// at a batch size, between the recorded runs.
func (a *Application) Gradient(batch, epoch int) (Gradient, error) {
	lower, upper, w, err := a.between(batch)
	if err != nil {
		return Gradient{}, err
	}
	l, u := lower.gradients[epoch], upper.gradients[epoch]
	return Gradient{Sqr: l.Sqr + w*(u.Sqr-l.Sqr), Var: l.Var + w*(u.Var-l.Var)}, nil
}

// Gain is the progress of one step at a batch scale times the initial batch, in
// steps of the initial batch: 1 at scale 1, below scale when gradients agree.
func (g Gradient) Gain(scale float64) float64 {
	return (g.Var + g.Sqr) / (g.Var/scale + g.Sqr)
}

// Progress returns the progress that completes this many epochs: that of the
// recorded run that needed the least.
func (a *Application) Progress(epochs int) float64 {
	if epochs == 0 {
		return 0
	}
	least := math.Inf(1)
	for i := range a.runs {
		least = min(least, a.runs[i].progress[epochs-1])
	}
	return least
}

// Split divides a total batch over replicas, with as few passes as memory allows.
// One replica with more than the initial batch takes two passes at least, since
// the gradient's variance cannot be told from one.
func (a *Application) Split(batch, replicas int) Split {
	per := ceilDiv(batch, replicas)
	passes := ceilDiv(per, a.MaxLocal)
	if replicas == 1 && batch > a.InitBatch {
		passes = max(passes, 2)
	}
	return a.fit(per, replicas, passes)
}

// fit caps the local batch so that the total stays within MaxBatch.
func (a *Application) fit(perReplica, replicas, passes int) Split {
	return Split{Local: min(ceilDiv(perReplica, passes), a.MaxBatch/(replicas*passes)), Accumulation: passes - 1}
}

// ncf is the application that the artefact gives one replica.
const ncf = "ncf"

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// Accumulated is the time of a step with extra passes, which exchange nothing.
func (s Step) Accumulated(passes int) float64 {
	return s.Seconds + (s.Seconds-s.SyncSeconds)*float64(passes)
}
