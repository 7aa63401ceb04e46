package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/budget"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/promise"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/shadow"
	"github.com/musterdl/muster/internal/snapshot"
	"github.com/musterdl/muster/internal/whatif"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// mostWhatIfs are answered at once: each takes two cores, and memory for two states.
const mostWhatIfs = 2

// bounds are what one look ahead may take.
type bounds struct {
	time, budget  time.Duration // until the answer, and of the processor
	jobs, devices int           // that are added
	pairs         int           // of jobs and nodes, of who decides for all jobs at once; 0 is no bound
	words         string        // what is said where that was not enough
}

// boundsOf are those of who asks. An operator may have the cluster itself do what takes as
// long. Anybody else gets a second, of which some is left to come to an end in: one decision
// is not cut short, so there is little enough to decide about that none takes long.
func boundsOf(who *access.Identity) bounds {
	if who.Operates() {
		return bounds{20 * time.Second, 40 * time.Second, maxJobs, whatif.MostAdded, 0,
			"looking ahead took longer than 20 seconds: ask for a shorter horizon, or ask a snapshot, with muster whatif --snapshot"}
	}
	return bounds{20 * time.Second, 800 * time.Millisecond, 1000, 1000, 20_000,
		"looking ahead took more than a second of the server's processor: ask for a shorter horizon or fewer jobs, or have an operator ask"}
}

// ahead answers what would be: under other circumstances, under other strategies, and when a
// job's turn comes. What it asks is worked out beside the plane.
type ahead struct {
	reader      *reader
	plane       *plane.Plane
	submissions *submissions // reads and checks the jobs that are only supposed
	promises    *promise.Keeper
	shadows     *shadow.Set
}

// whatIfs returns the handler of what-if. Everybody who sees jobs and has a name may ask:
// the sums of all jobs are told, as those of the present are (see veil.cluster), and what becomes of
// single ones only of those that the caller sees.
func (ah *ahead) whatIfs() func(w http.ResponseWriter, r *http.Request) error {
	slots := make(chan struct{}, mostWhatIfs)
	return func(w http.ResponseWriter, r *http.Request) error {
		var q whatif.Request
		if err := door.Receive(w, r, &q); err != nil {
			return err
		}
		answered, err := ah.whatIf(r, &q, slots)
		if err != nil {
			return err
		}
		return door.Answer(w, answered)
	}
}

// whatIf answers a question when there is a slot for it.
func (ah *ahead) whatIf(r *http.Request, q *whatif.Request, slots chan struct{}) (a whatif.Answer, err error) {
	if err := q.Check(); err != nil {
		return a, door.Refuse(http.StatusBadRequest, err.Error())
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	default:
		return a, &door.Failure{Status: http.StatusTooManyRequests, Retry: 5, Message: "others look ahead at this moment: try again in a few seconds"}
	}
	who := access.From(r.Context())
	most := boundsOf(who)
	ctx, cancel := context.WithTimeout(r.Context(), most.time)
	defer cancel()
	ctx, spare := budget.Within(ctx, most.budget)
	defer spare()
	base, err := ah.base(ctx, q)
	if err == nil {
		base.MostAdded, base.MostPairs = most.devices, most.pairs
		base.Jobs, err = ah.supposed(r, q, who, most.jobs)
	}
	if err == nil {
		a, err = whatif.Ask(ctx, base, *q)
	}
	switch {
	case err == nil:
		return a, ah.reader.ask(r.Context(), func(plan.View) { ah.reader.veil(who).whatIf(&a) })
	case whatif.IsWrong(err):
		return a, door.Refuse(http.StatusBadRequest, err.Error())
	case errors.Is(context.Cause(ctx), budget.ErrSpent), errors.Is(err, context.DeadlineExceeded):
		return a, door.Refuse(http.StatusServiceUnavailable, most.words)
	}
	return a, err
}

// base is what a question is about: this moment, or one that is past.
func (ah *ahead) base(ctx context.Context, q *whatif.Request) (base whatif.Base, err error) {
	fork, err := ah.plane.Fork(ctx)
	if err != nil {
		return base, unavailable(err)
	}
	if q.Queue != nil && !queueSeen(fork.State.View(), q.Queue.Name, access.From(ctx)) {
		return base, door.Refuse(http.StatusNotFound, "there is no such queue: muster queues lists them")
	}
	if q.LastS == 0 {
		return whatif.Base{Fork: fork}, nil
	}
	w, err := snapshot.ReadWindow(ctx, ah.plane.History, fork.State.Now.Add(-q.Last()), snapshot.ReadOptions{Restart: restartCost})
	if err != nil {
		return base, err
	}
	if base, err = whatif.Of(w); err != nil {
		return base, err
	}
	w.To = max(w.To, fork.State.Now) // nothing may have happened lately
	return base, nil
}

