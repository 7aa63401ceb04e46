package trainer

import (
	"cmp"
	"fmt"

	"github.com/musterdl/muster/run/trainer/progress"
)

// salvage saves the last whole step when a worker is lost and each of its stages lives on in
// another pipeline, or with another worker that has the whole model: what nobody has asked to be
// saved is then not lost. Nobody talks to anybody: each writes what it has, and whoever finds
// that the checkpoint is whole says so. Where it does not become whole, the job goes on from an
// older one, as it does where layers are sliced, whose slices would have to be put together.
//
// All who live are behind the same step, or some are behind it and the others have its summed
// gradients (see agree): these write both the step before and, after they have made it, that one.
// Before the first step by another plan some may not have left the one before: all write by that.
func (r *run) salvage() {
	w := r.worker
	if r.checkpoints.dir == "" || w.mesh.data.world == 1 || w.mesh.tensor.world > 1 {
		return
	}
	r.salvageStep(cmp.Or(w.was, w))
	if w.summed {
		w.update()
		r.salvageStep(w)
	}
}

// salvageStep writes what a worker has of the step that it is behind.
func (r *run) salvageStep(w *worker) {
	step := w.done
	if step == 0 {
		return // the beginning needs no file
	}
	err := r.write(w, step)
	if err == nil {
		_, whole, atErr := r.checkpoints.at(step, r.config.Shape, func(error) {})
		if err = atErr; whole {
			r.report.Write(progress.Event{Kind: progress.Checkpoint, Step: int64(step), Path: r.checkpoints.folder(step)})
		}
	}
	if err != nil { // it is lost then, as it would be without salvage
		fmt.Fprintf(r.log, "trainer: saving step %d after the loss of a peer: %s\n", step, err)
	}
}
