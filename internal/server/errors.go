package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/spec"
)

// Problem is one thing that is wrong with a request.
type Problem struct {
	Job      string `json:"job,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Field    string `json:"field,omitempty"`
	Found    string `json:"found,omitempty"`
	Expected string `json:"expected,omitempty"`
	Do       string `json:"do,omitempty"`
	Text     string `json:"text"` // all of it in one line
}

// failure is an answer that is an error.
type failure struct {
	Status   int       `json:"-"`
	Message  string    `json:"message"`
	Problems []Problem `json:"problems,omitempty"`
	retry    int       // seconds, for Retry-After
	denied   string    // what the audit log is told of a refusal that does not look like one
}

// Error is what the caller is told.
func (f *failure) Error() string { return f.Message }

func refuse(status int, message string) error { return &failure{Status: status, Message: message} }

// problems tells all that is wrong with a file at once.
func problems(err error) error {
	f := &failure{Status: http.StatusBadRequest, Message: "the jobs cannot be read"}
	var list spec.Problems
	if !errors.As(err, &list) {
		f.Message += ": " + err.Error()
		return f
	}
	for _, p := range list {
		f.Problems = append(f.Problems, Problem{Line: p.Line, Column: p.Column, Field: p.Field, Found: p.Found,
			Expected: p.Expected, Do: p.Do, Text: p.Error()})
	}
	return f
}

// fail answers with an error. What is not the caller's doing is logged, not told.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var f *failure
	var tooLarge *http.MaxBytesError
	rec, _ := w.(*recorder)
	switch {
	case errors.As(err, &f):
	case errors.As(err, &tooLarge):
		f = &failure{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the request is larger than %d MiB: send less at once", tooLarge.Limit>>20)}
	case rec != nil && rec.unheard, errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return // nobody is listening any more
	case errors.Is(err, context.Canceled): // of a stream, see openStream
		f = &failure{Status: http.StatusUnauthorized, Message: "the right to this ended while it was waited for"}
	default:
		s.config.Log.Error("a request failed", "request", w.Header().Get("X-Request-Id"), "path", r.URL.Path, "error", err)
		f = &failure{Status: http.StatusInternalServerError, Message: "it failed here; the server's log says why, under request " + w.Header().Get("X-Request-Id")}
	}
	if rec != nil && rec.status != 0 {
		return // it was already answering
	}
	if f.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.retry))
	}
	switch call := access.CallOf(r.Context()); f.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
		call.Refused = f.Message
	case http.StatusForbidden, http.StatusTooManyRequests:
		call.Refused = f.Message
	default:
		call.Refused = f.denied
	}
	writeJSON(w, f.Status, map[string]*failure{"error": f})
}

// writeJSON answers with a value. An error is that of a peer that went away.
func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

// answer writes a value with status 200, for handlers to return through.
func answer(w http.ResponseWriter, value any) error {
	writeJSON(w, http.StatusOK, value)
	return nil
}

// wrap is what happens around every request: an id, who asks, the limits, the logs,
// and no panic that ends the process.
func (s *Server) wrap(table http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id, call := requestID(r), &access.Call{}
		r = r.WithContext(access.With(r.Context(), call))
		rec := &recorder{ResponseWriter: w}
		rec.before = func(status int) { s.audit(r, call, id, status) }
		rec.Header().Set("X-Request-Id", id)
		rec.Header().Set("X-Content-Type-Options", "nosniff")
		r.Body = http.MaxBytesReader(rec, r.Body, maxBody)
		defer func() {
			if p := recover(); p != nil {
				s.config.Log.Error("a request panicked", "request", id, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				if rec.status == 0 {
					s.fail(rec, r, refuse(http.StatusInternalServerError, "it failed here; the server's log says why, under request "+id))
				}
			}
			s.done(rec, r, id, time.Since(began))
		}()
		var err error
		if call.Identity, err = s.who(r); err == nil {
			err = s.admit(r, call)
		} else if slow := s.slow(&call.Identity, r, call); slow != nil {
			err = slow
		}
		if err != nil {
			s.fail(rec, r, err)
			return
		}
		table.ServeHTTP(rec, r)
	})
}

// done logs a request that was answered, and counts it. Questions are only counted,
// unless the log is verbose.
func (s *Server) done(rec *recorder, r *http.Request, id string, took time.Duration) {
	rec.begin(http.StatusOK) // of an answer without a body, or to nobody
	s.metrics.request(r, rec.status, took)
	level := slog.LevelDebug
	if r.Method != http.MethodGet {
		level = slog.LevelInfo
	}
	s.config.Log.Log(r.Context(), level, "request", "request", id, "by", access.From(r.Context()).String(), "method", r.Method, "path", r.URL.Path,
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

// recorder remembers what was answered, and calls before with the status before the
// caller learns of it.
type recorder struct {
	http.ResponseWriter
	status  int
	bytes   int64
	unheard bool // a part of the answer did not reach the caller
	before  func(status int)
}

func (r *recorder) begin(status int) {
	if r.status == 0 {
		r.status = status
		r.before(status)
	}
}

// WriteHeader notes the status and passes it on.
func (r *recorder) WriteHeader(status int) {
	r.begin(status)
	r.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes and passes them on.
func (r *recorder) Write(b []byte) (int, error) {
	r.begin(http.StatusOK)
	n, err := r.ResponseWriter.Write(b)
	r.bytes, r.unheard = r.bytes+int64(n), r.unheard || err != nil
	return n, err
}

// Unwrap lets http.ResponseController flush and set deadlines.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
