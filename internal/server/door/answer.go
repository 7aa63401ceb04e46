package door

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/musterdl/muster/internal/access"
)

// Fail answers with an error. What is not the caller's doing is logged, not told.
func (d *Door) Fail(w http.ResponseWriter, r *http.Request, err error) {
	var f *Failure
	var tooLarge *http.MaxBytesError
	rec, _ := w.(*recorder)
	switch {
	case errors.As(err, &f):
	case errors.As(err, &tooLarge):
		f = &Failure{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the request is larger than %d MiB: send less at once", tooLarge.Limit>>20)}
	case rec != nil && rec.unheard, errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return // nobody is listening any more
	case errors.Is(err, context.Canceled): // of a stream, see Follow
		f = &Failure{Status: http.StatusUnauthorized, Message: "the right to this ended while it was waited for"}
	default:
		d.config.Log.Error("a request failed", "request", w.Header().Get("X-Request-Id"), "path", r.URL.Path, "error", err)
		f = &Failure{Status: http.StatusInternalServerError, Message: "it failed here; the server's log says why, under request " + w.Header().Get("X-Request-Id")}
	}
	if rec != nil && rec.status != 0 {
		return // it was already answering
	}
	if f.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.Retry))
	}
	switch call := access.CallOf(r.Context()); f.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
		call.Refused = f.Message
	case http.StatusForbidden, http.StatusTooManyRequests:
		call.Refused = f.Message
	default:
		call.Refused = f.Denied
	}
	WriteJSON(w, f.Status, map[string]*Failure{"error": f})
}

// Guard is what happens around every request: an id, who asks, the limits, the logs,
// and no panic that ends the process.
func (d *Door) Guard(table http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id, call := requestID(r), &access.Call{}
		r = r.WithContext(access.With(r.Context(), call))
		rec := &recorder{ResponseWriter: w}
		rec.before = func(status int) { d.audit(r, call, id, status) }
		rec.Header().Set("X-Request-Id", id)
		rec.Header().Set("X-Content-Type-Options", "nosniff")
		r.Body = http.MaxBytesReader(rec, r.Body, maxBody)
		defer func() {
			if p := recover(); p != nil {
				d.config.Log.Error("a request panicked", "request", id, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				if rec.status == 0 {
					d.Fail(rec, r, Refuse(http.StatusInternalServerError, "it failed here; the server's log says why, under request "+id))
				}
			}
			d.done(rec, r, id, time.Since(began))
		}()
		var err error
		if call.Identity, err = d.who(r); err == nil {
			err = d.admit(r, call)
		} else if slow := d.slow(&call.Identity, r, call); slow != nil {
			err = slow
		}
		if err != nil {
			d.Fail(rec, r, err)
			return
		}
		table.ServeHTTP(rec, r)
	})
}

// done logs a request that was answered, and counts it. Questions are only counted,
// unless the log is verbose.
func (d *Door) done(rec *recorder, r *http.Request, id string, took time.Duration) {
	rec.begin(http.StatusOK) // of an answer without a body, or to nobody
	d.config.Count(r, rec.status, took)
	level := slog.LevelDebug
	if r.Method != http.MethodGet {
		level = slog.LevelInfo
	}
	d.config.Log.Log(r.Context(), level, "request", "request", id, "by", access.From(r.Context()).String(), "method", r.Method, "path", r.URL.Path,
		"status", rec.status, "bytes", rec.bytes, "ms", float64(took.Microseconds())/1000)
}

// requestID takes over the caller's id where it is harmless, or makes one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > 64 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return rand.Text()[:12]
	}
	return id
}
