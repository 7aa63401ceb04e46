package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

// Window is the last part of a history, ready to happen again: how things stood when it
// began, and what came after.
type Window struct {
	State   *plan.State
	Setting plane.Setting // the newest one
	// Switched says that another strategy than the newest decided when it began.
	Switched bool
	Arrivals []ahead.Arrival
	Later    []simulated.Later
	Start    unit.Duration // what any start takes: the median of those observed
	To       unit.Time     // the last batch

	truths []workload.Truth // by job
}

// Beliefs are how long the jobs ran that were there when the window began, as far as
// that was observed (see Arrivals).
func (w *Window) Beliefs(_ plan.View, job plan.JobID) unit.Duration {
	t := w.truths[job]
	if t.FailAfter > 0 {
		return t.FailAfter
	}
	return t.Duration
}

// ReadWindow goes through a history to its end and keeps what happened after an
// instant; where that is later than all of it, there is only how things stand.
func ReadWindow(ctx context.Context, history func(func(store.Batch) error) error, from unit.Time, o ReadOptions) (*Window, error) {
	var past plane.Past
	r, w, before := newRecorder(), &Window{}, 0
	var first []byte // the setting when it began
	begin := func() { w.State, first, before = past.State(), past.Setting(), len(r.later) }
	err := history(func(b store.Batch) error {
		if w.State == nil && past.Seq() > 0 && at(b) >= from {
			begin()
		}
		if b.Seq%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		moment, err := past.Fold(b)
		if err == nil {
			r.recordBatch(past.View(), moment)
		}
		return err
	})
	if err == nil && past.Seq() == 0 {
		err = errors.New("the history has no batch")
	}
	if err == nil {
		if w.To = r.now; w.State == nil {
			begin()
		}
		w.Setting, err = plane.ReadSetting(past.Setting())
	}
	if err != nil {
		return nil, fmt.Errorf("reading a history: %w", err)
	}
	was, err := plane.ReadSetting(first)
	if err != nil {
		return nil, fmt.Errorf("reading a history: %w", err)
	}
	w.Switched = was.Strategy != w.Setting.Strategy
	v := past.View()
	r.closeHistory(v)
	arrivals := r.arrivals(v, o.Restart)
	w.truths = arrivals.truths
	for i := len(w.State.Jobs); i < len(arrivals.jobs); i++ {
		w.Arrivals = append(w.Arrivals, ahead.Arrival{Job: arrivals.jobs[i], Truth: arrivals.truths[i]})
	}
	w.Later = r.later[before:]
	slices.Sort(r.starts)
	w.Start = report.Quantile(r.starts, 500)
	return w, nil
}
