package spec

import (
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
)

// entitlement is what a list of amounts comes to: by model, and over all models.
type entitlement struct {
	byModel  []queue.Amount // as listed
	total    int64          // over all models
	anyModel bool           // part of the total may be of models that are not listed
	given    bool
}

func entitled(all []queue.Amount) entitlement {
	e := entitlement{given: len(all) > 0}
	var sum, over int64
	for _, a := range all {
		if a.Model == "" {
			over, e.anyModel = a.Milli, true
			continue
		}
		e.byModel = append(e.byModel, a)
		sum += a.Milli
	}
	e.total = max(sum, over)
	return e
}

// of returns what is listed of a model.
func (e *entitlement) of(model string) (milli int64, listed bool) {
	for _, a := range e.byModel {
		if a.Model == model {
			return a.Milli, true
		}
	}
	return 0, false
}

// add adds what another queue is entitled to.
func (e *entitlement) add(other entitlement) {
	for _, a := range other.byModel {
		found := false
		for i := range e.byModel {
			if e.byModel[i].Model == a.Model {
				e.byModel[i].Milli += a.Milli
				found = true
			}
		}
		if !found {
			e.byModel = append(e.byModel, a)
		}
	}
	e.total += other.total
	e.anyModel = e.anyModel || other.anyModel
	e.given = e.given || other.given
}

// exceeds says what of e is more than room has; ok is that nothing is. A room that
// lists models and no total has nothing of the others.
func (e *entitlement) exceeds(room entitlement) (found, expected string, ok bool) {
	for _, a := range e.byModel {
		have, listed := room.of(a.Model)
		if (listed || !room.anyModel) && a.Milli > have {
			return unit.Milli(a.Milli).String() + " " + a.Model, "at most " + unit.Milli(have).String(), false
		}
	}
	if e.total > room.total {
		return unit.Milli(e.total).String() + " of all models", "at most " + unit.Milli(room.total).String(), false
	}
	return "", "", true
}

// checkClaims checks what queues are promised against each other, from the bottom
// up: nobody can honour more guarantees below than a queue has itself.
func (r *queueReader) checkClaims() {
	queues := r.tree.Queues
	below := make([]entitlement, len(queues)) // the guarantees of the queues below
	for i := len(queues) - 1; i >= 0; i-- {
		q, path := &queues[i], r.paths[i]
		own := entitled(q.Guarantee)
		if own.given {
			if found, expected, ok := below[i].exceeds(own); !ok {
				r.wrong(join(path, "guarantee"), "guarantees of "+found+" in the queues below", expected, "raise this one or lower those")
			}
		}
		r.checkKeep(path, q, own)
		promised := own
		if !own.given {
			promised = below[i]
		}
		r.checkLimit(path, q, promised)
		if i > 0 {
			below[q.Parent].add(promised)
		}
	}
}

func (r *queueReader) checkKeep(path string, q *queue.Queue, guarantee entitlement) {
	if keep := entitled(q.Keep); keep.given {
		if found, expected, ok := keep.exceeds(guarantee); !ok {
			r.wrong(join(path, "keep"), found, expected+", the guarantee", "keep part of the guarantee, or raise it")
		}
	}
}

// checkLimit holds the guarantees of a queue, or of those below it, against its limit.
func (r *queueReader) checkLimit(path string, q *queue.Queue, promised entitlement) {
	for _, a := range q.Limit {
		guaranteed, what := promised.total, "of all models"
		if a.Model != "" {
			guaranteed, _ = promised.of(a.Model)
			what = a.Model
		}
		if a.Milli < guaranteed {
			r.wrong(join(path, "limit"), unit.Milli(a.Milli).String()+" "+what, "at least the guaranteed "+unit.Milli(guaranteed).String(), "raise the limit or lower the guarantee")
		}
	}
}
