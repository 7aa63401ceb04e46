package promise

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Run notes what becomes of jobs that something was promised about, promises something
// of every job that waits for some seconds, and looks who will have to give way, until the
// context ends.
func (k *Keeper) Run(ctx context.Context) {
	k.stale = true
	changed, stop := k.config.Plane.Watch()
	defer stop()
	for {
		if err := k.watch(ctx); err != nil {
			if ctx.Err() != nil || errors.Is(err, plane.ErrClosed) {
				return
			}
			k.config.Log.Warn("keeping promises", "error", err)
		}
		pause := time.NewTimer(lookEvery) // a busy cluster changes all the time
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		if len(k.fresh) > 0 || k.stale { // its time comes, whatever else happens
			select {
			case <-changed:
				k.stale = true
			default:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			k.stale = true
		}
	}
}

// watch looks once. What happened while nobody looked is in the state as well.
func (k *Keeper) watch(ctx context.Context) error {
	var outcomes []forecast.Entry
	var due []plan.JobID
	known := k.known()
	err := k.config.Plane.Query(ctx, func(v plan.View) {
		for id, started := range known {
			outcomes = appendOutcomes(outcomes, v, id, started)
		}
		due = k.due(v, known)
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(outcomes, func(a, b forecast.Entry) int { return int(min(1, max(-1, a.Outcome.At-b.Outcome.At))) })
	if len(outcomes) > 0 {
		if err := k.keep(outcomes...); err != nil {
			return err
		}
	}
	return errors.Join(k.volunteer(ctx, due), k.foresee(ctx))
}

// known are the jobs that were promised something and are not over, as far as the log
// says, and whether it says that they started.
func (k *Keeper) known() map[plan.JobID]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	started := make(map[plan.JobID]bool, len(k.open))
	for id, p := range k.open {
		started[id] = p.started
	}
	return started
}

// appendOutcomes adds what became of a job since.
func appendOutcomes(list []forecast.Entry, v plan.View, id plan.JobID, started bool) []forecast.Entry {
	add := func(what forecast.What, at unit.Time) {
		list = append(list, forecast.Entry{Outcome: &forecast.Outcome{Job: int32(id), What: what, At: at}})
	}
	if int(id) >= v.Jobs() { // of a journal that lost its end
		add(forecast.Withdrawn, v.Now())
		return list
	}
	j := v.Job(id)
	if j.Started != unit.Never && !started {
		add(forecast.Started, j.Started)
	}
	switch {
	case !j.Phase.Over():
	case j.Phase == plan.Finished, j.Phase == plan.Failed && j.Reason.Code != plan.OverLimit && j.Started != unit.Never:
		add(forecast.Ended, j.Ended)
	default:
		add(forecast.Withdrawn, min(j.Ended, v.Now()))
	}
	return list
}

// due are jobs that have waited for so long that they are promised something; it is
// called inside a query.
func (k *Keeper) due(v plan.View, known map[plan.JobID]bool) (due []plan.JobID) {
	for ; int(k.next) < v.Jobs(); k.next++ {
		k.fresh = append(k.fresh, k.next)
	}
	k.fresh = slices.DeleteFunc(k.fresh, func(id plan.JobID) bool {
		j := v.Job(id)
		_, promised := known[id]
		return promised || j.Started != unit.Never || j.Phase.Over()
	})
	if v.Paused() {
		return nil
	}
	site := explain.Of(v, nil)
	for _, id := range k.fresh {
		j := v.Job(id)
		if len(due) < mostUnasked && j.Run == plan.None && j.Phase != plan.Held && v.Now().Sub(j.Submit) >= k.config.After && site.Never(id) == "" {
			due = append(due, id)
		}
	}
	return due
}

// volunteer promises something about jobs that nobody asked about, so that how good
// promises are does not depend on who asks. They share their forward runs.
func (k *Keeper) volunteer(ctx context.Context, jobs []plan.JobID) error {
	if len(jobs) == 0 || time.Now().Before(k.unasked) {
		return nil
	}
	fork, done, err := k.aside(ctx)
	if done == nil {
		return err
	}
	defer done()
	began := time.Now()
	defer func() { k.unasked = time.Now().Add(max(k.config.Every, unaskedRest*time.Since(began))) }()
	_, err = k.promise(ctx, fork, jobs, k.config.Budget/unaskedPart)
	return err
}

// aside copies the state to look ahead at what nobody asked for; done is to be called after
// that, and is nil where those who ask leave no room.
func (k *Keeper) aside(ctx context.Context) (fork plane.Fork, done func(), err error) {
	select {
	case k.busy <- struct{}{}:
	default:
		return fork, nil, nil
	}
	if fork, err = k.config.Plane.Fork(ctx); err != nil {
		<-k.busy
		return fork, nil, err
	}
	return fork, func() { <-k.busy }, nil
}
