package promise

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
)

const (
	comingFor  = unit.Hour // how far ahead displacements are told
	comingPart = 20        // looking for them takes one part in so many of the time
)

// coming is when and for whom a run has to give way.
type coming struct {
	attempt int32
	ahead.Displacement
}

// Coming says in words that the run of a job will have to give way: to maintenance, which
// is in the calendar, or to another job, as the engine run forward saw it last. It is empty
// where nothing of the kind is known.
func (k *Keeper) Coming(v plan.View, id plan.JobID) string {
	j := v.Job(id)
	if j.Phase != plan.Active || v.Run(j.Run).Status == plan.Stopping {
		return ""
	}
	at, why := closing(v, j.Run)
	if all := k.coming.Load(); all != nil {
		if c, seen := (*all)[id]; seen && c.attempt == j.Attempt && c.At < at {
			at, why = c.At, ": "+c.Reason.Words(v)
			if c.By >= 0 {
				why = " to " + v.Name(c.By)
			}
		}
	}
	switch left := at.Sub(v.Now()); {
	case at == unit.Never:
		return ""
	case left > 0:
		return fmt.Sprintf("will give way in about %s%s", view.Span(left), why)
	}
	return "is about to give way" + why
}

// closing is when the first maintenance begins on a node of a run that is expected to go on
// until then; Never where there is none.
func closing(v plan.View, run plan.RunID) (at unit.Time, why string) {
	at = unit.Never
	for _, w := range v.Windows() {
		if w.Open || w.From >= at || w.From >= calendar.Told(v, run) {
			continue
		}
		v.GrantsOf(run, func(g plan.Grant) {
			if g.Node == w.Node {
				at, why = w.From, ": "+v.Cluster().Nodes[w.Node].Name+" is closed for maintenance then"
			}
		})
	}
	return at, why
}

// foresee runs the engine forward once, where something has changed since it last did,
// with what the engine itself believes and with those jobs that are there.
func (k *Keeper) foresee(ctx context.Context) error {
	if !k.stale || time.Since(k.foreseen) < max(k.config.Every, comingPart*k.foreseeing) {
		return nil
	}
	began := time.Now()
	fork, done, err := k.aside(ctx)
	if done == nil {
		return err
	}
	defer done()
	k.stale, k.foreseen = false, began
	within, cancel := context.WithTimeout(ctx, k.config.Budget/unaskedPart)
	defer cancel()
	found, err := displacements(within, fork)
	k.foreseeing = time.Since(began)
	k.coming.Store(&found)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil // then nothing is foreseen
	}
	return err
}

// displacements are those of the runs that there are, the first of each.
func displacements(ctx context.Context, fork plane.Fork) (found map[plan.JobID]coming, err error) {
	defer caught(&err)
	found = map[plan.JobID]coming{}
	v := fork.State.View()
	if v.Paused() || idle(v) {
		return found, nil
	}
	config := forward(fork)
	config.Horizon = comingFor
	future, err := ahead.Run(ctx, config)
	if err != nil {
		return nil, err
	}
	for i := range future.Fates {
		if f := &future.Fates[i]; f.Active && len(f.Displaced) > 0 {
			found[f.Job] = coming{v.Job(f.Job).Attempt, f.Displaced[0]}
		}
	}
	return found, nil
}

// idle reports whether nobody waits: then no job gives way to another.
func idle(v plan.View) bool {
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Phase == plan.Waiting {
			return false
		}
	}
	return true
}

// forward is what all futures of a fork share.
func forward(fork plane.Fork) ahead.Config {
	return ahead.Config{State: fork.State, Policy: fork.Policy, Later: ahead.Returns(fork.State.View()), Scheduler: func() (schedule.Scheduler, error) {
		built, err := fork.Strategy.Build(catalogue.Env{Seed: fork.Seed}, false)
		return built.Scheduler, err
	}}
}

// caught makes an error of a panic: a strategy that breaks in a future must not take the
// control plane with it.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("looking ahead panicked: %v\n%s", p, debug.Stack())
	}
}
