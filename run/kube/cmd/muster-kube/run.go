package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/release"
	"github.com/musterdl/muster/internal/server"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/driver"
	"github.com/musterdl/muster/run/kube/filter"
	"github.com/musterdl/muster/run/kube/gang"
	"github.com/musterdl/muster/run/kube/inventory"
	"github.com/musterdl/muster/run/kube/lead"
)

// run schedules until the context ends, leading or waiting to lead.
func (f *flags) run(ctx context.Context, log *slog.Logger) error {
	config, err := f.config()
	if err != nil {
		return err
	}
	strategy, err := f.composition()
	if err != nil {
		return err
	}
	rules, err := f.rules()
	if err != nil {
		return err
	}
	s := &scheduler{flags: f, config: config, strategy: strategy, rules: rules, log: log, front: newFront(f.profiling)}
	if f.data == "" {
		if f.data, err = os.MkdirTemp("", "muster-kube-"); err != nil {
			return err
		}
		defer os.RemoveAll(f.data)
	}
	if err := s.front.listen(ctx, f.listen, log); err != nil {
		return err
	}
	if f.advise {
		return s.advise(ctx)
	}
	if !f.elect {
		fence, err := s.newest(ctx)
		if err != nil {
			return err
		}
		return s.term(ctx, lead.Alone(lead.Fence{Number: fence.Number + 1, Holder: holder()}))
	}
	leases, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return lead.Run(ctx, lead.Options{Leases: leases.CoordinationV1(), Namespace: f.electNamespace, Name: f.electName, Holder: holder(),
		Newest: s.newest, Timing: lead.DefaultTiming(), Log: log,
		Seen: func(who string) { log.Info("the leader", "is", who) }}, s.term)
}

func holder() string {
	name, err := os.Hostname()
	if err != nil {
		return "muster"
	}
	return name
}

func (f *flags) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("how to reach the API server: %w: give --kubeconfig, or run in a pod", err)
	}
	config.UserAgent = "muster-kube/" + release.Version
	return config, nil
}

func (f *flags) composition() (c catalogue.Composition, err error) {
	if f.strategy == "" {
		return c, nil
	}
	if c, err = catalogue.ResolveLive(f.strategy); err != nil {
		return c, fmt.Errorf("--strategy: %w", err)
	}
	if f.advise {
		return c, nil // whoever only advises need not be able to carry it out
	}
	return c, c.Refuse(run.Kubernetes)
}

func (f *flags) rules() (r inventory.Rules, err error) {
	for _, text := range f.resources {
		resource, err := inventory.ParseResource(text)
		if err != nil {
			return r, fmt.Errorf("--device-resource: %w", err)
		}
		r.Resources = append(r.Resources, resource)
	}
	return r, nil
}

// scheduler is one process's part in scheduling.
type scheduler struct {
	*flags
	config   *rest.Config
	strategy catalogue.Composition
	rules    inventory.Rules
	log      *slog.Logger
	front    *front
}

func (s *scheduler) client() (*api.Client, error) {
	var owners []schema.GroupVersionResource
	for _, k := range gang.Kinds() {
		gv, err := schema.ParseGroupVersion(k.APIVersion)
		if err != nil {
			return nil, err
		}
		owners = append(owners, gv.WithResource(k.Resource))
	}
	return api.New(s.config, api.Options{Name: s.scheduler, QPS: s.qps, Burst: s.burst, Owners: owners, Log: s.log})
}

// newest is the newest fence that a leader has put into a record.
func (s *scheduler) newest(ctx context.Context) (newest lead.Fence, err error) {
	c, err := s.client()
	if err != nil {
		return newest, err
	}
	l, found, err := c.GetLedger(ctx, s.scheduler)
	if err != nil || !found {
		return newest, err
	}
	return lead.ParseFence(l.Status.Fence)
}

// term schedules for as long as this process leads. Where the state has to be put
// together anew it begins again.
func (s *scheduler) term(ctx context.Context, term lead.Term) error {
	for {
		err := s.once(ctx, term)
		if !errors.Is(err, driver.ErrAnew) || ctx.Err() != nil {
			return err
		}
		s.log.Info("beginning anew", "why", err)
	}
}

