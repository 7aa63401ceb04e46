// Package server is Muster's API: HTTP and JSON under /v1, on a unix socket whose
// peers the kernel names, and for reading also on a loopback port that serves the
// report page and the metrics. It authenticates, limits, translates and answers;
// what is asked goes to the plane, and what is shown comes from package view.
//
// A change needs an identity, so it needs the unix socket: the owner of a job, root
// and the user the server runs as may change that job and read its log; root and
// the server's user may change nodes and pause the decisions.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/workload"
)

// Config is a server.
type Config struct {
	Plane   *plane.Plane
	Version string
	Log     *slog.Logger
	// Logs names the directory that a rank of an attempt writes its log to, as package
	// supervise reads it.
	Logs func(name string, attempt, rank int32) string
	// Prepare changes a job before it is submitted; nil changes nothing.
	Prepare func(*workload.Job) error
	// RatePerSec and Burst bound the requests of each user; 0 is 1,000 and 2,000.
	RatePerSec, Burst float64
}

// Limits that are not settings.
const (
	maxBody        = 4 << 20
	maxJobs        = 10_000 // in one submission
	maxStreams     = 256    // open watches and followed logs
	readHeaderTime = 5 * time.Second
	readBodyTime   = 30 * time.Second
	askTime        = 10 * time.Second // to wait for the plane
	shutdownTime   = 5 * time.Second
)

// Server answers requests about one plane.
type Server struct {
	config  Config
	handler http.Handler
	limiter *limiter
	keys    keyLocks
	metrics *metrics
	hub     *hub
	history history
	streams atomic.Int64

	jobs     index        // touched by the plane's goroutine only, inside a query
	answered atomic.Int64 // unix microseconds of the plane's last answer

	begin   sync.Once
	end     sync.Once
	closing chan struct{} // streams end when it is closed
}

// New returns a server of config.Plane; nothing happens before Serve.
func New(config Config) *Server {
	if config.RatePerSec == 0 {
		config.RatePerSec, config.Burst = 1000, 2000
	}
	s := &Server{config: config, limiter: newLimiter(config.RatePerSec, config.Burst), hub: newHub(),
		jobs: newIndex(), closing: make(chan struct{})}
	s.metrics = newMetrics(s)
	s.handler = s.wrap(s.routes())
	return s
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	route := func(pattern string, f func(w http.ResponseWriter, r *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := f(w, r); err != nil {
				s.fail(w, r, err)
			}
		})
	}
	route("POST /v1/jobs", s.submit)
	route("GET /v1/jobs", s.listJobs)
	route("GET /v1/jobs/{job}", s.getJob)
	route("GET /v1/jobs/{job}/why", s.getWhy)
	route("GET /v1/jobs/{job}/steps", s.getSteps)
	route("GET /v1/jobs/{job}/logs", s.getLogs)
	route("POST /v1/jobs/{job}/{verb}", s.changeJob)
	route("GET /v1/nodes", s.listNodes)
	route("POST /v1/nodes/{node}/{verb}", s.changeNode)
	route("POST /v1/{verb}", s.changeCluster)
	route("GET /v1/cluster", s.getCluster)
	route("GET /v1/watch", s.watch)
	route("GET /v1/version", s.getVersion)
	route("GET /healthz", s.healthy)
	route("GET /readyz", s.ready)
	mux.Handle("GET /metrics", s.metrics.handler())
	route("GET /{$}", s.page)
	route("/", func(http.ResponseWriter, *http.Request) error {
		return refuse(http.StatusNotFound, "there is nothing here: the API is under /v1")
	})
	return mux
}

// Serve answers on a listener until the context ends, then lets what is under way
// finish. It may be called for several listeners at once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.begin.Do(func() { go s.observe() })
	h := &http.Server{Handler: s.handler, ReadHeaderTimeout: readHeaderTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnContext: withPeer, ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug)}
	stopped := context.AfterFunc(ctx, func() {
		s.end.Do(func() { close(s.closing) })
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if h.Shutdown(ctx) != nil {
			h.Close()
		}
	})
	err := h.Serve(l)
	if !stopped() { // it is being shut down, which h.Serve does not wait for
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		_ = h.Shutdown(ctx) // what did not finish in time was closed above
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// ask calls f with the plane's state. After an error f may still be called, later:
// it must write only to what is not read then.
func (s *Server) ask(ctx context.Context, f func(v plan.View)) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	err := s.config.Plane.Query(ctx, f)
	if err == nil {
		s.answered.Store(time.Now().UnixMicro())
	}
	return s.unavailable(err)
}

// unavailable translates what can be wrong with asking the plane.
func (s *Server) unavailable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, plane.ErrClosed):
		return refuse(http.StatusServiceUnavailable, "the control plane has stopped: start it again with muster up")
	case errors.Is(err, context.DeadlineExceeded):
		return refuse(http.StatusServiceUnavailable, "the control plane did not answer in time: try again, and look at its log")
	}
	return err
}
