package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/promise"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// getWhen says when a job starts and ends. It is worked out beside the plane, on a copy
// of the state.
func (ah *ahead) getWhen(w http.ResponseWriter, r *http.Request) error {
	var job plan.JobID
	var when view.When
	err := ah.reader.about(r, func(v plan.View, id plan.JobID, info plane.JobInfo) {
		x := ah.reader.veil(access.From(r.Context()))
		job, when = id, view.WhenOf(v, x.info(info), id, ah.reader.site(v))
		when.Words = x.text(when.Words)
	})
	if err != nil {
		return err
	}
	if when.Words != "" {
		return door.Answer(w, when)
	}
	when, err = ah.promises.When(r.Context(), job)
	switch {
	case errors.Is(err, promise.ErrBusy):
		return &door.Failure{Status: http.StatusTooManyRequests, Retry: 5, Message: err.Error()}
	case err != nil:
		return unavailable(err)
	}
	return door.Answer(w, when)
}

// getPromises says how good promises were, of the queues that the caller sees.
func (ah *ahead) getPromises(w http.ResponseWriter, r *http.Request) error {
	var now unit.Time
	who := access.From(r.Context())
	seen := map[string]bool{"": true}
	err := ah.reader.ask(r.Context(), func(v plan.View) {
		t := v.Queues()
		for q, shown := range queuesSeen(t, who) {
			if shown && q < len(t.Queues) {
				seen[t.Queues[q].Name] = true
			}
		}
		now = v.Now()
	})
	if err != nil {
		return err
	}
	scores := ah.promises.Scores(now)
	out := view.Promises{Queues: []view.PromiseScore{}}
	for _, score := range scores {
		if seen[score.Queue] || who.Sees(score.Queue, "") {
			out.Queues = append(out.Queues, view.PromiseScoreOf(score))
		}
	}
	if len(scores) == 1 && scores[0].End.Promises == 0 {
		out.Queues = out.Queues[:0] // of all queues together there is nothing either
	}
	return door.Answer(w, out)
}

// beside lets something go on while the server serves.
func (s *Server) beside(run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-s.streams.closing
		cancel()
	}()
	run(ctx)
}
