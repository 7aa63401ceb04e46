package server

import (
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine/defrag"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Bounds of what may be asked of a plan.
const (
	mostMoves       = 256
	mostDeviceHours = 1e6
)

// postDefrag plans moves that make room for a job. With apply it carries out the plan
// whose digest the caller has seen; where the cluster has changed so that the plan is
// another by now, that one is shown and nothing is done.
func (c *changes) postDefrag(w http.ResponseWriter, r *http.Request) error {
	var ask defrag.Request
	if err := door.Receive(w, r, &ask); err != nil {
		return err
	}
	if err := checkMoves(&ask); err != nil {
		return err
	}
	sequence, shown, err := c.planMoves(r, &ask)
	switch {
	case err != nil:
		return err
	case !ask.Apply:
		return door.Answer(w, shown)
	case shown.Digest != ask.Digest:
		return door.Answer(w, changed(shown))
	}
	access.CallOf(r.Context()).Note = shown.Words
	ev := sequence.Event()
	ev.By = access.From(r.Context()).String()
	var conflict *door.Failure
	err = c.request(r, ev, "")
	if err != nil && !(errors.As(err, &conflict) && conflict.Status == http.StatusConflict) {
		return err
	}
	if err == nil {
		if err := c.reader.ask(r.Context(), func(v plan.View) { shown.Applied = sequence.Applied(v) }); err != nil {
			return err
		}
	}
	if shown.Applied {
		return door.Answer(w, shown)
	}
	// It changed between the look and the deed, and nothing was done.
	if _, shown, err = c.planMoves(r, &ask); err != nil {
		return err
	}
	return door.Answer(w, changed(shown))
}

// checkMoves refuses what no plan of moves can be made by.
func checkMoves(ask *defrag.Request) error {
	switch {
	case ask.MovesMost < 0 || ask.MovesMost > mostMoves:
		return door.Refuse(http.StatusBadRequest, fmt.Sprintf("moves_most is %d: expected 1 to %d, or 0 for %d", ask.MovesMost, mostMoves, defrag.DefaultBudget().Moves))
	case !(ask.PriceMostDeviceHours >= 0 && ask.PriceMostDeviceHours <= mostDeviceHours):
		return door.Refuse(http.StatusBadRequest, "price_most_device_hours is negative or too large: expected 0 for no bound, or device-hours")
	case ask.Apply && ask.Digest == "":
		return door.Refuse(http.StatusBadRequest, "the digest is missing: ask for the plan first, and apply it by the digest that it has")
	}
	return nil
}

// changed says that a plan is not the one that was to be applied.
func changed(shown defrag.Shown) defrag.Shown {
	shown.Words = "nothing was moved, the cluster has changed since that plan was made; now: " + shown.Words
	return shown
}

// planMoves plans on the state of this moment, beside the plane.
func (c *changes) planMoves(r *http.Request, ask *defrag.Request) (defrag.Sequence, defrag.Shown, error) {
	fork, err := c.plane.Fork(r.Context())
	if err != nil {
		return defrag.Sequence{}, defrag.Shown{}, unavailable(err)
	}
	job := plan.JobID(plan.None)
	if ask.Job != "" {
		var missing error
		err := c.reader.ask(r.Context(), func(v plan.View) { job, missing = c.reader.find(v, ask.Job, access.From(r.Context())) })
		if err != nil {
			return defrag.Sequence{}, defrag.Shown{}, err
		}
		if missing != nil {
			return defrag.Sequence{}, defrag.Shown{}, missing
		}
	}
	planner, order, err := planner(fork.Strategy, fork.Seed)
	if err != nil {
		return defrag.Sequence{}, defrag.Shown{}, err
	}
	if ask.MovesMost > 0 {
		planner.Budget.Moves = ask.MovesMost
	}
	planner.Budget.Price = int64(math.Ceil(ask.PriceMostDeviceHours * float64(unit.Hour)))
	var sequence defrag.Sequence
	switch {
	case job == plan.None:
		sequence, _ = planner.Any(fork.State, order)
	case int(job) >= fork.State.View().Jobs(): // submitted since
		sequence = defrag.Sequence{Job: plan.None, Why: ask.Job + " was submitted a moment ago: ask again"}
	default:
		sequence, _ = planner.Plan(fork.State, job)
	}
	return sequence, sequence.Show(fork.State.View()), nil
}

// planner plans as the strategy that decides would place and settle.
func planner(c catalogue.Composition, seed uint64) (defrag.Planner, schedule.Order, error) {
	parts, err := c.Parts(catalogue.Env{Seed: seed})
	if err != nil {
		return defrag.Planner{}, nil, err
	}
	settle := func(v plan.View, job plan.JobID) (t plan.Terms, pipeline *plan.Pipeline) {
		t = plan.DefaultTerms() // a move cannot share devices
		if v.ProfileOf(job).Stages > 0 {
			if p, _, ok := parts.Planner.Plan(v, job, nil); ok {
				pipeline = &p
			}
		}
		return t.WithTraffic(parts.Flow.Traffic(v, job)), pipeline
	}
	return defrag.Planner{Placer: parts.Placer, Budget: defrag.DefaultBudget(), Settle: settle}, parts.Order, nil
}
