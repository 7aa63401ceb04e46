// Package server is Muster's API: HTTP and JSON under /v1, on a unix socket whose
// peers the kernel names, over TLS for who shows a token, and for reading also on a
// loopback port that serves the report page and the metrics. It authenticates,
// limits, translates and answers; what is asked goes to the plane, and what is shown
// comes from package view.
//
// Package access says who may do what: each line of the table in routes names the
// right that it takes. Which jobs an identity sees and steers depends on the job, and
// handlers ask the identity that is in the request's context.
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

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/promise"
	"github.com/musterdl/muster/internal/shadow"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Config is a server.
type Config struct {
	Plane   *plane.Plane
	Version string
	Log     *slog.Logger
	// Logs names the directory that a rank of an attempt writes its log to, as package
	// supervise reads it.
	Logs func(name string, attempt, rank int32) string
	// Objections says why the driver could never run a job; nil is a driver that runs any.
	Objections func(*workload.Job) []*objection.Objection
	// Prepare changes a job before it is submitted; nil changes nothing.
	Prepare func(*workload.Job) error
	// Menu writes the menu of a job that names a model, before it is submitted; nil writes none.
	Menu func(*workload.Job) *objection.Objection
	// Plan makes the plan of an offer of such a menu again; nil makes none.
	Plan view.Read
	// Access knows the users and tokens; nil is a registry that begins empty and is not
	// kept. Audit takes what was changed and refused; nil keeps nothing.
	Access *access.Registry
	Audit  *access.Log
	// Closed asks for a token on the loopback port too, as it must where several
	// people's jobs are. It does so by itself once there are users.
	Closed bool
	// Loopback is the role of programs on this machine while there are no users; less
	// than Viewer is Viewer.
	Loopback access.Role
	// Promises says when jobs start and keeps what it said; nil is one that forgets.
	// Shadows are the strategies that follow in the shadow; nil begins without any.
	Promises *promise.Keeper
	Shadows  *shadow.Set
	// OpenMetrics shows /metrics to anyone, as is usual inside a cluster. Collectors are
	// metrics beside the server's own.
	OpenMetrics bool
	Collectors  []prometheus.Collector
	// RatePerSec and Burst bound the requests of each user; 0 is 1,000 and 2,000.
	RatePerSec, Burst float64
}

// Limits that are not settings.
const (
	maxBody        = 4 << 20 // bytes
	maxModels      = 8       // jobs of a request that name a model
	maxAsked       = 1 << 20 // of what is not a submission
	maxJobs        = 10_000  // in one submission
	maxCopies      = 100_000 // with the copies of arrays
	maxStreams     = 256     // open watches and followed logs
	strangerRate   = 10      // requests per second of an address that has not said who it is
	strangerBurst  = 50
	readHeaderTime = 5 * time.Second
	readBodyTime   = 30 * time.Second
	askTime        = 10 * time.Second // to wait for the plane
	shutdownTime   = 5 * time.Second
)

// Server answers requests about one plane.
type Server struct {
	config    Config
	access    *access.Registry
	handler   http.Handler
	table     *access.Routes
	limiter   *limiter
	strangers *limiter // by address, of whoever has not said who it is
	keys      keyLocks
	reading   reading
	metrics   *metrics
	hub       hub
	history   history
	streams   atomic.Int64

	jobs     index        // touched by the plane's goroutine only, inside a query
	shares   shareHistory // likewise
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
	if config.Promises == nil {
		config.Promises = promise.New(promise.Default(config.Plane, config.Log))
	}
	if config.Shadows == nil {
		config.Shadows = shadow.New(shadow.Config{Plane: config.Plane, Log: config.Log})
	}
	s := &Server{config: config, access: config.Access, jobs: newIndex(), closing: make(chan struct{}), reading: newReading(),
		limiter:   newLimiter(config.RatePerSec, config.Burst),
		strangers: newLimiter(min(config.RatePerSec, strangerRate), min(config.Burst, strangerBurst))}
	if s.access == nil {
		s.access = &access.Registry{}
	}
	s.metrics = newMetrics(s)
	s.table = s.routes()
	s.handler = s.wrap(s.table)
	return s
}

