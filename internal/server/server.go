// Package server is Muster's API: HTTP and JSON under /v1, on a unix socket whose
// peers the kernel names, over TLS for who shows a token, and for reading also on a
// loopback port that serves the report page and the metrics. It translates and
// answers; what is asked goes to the plane, and what is shown comes from package view.
//
// Requests come in by package door. Package access says who may do what: each line of the
// table in routes names the right that it takes. Which jobs an identity sees and steers
// depends on the job, and handlers ask the identity that is in the request's context.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/promise"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/shadow"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/model/workload"
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
	// NotHeld says which of the limits that jobs ask for the driver does not hold, and why; "" is none.
	NotHeld string
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
	maxModels      = 8       // jobs of a request that name a model
	maxJobs        = 10_000  // in one submission
	maxCopies      = 100_000 // with the copies of arrays
	maxStreams     = 256     // open watches and followed logs
	strangerRate   = 10      // requests per second of an address that has not said who it is
	strangerBurst  = 50
	readHeaderTime = 5 * time.Second
	askTime        = 10 * time.Second // to wait for the plane
	shutdownTime   = 5 * time.Second
)

// Server answers requests about one plane. Each of its parts answers one kind of request by
// itself; all come in by the door and see the plane's state through the reader.
type Server struct {
	config  Config
	door    *door.Door
	table   *access.Routes
	handler http.Handler

	reader      *reader
	changes     *changes
	submissions *submissions
	files       *files
	ahead       *ahead
	observer    *observer
	registrar   *registrar
	streams     *streams
	metrics     *metrics

	begin sync.Once
	end   sync.Once
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
	if config.Access == nil {
		config.Access = &access.Registry{}
	}
	p, s := config.Plane, &Server{config: config}
	s.reader = &reader{plane: p, promises: config.Promises, log: config.Log, jobs: newIndex(), notHeld: config.NotHeld}
	s.metrics = newMetrics(s.reader, config.Collectors)
	s.door = door.New(s.doorConfig())
	s.streams = &streams{door: s.door, closing: make(chan struct{})}
	s.changes = &changes{reader: s.reader, plane: p}
	s.submissions = &submissions{reader: s.reader, plane: p, reading: newReading(), prepare: config.Prepare, menu: config.Menu, objects: config.Objections, notHeld: config.NotHeld}
	s.files = &files{plane: p, reader: s.reader, streams: s.streams, logs: config.Logs, plan: config.Plan}
	s.ahead = &ahead{reader: s.reader, plane: p, submissions: s.submissions, promises: config.Promises, shadows: config.Shadows}
	s.observer = &observer{reader: s.reader, plane: p, streams: s.streams, log: config.Log}
	s.registrar = &registrar{registry: config.Access, audit: config.Audit}
	s.table = s.routes()
	s.handler = s.door.Guard(s.table)
	return s
}

// doorConfig is how the server's door is.
func (s *Server) doorConfig() door.Config {
	c := &s.config
	return door.Config{Log: c.Log, Access: c.Access, Audit: c.Audit, Closed: c.Closed, Loopback: c.Loopback, Count: s.metrics.request,
		RatePerSec: c.RatePerSec, Burst: c.Burst, StrangersPerSec: min(c.RatePerSec, strangerRate), StrangersBurst: min(c.Burst, strangerBurst)}
}

