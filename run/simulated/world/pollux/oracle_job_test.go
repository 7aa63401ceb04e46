package pollux

import (
	"fmt"
	"math"
	"slices"
)

// Job is the truth about one job: what it would do if placed.
type Job struct {
	Request
	App *Application

	// Epoch is the number of finished epochs.
	Epoch int
	// Restarts counts the placements after the first.
	Restarts int
	// DeviceSeconds is the device time held so far, restarts included.
	DeviceSeconds int
	// Finished and, once it is, FinishSeconds since the start of the history.
	Finished      bool
	FinishSeconds int

	nowSeconds     int
	progress       float64
	placement      []int // replicas on each node used; empty while waiting
	batch          int
	restartSeconds int // of the restart still to come
	eachRestart    int // seconds
	started        bool
}

// NewJob returns a job that waits at second 0 and loses so many seconds whenever its
// replicas are placed.
func NewJob(r Request, app *Application, restartSeconds int) *Job {
	return &Job{Request: r, App: app, batch: r.Batch, eachRestart: restartSeconds}
}

// Place puts the replicas on nodes (replicas on each node used, in ring order) and
// begins a restart; an empty placement stops the job, which then waits. Progress
// is kept, to the sample.
func (j *Job) Place(placement []int) {
	j.placement = slices.Clone(placement)
	if len(placement) == 0 {
		return
	}
	j.restartSeconds = j.eachRestart
	if j.started {
		j.Restarts++
	}
	j.started = true
}

// SetBatch changes the total batch size, at once and at no cost.
func (j *Job) SetBatch(batch int) { j.batch = batch }

// Advance lets time pass. Slowdown is the part of its speed (0 to 1) that the job
// loses to its neighbours meanwhile.
//
// Epochs end on whole seconds: the time to the end of an epoch is rounded, ties to
// even, while the progress made is not.
func (j *Job) Advance(seconds int, slowdown float64) error {
	if len(j.placement) == 0 || j.Finished {
		j.nowSeconds += seconds
		return nil
	}
	_, replicas := size(j.placement)
	delay := min(j.restartSeconds, seconds)
	j.restartSeconds -= delay
	j.spend(delay, replicas)
	seconds -= delay
	for seconds > 0 && !j.Finished {
		rate, err := j.rate(replicas)
		if err != nil {
			return fmt.Errorf("advancing job %s: %w", j.Name, err)
		}
		rate *= 1 - slowdown
		next := j.App.Progress(j.Epoch + 1)
		if j.progress+rate*float64(seconds) < next {
			j.progress += rate * float64(seconds)
			j.spend(seconds, replicas)
			return nil
		}
		toEpoch := int(math.RoundToEven((next - j.progress) / rate))
		j.progress = next
		j.Epoch++
		j.spend(toEpoch, replicas)
		seconds -= toEpoch
		if j.Epoch == j.App.Epochs {
			j.Finished, j.FinishSeconds = true, j.nowSeconds
		}
	}
	j.nowSeconds += seconds
	return nil
}

func (j *Job) spend(seconds, replicas int) {
	j.nowSeconds += seconds
	j.DeviceSeconds += seconds * replicas
}

// rate is the progress per second of the current epoch as placed.
func (j *Job) rate(replicas int) (float64, error) {
	split := j.App.Split(j.batch, replicas)
	batch := replicas * split.Local * (split.Accumulation + 1)
	step, err := j.App.StepTime(j.placement, split.Local)
	if err != nil {
		return 0, err
	}
	gradient, err := j.App.Gradient(batch, j.Epoch)
	if err != nil {
		return 0, err
	}
	gain := gradient.Gain(float64(batch) / float64(j.App.InitBatch))
	return gain / step.Accumulated(split.Accumulation), nil
}