// restartCost is what a resumed job is taken to lose that does not say.
const restartCost = 30 * unit.Second

func queueSeen(v plan.View, name string, who *access.Identity) bool {
	seen := queuesSeen(v.Queues(), who)
	for i := range v.Queues().Queues {
		if v.Queues().Queues[i].Name == name {
			return seen[i]
		}
	}
	return false
}

// supposed are the jobs that are submitted in the question alone, by the same rules as
// those that are.
func (ah *ahead) supposed(r *http.Request, q *whatif.Request, who *access.Identity, most int) (out []workload.Job, err error) {
	if q.Job == "" {
		return nil, nil
	}
	jobs, err := ah.submissions.reading.jobs(r.Context(), "job", []byte(q.Job))
	if err != nil {
		return nil, err
	}
	var sum [sha256.Size]byte
	rand.Read(sum[:])
	if jobs, err = ah.submissions.expand(jobs, who, sum); err != nil {
		return nil, err
	}
	for i := range jobs {
		if out = append(out, jobs[i].Copies()...); len(out) > most {
			return nil, door.Refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("more than %d jobs, arrays counted: ask about fewer", most))
		}
	}
	return out, ah.submissions.check(r.Context(), jobs, false)
}

// whatIf leaves the sums and takes out what becomes of jobs that the identity does not
// see. A job that is not submitted is the caller's own.
func (x veil) whatIf(a *whatif.Answer) {
	a.Keep(func(job string) bool { return x.name(job) == job })
	if x.all {
		return
	}
	a.Words = x.text(a.Words)
	for i := range a.Submitted {
		j := &a.Submitted[i]
		j.Words = x.text(j.Words)
		for k := range j.Preempts {
			j.Preempts[k] = x.name(j.Preempts[k])
		}
	}
}

// switches returns the handler of POST /v1/strategy.
func (ah *ahead) switches() func(w http.ResponseWriter, r *http.Request) error {
	slots := make(chan struct{}, 1)
	return func(w http.ResponseWriter, r *http.Request) error {
		var ask whatif.SwitchRequest
		if err := door.Receive(w, r, &ask); err != nil {
			return err
		}
		if err := ask.Check(); err != nil {
			return door.Refuse(http.StatusBadRequest, err.Error())
		}
		if ask.DryRun {
			return ah.wouldSwitch(w, r, &ask, slots)
		}
		change := plane.Switch{Undo: ask.Undo, By: access.From(r.Context()).String()}
		if !ask.Undo {
			var err error
			if change.To, err = whatif.Strategy(ask.Strategy); err != nil {
				return door.Refuse(http.StatusBadRequest, err.Error())
			}
		}
		ctx, cancel := context.WithTimeout(r.Context(), askTime)
		defer cancel()
		did, err := ah.plane.Switch(ctx, change)
		if err != nil {
			return refused(err)
		}
		out := whatif.Did(did.From.Name, did.To.Name)
		access.CallOf(r.Context()).Note = out.To + " instead of " + out.From
		return door.Answer(w, out)
	}
}

// wouldSwitch says what a switch would do.
func (ah *ahead) wouldSwitch(w http.ResponseWriter, r *http.Request, ask *whatif.SwitchRequest, slots chan struct{}) error {
	q := whatif.Request{Strategy: ask.Strategy, HorizonS: ask.HorizonS}
	if ask.Undo {
		var none error
		err := ah.reader.ask(r.Context(), func(plan.View) {
			before, err := ah.plane.Before()
			q.Strategy, none = before.Text, err
		})
		if err != nil {
			return err
		}
		if none != nil {
			return door.Refuse(http.StatusConflict, none.Error())
		}
	}
	access.CallOf(r.Context()).Note = "dry run"
	a, err := ah.whatIf(r, &q, slots)
	if err != nil {
		return err
	}
	return door.Answer(w, whatif.Would(a.Base.Strategy, a.Alternative.Strategy, &a))
}