// routes is the table of the API: what answers, and the right that it takes. A handler
// finds who asks in access.From(r.Context()). TestRights has a line for each too.
func (s *Server) routes() *access.Routes {
	table := access.NewRoutes(s.deny)
	route := func(pattern string, right access.Right, f func(w http.ResponseWriter, r *http.Request) error) {
		table.Add(pattern, right, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := f(w, r); err != nil {
				s.fail(w, r, err)
			}
		}))
	}
	route("POST /v1/jobs", access.Submit, s.submit)
	route("GET /v1/jobs", access.View, s.listJobs)
	route("GET /v1/jobs/{job}", access.View, s.getJob)
	route("GET /v1/jobs/{job}/why", access.View, s.getWhy)
	route("GET /v1/jobs/{job}/when", access.View, s.getWhen)
	route("GET /v1/jobs/{job}/steps", access.View, s.getSteps)
	route("GET /v1/jobs/{job}/plan", access.View, s.getPlan)
	route("GET /v1/jobs/{job}/logs", access.View, s.getLogs)
	route("POST /v1/jobs/{job}/{verb}", access.Submit, s.changeJob)
	route("GET /v1/nodes", access.View, s.listNodes)
	route("POST /v1/nodes/{node}/{verb}", access.Operate, s.changeNode)
	route("POST /v1/nodes/{node}/close", access.Operate, s.closeNode)
	route("POST /v1/nodes/{node}/reopen", access.Operate, s.reopenNode)
	route("GET /v1/queues", access.View, s.getQueues)
	route("POST /v1/queues", access.Operate, s.setQueues)
	route("GET /v1/shares", access.View, s.getShares)
	route("GET /v1/shares/history", access.View, s.getShareHistory)
	route("GET /v1/accounts", access.View, s.getAccounts)
	route("GET /v1/calendar", access.View, s.getCalendar)
	route("POST /v1/{verb}", access.Operate, s.changeCluster)
	route("POST /v1/defrag", access.Operate, s.postDefrag)
	route("GET /v1/promises", access.View, s.getPromises)
	route("GET /v1/shadows", access.ViewAll, s.getShadows)
	route("POST /v1/shadows", access.Operate, s.changeShadows)
	route("POST /v1/strategy", access.Operate, s.switches())
	route("POST /v1/whatif", access.Ask, s.whatIfs())
	route("GET /v1/cluster", access.View, s.getCluster)
	route("GET /v1/watch", access.View, s.watch)
	route("GET /v1/snapshot", access.Operate, s.snapshots())
	route("GET /v1/version", access.View, s.getVersion)
	route("GET /v1/whoami", access.View, s.whoami)
	route("GET /v1/users", access.Operate, s.listUsers)
	route("POST /v1/users", access.Operate, s.addUser)
	route("PUT /v1/users/{user}", access.Operate, s.setUser)
	route("DELETE /v1/users/{user}", access.Operate, s.removeUser)
	route("GET /v1/tokens", access.View, s.listTokens)
	route("POST /v1/tokens", access.View, s.newToken)
	route("DELETE /v1/tokens/{token}", access.View, s.revokeToken)
	route("GET /v1/audit", access.Operate, s.readAudit)
	route("GET /healthz", access.Anyone, s.healthy)
	route("GET /readyz", access.Anyone, s.ready)
	scrape := access.Machine
	if s.config.OpenMetrics {
		scrape = access.Anyone
	}
	table.Add("GET /metrics", scrape, s.metrics.handler())
	route("GET /{$}", access.ViewAll, s.page)
	table.Add("GET /console/", access.Anyone, console())
	route("/", access.Anyone, func(http.ResponseWriter, *http.Request) error {
		return refuse(http.StatusNotFound, "there is nothing here: the API is under /v1")
	})
	return table
}

// Handler is what answers, for a caller that has an http.Server of its own, with
// WithPeer as its ConnContext. The second function ends what goes on beside it.
func (s *Server) Handler() (http.Handler, func()) {
	s.begin.Do(func() {
		go s.observe()
		go s.beside(s.config.Promises.Run)
		go s.beside(s.config.Shadows.Run)
	})
	return s.handler, func() { s.end.Do(func() { close(s.closing) }) }
}

// Serve answers on a listener until the context ends, then lets what is under way
// finish. It may be called for several listeners at once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	handler, over := s.Handler()
	defer over()
	h := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnContext: WithPeer, ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug)}
	stopped := context.AfterFunc(ctx, func() {
		over()
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

// tell answers with what of says of the plane's state.
func tell[T any](s *Server, w http.ResponseWriter, r *http.Request, of func(v plan.View) T) error {
	var said T
	if err := s.ask(r.Context(), func(v plan.View) { said = of(v) }); err != nil {
		return err
	}
	return answer(w, said)
}

// unavailable translates what can be wrong with asking the plane.
func (s *Server) unavailable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, plane.ErrClosed):
		return &failure{Status: http.StatusServiceUnavailable, retry: 1, Message: "the control plane has stopped: start it again with muster up"}
	case errors.Is(err, context.DeadlineExceeded):
		return refuse(http.StatusServiceUnavailable, "the control plane did not answer in time: try again, and look at its log")
	}
	return err
}