// routes is the table of the API: what answers, and the right that it takes. A handler
// finds who asks in access.From(r.Context()). TestRights has a line for each too.
func (s *Server) routes() *access.Routes {
	table := access.NewRoutes(s.door.Deny)
	route := func(pattern string, right access.Right, f func(w http.ResponseWriter, r *http.Request) error) {
		table.Add(pattern, right, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := f(w, r); err != nil {
				s.door.Fail(w, r, err)
			}
		}))
	}
	route("POST /v1/jobs", access.Submit, s.submissions.submit)
	route("GET /v1/jobs", access.View, s.reader.listJobs)
	route("GET /v1/jobs/{job}", access.View, s.files.getJob)
	route("GET /v1/jobs/{job}/why", access.View, s.files.getWhy)
	route("GET /v1/jobs/{job}/when", access.View, s.ahead.getWhen)
	route("GET /v1/jobs/{job}/steps", access.View, s.reader.getSteps)
	route("GET /v1/jobs/{job}/plan", access.View, s.files.getPlan)
	route("GET /v1/jobs/{job}/logs", access.View, s.files.getLogs)
	route("POST /v1/jobs/{job}/{verb}", access.Submit, s.changes.changeJob)
	route("GET /v1/nodes", access.View, s.reader.listNodes)
	route("POST /v1/nodes/{node}/{verb}", access.Operate, s.changes.changeNode)
	route("POST /v1/nodes/{node}/close", access.Operate, s.changes.closeNode)
	route("POST /v1/nodes/{node}/reopen", access.Operate, s.changes.reopenNode)
	route("GET /v1/queues", access.View, s.reader.getQueues)
	route("POST /v1/queues", access.Operate, s.changes.setQueues)
	route("GET /v1/shares", access.View, s.reader.getShares)
	route("GET /v1/shares/history", access.View, s.observer.getShareHistory)
	route("GET /v1/accounts", access.View, s.reader.getAccounts)
	route("GET /v1/calendar", access.View, s.reader.getCalendar)
	route("POST /v1/{verb}", access.Operate, s.changes.changeCluster)
	route("POST /v1/defrag", access.Operate, s.changes.postDefrag)
	route("GET /v1/promises", access.View, s.ahead.getPromises)
	route("GET /v1/shadows", access.ViewAll, s.ahead.getShadows)
	route("POST /v1/shadows", access.Operate, s.ahead.changeShadows)
	route("POST /v1/strategy", access.Operate, s.ahead.switches())
	route("POST /v1/whatif", access.Ask, s.ahead.whatIfs())
	route("GET /v1/cluster", access.View, s.reader.getCluster)
	route("GET /v1/watch", access.View, s.observer.watch)
	route("GET /v1/snapshot", access.Operate, s.snapshots())
	route("GET /v1/version", access.View, s.getVersion)
	route("GET /v1/whoami", access.View, s.registrar.whoami)
	route("GET /v1/users", access.Operate, s.registrar.listUsers)
	route("POST /v1/users", access.Operate, s.registrar.addUser)
	route("PUT /v1/users/{user}", access.Operate, s.registrar.setUser)
	route("DELETE /v1/users/{user}", access.Operate, s.registrar.removeUser)
	route("GET /v1/tokens", access.View, s.registrar.listTokens)
	route("POST /v1/tokens", access.View, s.registrar.newToken)
	route("DELETE /v1/tokens/{token}", access.View, s.registrar.revokeToken)
	route("GET /v1/audit", access.Operate, s.registrar.readAudit)
	route("GET /healthz", access.Anyone, s.healthy)
	route("GET /readyz", access.Anyone, s.ready)
	scrape := access.Machine
	if s.config.OpenMetrics {
		scrape = access.Anyone
	}
	table.Add("GET /metrics", scrape, s.metrics.handler())
	route("GET /{$}", access.ViewAll, s.observer.page)
	table.Add("GET /console/", access.Anyone, console())
	route("/", access.Anyone, func(http.ResponseWriter, *http.Request) error {
		return door.Refuse(http.StatusNotFound, "there is nothing here: the API is under /v1")
	})
	return table
}

// Handler is what answers, for a caller that has an http.Server of its own, with
// door.WithPeer as its ConnContext. The second function ends what goes on beside it.
func (s *Server) Handler() (http.Handler, func()) {
	s.begin.Do(func() {
		go s.observer.observe()
		go s.beside(s.config.Promises.Run)
		go s.beside(s.config.Shadows.Run)
	})
	return s.handler, func() { s.end.Do(func() { close(s.streams.closing) }) }
}

// Serve answers on a listener until the context ends, then lets what is under way
// finish. It may be called for several listeners at once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	handler, over := s.Handler()
	defer over()
	h := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnContext: door.WithPeer, ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug)}
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

func (s *Server) getVersion(w http.ResponseWriter, _ *http.Request) error {
	return door.Answer(w, view.Version{Version: s.config.Version, API: "v1"})
}
