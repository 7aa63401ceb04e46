package trainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/musterdl/muster/run/trainer/progress"
)

// run is one attempt of one worker.
type run struct {
	job
	report   *progress.Writer
	requests *requests
	log      io.Writer
	worker   *worker
	samples  int64 // of all steps, those of earlier attempts counted with the batch of now
}

// logEvery is in steps: the log is for people, progress lines are for programs.
const logEvery = 20

// all meets the other workers, restores, and trains.
func (r *run) all() error {
	r.phase("rendezvous")
	ctx, cancel := context.WithTimeout(r.requests.stopping, r.meetWithin)
	defer cancel()
	mesh, err := join(ctx, r.place)
	if err != nil {
		if r.requests.stopping.Err() != nil {
			return errStopped
		}
		return err
	}
	r.worker = newWorker(r.config, r.text, r.plan, mesh)
	stopped, err := r.train()
	if err != nil {
		mesh.drop() // first, so that the others learn of it
		if errors.Is(err, errPeer) {
			r.salvage()
		}
		return err
	}
	mesh.leave()
	if stopped {
		return errStopped
	}
	return nil
}

// train makes the steps that are left and says whether it was asked to stop early.
func (r *run) train() (stopped bool, err error) {
	first, err := r.restore()
	if err != nil {
		return false, err
	}
	r.samples = int64(first) * int64(r.config.Batch)
	r.phase("train")
	begin := time.Now()
	for step := first + 1; step <= r.config.Steps; step++ {
		stepBegin := time.Now()
		save, stop, err := r.requests.poll()
		if err != nil {
			return false, err
		}
		r.takeBatch()
		r.worker.called = r.requests.plan != ""
		r.samples += int64(r.worker.config.Batch)
		o, err := r.worker.step(step, save, stop)
		if err != nil {
			return false, fmt.Errorf("step %d: %w", step, err)
		}
		if err := r.tellTimings(step); err != nil {
			return false, err
		}
		rate := float64(step-first) / time.Since(begin).Seconds()
		r.tell(step, o.loss, rate)
		last := step == r.config.Steps
		every := r.config.CheckpointEvery > 0 && step%r.config.CheckpointEvery == 0
		if r.checkpoints.dir != "" && (o.save || o.stop || every || last) {
			if err := r.save(step); err != nil {
				return false, err
			}
		}
		if o.stop && !last {
			return true, nil
		}
		if o.plan && !last {
			if err := r.replan(); err != nil {
				return false, err
			}
		}
		if !last {
			sleep(r.requests.stopping, r.config.StepDelay-time.Since(stepBegin))
		}
	}
	r.phase("done")
	return false, nil
}

// takeBatch has the next step share the batch that this worker was asked for, if it
// feeds every worker.
func (r *run) takeBatch() {
	n, least := r.requests.batch, r.leastBatch()
	r.requests.batch = 0
	if n > 0 && (n < least || n > batchLimit) {
		r.logf("a batch of %d is not taken: expected %d to %d", n, least, batchLimit)
		return
	}
	r.worker.asked = n
}

// restore loads the newest valid checkpoint, if there is one, and returns its step.
// Rank 0 decides which one it is.
func (r *run) restore() (step int, err error) {
	if r.checkpoints.dir == "" {
		return 0, nil
	}
	w := r.worker
	chosen := make([]float32, 2) // the step, and the mark of this attempt
	var f found
	var ok bool
	if r.place.rank == 0 {
		if f, ok, err = r.checkpoints.newest(r.config.Shape, r.warn); err != nil {
			return 0, err
		}
		chosen[0], chosen[1] = float32(f.step), float32(rand.Uint32()>>8+1)
	}
	if err := w.mesh.sum(chosen); err != nil {
		return 0, err
	}
	step, r.checkpoints.mark = int(chosen[0]), uint32(chosen[1])
	if step == 0 {
		return 0, nil
	}
	r.phase("restore")
	if r.place.rank > 0 {
		if f, ok, err = r.checkpoints.at(step, r.config.Shape, r.warn); err != nil {
			return 0, err
		}
	}
	if !ok {
		return 0, fmt.Errorf("rank 0 resumes from step %d, which is not in %s here: all workers need the same folder", step, r.checkpoints.dir)
	}
	for _, s := range w.stages {
		if err := f.load(s); err != nil {
			return 0, err
		}
	}
	w.done = step
	r.logf("resumed from step %d", step)
	return step, nil
}

// save writes a checkpoint and returns when all workers have written theirs.
func (r *run) save(step int) error {
	w := r.worker
	if w.mesh.data.rank == 0 { // all have the same
		if err := r.write(w, step); err != nil {
			return err
		}
	}
	if err := w.mesh.barrier(); err != nil {
		return err
	}
	if r.place.rank != 0 {
		return nil
	}
	r.report.Write(progress.Event{Kind: progress.Checkpoint, Step: int64(step), Path: r.checkpoints.folder(step)})
	return r.checkpoints.prune(step)
}

// write writes what a worker has of a checkpoint.
func (r *run) write(w *worker, step int) error {
	for i, s := range w.stages {
		if err := r.checkpoints.save(s, step, int(w.held[i]), w.division()); err != nil {
			return err
		}
	}
	return nil
}

// Rank 0 speaks for all workers.

func (r *run) phase(name string) {
	if r.place.rank == 0 {
		r.report.Write(progress.Event{Kind: progress.Phase, Name: name})
	}
}

func (r *run) tell(step int, loss float32, rate float64) {
	if r.place.rank != 0 {
		return
	}
	r.report.Write(progress.Event{Kind: progress.Step, Step: int64(step), Of: int64(r.config.Steps),
		Loss: float64(loss), HasLoss: true, Samples: r.samples, Sent: r.worker.mesh.sent(), Rate: rate})
	if step == 1 || step%logEvery == 0 || step == r.config.Steps {
		r.logf("step %d of %d, loss %.4f, %.1f steps/s", step, r.config.Steps, loss, rate)
	}
}

// tellTimings reports how long passes took, where that is due.
func (r *run) tellTimings(step int) error {
	w := r.worker
	if w.clock == nil || !w.clock.due() {
		return nil
	}
	t, err := w.clock.report(step)
	if err != nil || r.place.rank > 0 {
		return err
	}
	if err := t.Write(r.timings); err != nil {
		r.warn(err) // no reason to fail what is trained
	}
	return nil
}

func (r *run) warn(err error) { r.logf("skipping: %s", err) }

func (r *run) logf(format string, args ...any) {
	if r.place.rank == 0 {
		fmt.Fprintf(r.log, "trainer: "+format+"\n", args...)
	}
}