// once schedules from the objects that there are until it cannot go on.
func (s *scheduler) once(ctx context.Context, term lead.Term) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s = s.within(term)
	client, err := s.client()
	if err != nil {
		return err
	}
	d, err := s.driver(ctx, client, term)
	if err != nil {
		return err
	}
	begin, err := d.Begin(ctx, client)
	if err != nil {
		return err
	}
	for _, name := range begin.Lost {
		s.log.Warn("a run could not be found again", "job", name)
	}
	journal, err := s.journal()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	queues, err := s.tree(begin.Cluster)
	if err != nil {
		return err
	}
	p, err := plane.Open(plane.Config{Cluster: begin.Cluster, Image: begin.Image, Strategy: s.strategy, Seed: 1, Policy: engine.DefaultPolicy(),
		Journal: journal, Driver: d, Told: d.Told, Now: now, Log: s.log, Queues: queues})
	if err != nil {
		return err
	}
	s.log.Info("scheduling", "nodes", len(begin.Cluster.Nodes), "devices", len(begin.Cluster.Devices), "fence", term.Fence.String())
	return s.drive(ctx, cancel, p, d)
}

// drive runs the plane, the driver and the API side by side; the first to end ends the
// others.
func (s *scheduler) drive(ctx context.Context, cancel context.CancelFunc, p *plane.Plane, d *driver.Driver) error {
	srv := server.New(server.Config{Plane: p, Version: release.Version, Log: s.log, OpenMetrics: true,
		Collectors: d.Collectors(), Loopback: access.Operator, // who may forward a port to the pod
		Logs: func(string, int32, int32) string { return "" }})
	over := s.front.lead(srv)
	defer over()
	errs := make(chan error, 2)
	var all sync.WaitGroup
	for _, run := range []func() error{func() error { return p.Run(ctx) }, func() error { return d.Run(ctx, p) }} {
		all.Go(func() {
			defer cancel()
			errs <- run()
		})
	}
	all.Wait()
	close(errs)
	var first error
	for err := range errs {
		first = errors.Join(first, err)
	}
	return first
}

// filters are what the driver asks about the constraints of Kubernetes.
func (s *scheduler) filters(ctx context.Context) (*filter.Host, error) {
	clients, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	host, err := filter.New(ctx, filter.Options{Client: clients, Informers: factory,
		OwnsResource: s.rules.Counts, OwnsDriver: s.rules.CountsDriver})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if err := host.WaitForSync(ctx); err != nil {
		return nil, fmt.Errorf("listing what constraints are about: %w", err)
	}
	return host, nil
}

// driver makes the driver with the filters that it asks.
func (s *scheduler) driver(ctx context.Context, client *api.Client, term lead.Term) (*driver.Driver, error) {
	host, err := s.filters(ctx)
	if err != nil {
		return nil, err
	}
	core := driver.New(driver.Config{Scheduler: s.scheduler, Rules: s.rules, Filter: host, Pods: client, Owners: client, Records: client,
		Ledgers: client, Voice: client, Fence: term.Fence.String(), Now: now, Log: s.log})
	return driver.NewDriver(core, driver.Options{Valid: func() bool { return term.Valid(time.Now()) }}), nil
}

// tree is the tree of queues that was asked for, nil if none was.
func (s *scheduler) tree(c *cluster.Cluster) (*queue.Tree, error) {
	return spec.QueuesFlag(s.queues, c)
}

// journal opens an empty journal, beside the one before, which is kept for a look.
func (s *scheduler) journal() (*store.Store, error) {
	dir := filepath.Join(s.data, "journal")
	if err := os.RemoveAll(dir + ".before"); err != nil {
		return nil, err
	}
	if err := os.Rename(dir, dir+".before"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(s.data, 0o711); err != nil {
		return nil, err
	}
	return store.Open(dir, store.Options{Now: now})
}

func now() unit.Time { return unit.Time(time.Now().UnixMicro()) }

// front answers from the start on: that the process is well, and, while it leads, all
// that the API has.
type front struct {
	handler   atomic.Pointer[http.Handler]
	profiling bool
}

func newFront(profiling bool) *front { return &front{profiling: profiling} }

// ServeHTTP answers with the handler there is by now.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.profiling && strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
		http.DefaultServeMux.ServeHTTP(w, r)
		return
	}
	if h := f.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	switch r.URL.Path {
	case "/healthz", "/readyz":
		fmt.Fprintln(w, "ok: waiting to lead")
	default:
		http.Error(w, "this process does not lead: ask the one that does", http.StatusServiceUnavailable)
	}
}

// show has a handler answer from now on.
func (f *front) show(h http.Handler) { f.handler.Store(&h) }

func (f *front) lead(s *server.Server) (over func()) {
	h, end := s.Handler()
	f.show(h)
	return func() {
		f.handler.Store(nil)
		end()
	}
}

func (f *front) listen(ctx context.Context, address string, log *slog.Logger) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", address, err)
	}
	h := &http.Server{Handler: f, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ConnContext: door.WithPeer,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	context.AfterFunc(ctx, func() { _ = h.Close() }) // what is under way ends with the process
	go func() {
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serving the API", "error", err)
		}
	}()
	log.Info("listening", "address", l.Addr().String())
	return nil
}
