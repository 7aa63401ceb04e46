package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/promise"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/plan"
)

// reader asks the plane about its state for those who ask the server, and shows each what it
// may see. It changes nothing.
type reader struct {
	plane    *plane.Plane
	promises *promise.Keeper
	log      *slog.Logger
	notHeld  string       // of limits, by the driver, and why
	jobs     index        // touched by the plane's goroutine only, inside a query
	answered atomic.Int64 // unix microseconds of the plane's last answer
}

// ask calls f with the plane's state. After an error f may still be called, later:
// it must write only to what is not read then.
func (rd *reader) ask(ctx context.Context, f func(v plan.View)) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	err := rd.plane.Query(ctx, f)
	if err == nil {
		rd.answered.Store(time.Now().UnixMicro())
	}
	return unavailable(err)
}

// tell answers with what of says of the plane's state.
func tell[T any](rd *reader, w http.ResponseWriter, r *http.Request, of func(v plan.View) T) error {
	var said T
	if err := rd.ask(r.Context(), func(v plan.View) { said = of(v) }); err != nil {
		return err
	}
	return door.Answer(w, said)
}

// unavailable translates what can be wrong with asking the plane.
func unavailable(err error) error {
	if errors.Is(err, plane.ErrClosed) {
		return &door.Failure{Status: http.StatusServiceUnavailable, Retry: 1, Message: "the control plane has stopped: start it again with muster up"}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return door.Refuse(http.StatusServiceUnavailable, "the control plane did not answer in time: try again, and look at its log")
	}
	return err
}
