package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/stored"
)

// Driver runs a Core against an API server and a control plane: what the server tells
// goes into the Core and from there to the plane, and the plane's orders go the other
// way.
type Driver struct {
	core    *Core
	options Options

	mu    sync.Mutex
	inbox []func()
	wake  chan struct{}

	metrics *metrics

	lanes  [Lanes]lane
	plane  *plane.Plane
	begun  bool
	state  *plan.State // the plane's: only in its goroutine
	stale  atomic.Bool // the ledger lags behind it
	rested time.Time   // when the ledger was last gathered
	idle   time.Time   // when records of no urgency were last written
}

// Options are how much a Driver does at once.
type Options struct {
	// Workers are the calls under way at once in each lane.
	Workers [Lanes]int
	// LedgerEvery is how often the ledger is written at most, Idle how long a record
	// that nothing waits for may be late behind bindings.
	LedgerEvery, Idle time.Duration
	// Valid reports whether this process may still write.
	Valid func() bool
}

// lane is tasks that wait for a worker.
type lane struct {
	mu      sync.Mutex
	tasks   []Task
	more    *sync.Cond
	running int
	closed  bool
}

var _ run.Driver = (*Driver)(nil)

// NewDriver returns a Driver around a Core.
func NewDriver(core *Core, o Options) *Driver {
	for i, n := range [Lanes]int{32, 8, 4} {
		if o.Workers[i] == 0 {
			o.Workers[i] = n
		}
	}
	if o.LedgerEvery == 0 {
		o.LedgerEvery = time.Second
	}
	if o.Idle == 0 {
		o.Idle = 5 * time.Second
	}
	if o.Valid == nil {
		o.Valid = func() bool { return true }
	}
	d := &Driver{core: core, options: o, wake: make(chan struct{}, 1), metrics: newMetrics()}
	for i := range d.lanes {
		d.lanes[i].more = sync.NewCond(&d.lanes[i].mu)
	}
	return d
}

// Begin watches, lists what there is, and puts the state together.
func (d *Driver) Begin(ctx context.Context, w api.Watcher) (Beginning, error) {
	l, found, err := d.core.config.Ledgers.GetLedger(ctx, d.core.config.Scheduler)
	if err != nil {
		return Beginning{}, fmt.Errorf("reading the ledger: %w", err)
	}
	jobs, err := d.core.config.Records.ListJobs(ctx)
	if err != nil {
		return Beginning{}, fmt.Errorf("reading the records of jobs: %w", err)
	}
	synced, err := w.Watch(ctx, func(changes []api.Change) { d.post(func() { d.core.Take(changes) }) })
	if err != nil {
		return Beginning{}, fmt.Errorf("watching the cluster: %w", err)
	}
	select {
	case <-synced:
	case <-ctx.Done():
		return Beginning{}, ctx.Err()
	}
	d.drain()
	b, err := d.core.Begin(l, found, jobs)
	if err != nil {
		return b, err
	}
	// From here on whoever led before finds a newer fence, and stops.
	t := d.core.keeper.writeOfLedger()
	err = d.try(ctx, &t)
	t.Then(err)
	if err != nil {
		return b, fmt.Errorf("taking the ledger over: %w", err)
	}
	return b, nil
}

// post lets something happen in the goroutine of the Core.
func (d *Driver) post(f func()) {
	d.mu.Lock()
	d.inbox = append(d.inbox, f)
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *Driver) drain() {
	d.mu.Lock()
	list := d.inbox
	d.inbox = nil
	d.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// Recover implements run.Driver.
func (d *Driver) Recover([]run.Order, func(engine.Event)) {
	d.post(func() { d.begun = true }) // the Core has found them when it put the state together
}

// Can implements run.Able: Kubernetes starts and stops pods, and nothing else.
func (d *Driver) Can() strategy.Ability { return run.Kubernetes }

// Order implements run.Driver.
func (d *Driver) Order(o run.Order) { d.post(func() { d.core.Order(o) }) }

// Told is the plane's hook.
func (d *Driver) Told(s *plan.State, out *engine.Out) {
	d.state = s
	if len(out.Touched) > 0 {
		d.stale.Store(true)
		n := Gather(s, out, false)
		d.post(func() { d.core.Told(n) })
	}
}

// ErrAnew says that the state has to be put together anew: the caller begins again
// from the objects.
var ErrAnew = errors.New("the state has to be put together anew")

// Run drives until the context ends, or something makes it impossible to go on.
func (d *Driver) Run(ctx context.Context, p *plane.Plane) error {
	d.plane = p
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer d.close()
	defer cancel()
	for i := range d.lanes {
		for range d.options.Workers[i] {
			workers.Go(func() { d.work(ctx, &d.lanes[i]) })
		}
	}
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		d.drain()
		if d.begun {
			if err := d.exchange(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
		case <-ticker.C:
			d.core.Tick()
		}
	}
}

// exchange tells the plane what is new and hands out what is to be done.
func (d *Driver) exchange(ctx context.Context) error {
	events := d.core.Events()
	for len(events) > 0 {
		// Submissions are requests, which may be refused; between them go reports.
		n := 0
		for n < len(events) && events[n].Kind == engine.Submit {
			n++
		}
		if n == 0 {
			d.plane.Report(events[0])
			events = events[1:]
			continue
		}
		for i, r := range d.plane.Requests(ctx, events[:n]) {
			if r.Err != nil && ctx.Err() == nil {
				d.core.Refused(events[i].Spec.Name, r.Err)
			}
		}
		events = events[n:]
	}
	d.hand(d.core.Tasks())
	for _, waited := range d.core.Bound() {
		d.metrics.bound.Observe(waited.Seconds())
	}
	for i := range d.lanes {
		d.metrics.tasks.WithLabelValues(laneNames[i]).Set(float64(d.lanes[i].load()))
	}
	d.hand(d.core.Keep(d.others()))
	if time.Since(d.rested) >= d.options.LedgerEvery && d.stale.Swap(false) {
		d.rested = time.Now()
		if err := d.plane.Query(ctx, func(plan.View) { d.rest() }); err != nil && ctx.Err() == nil {
			return fmt.Errorf("reading the state: %w", err)
		}
	}
	if why := d.core.Broken(); why != "" {
		return fmt.Errorf("%w: %s", ErrAnew, why)
	}
	return nil
}

// rest gathers what the ledger tells, in the plane's goroutine.
func (d *Driver) rest() {
	r := copyRest(stored.RestOf(d.state))
	strategy := d.plane.StrategyText()
	d.post(func() { d.core.keeper.keepLedger(&r, strategy) })
}

// others is how many records of no urgency may be written now: they wait for bindings,
// but not for ever.
func (d *Driver) others() int {
	if d.lanes[Binding].load() > 0 && time.Since(d.idle) < d.options.Idle || d.lanes[Keeping].load() > d.options.Workers[Keeping] {
		return 0
	}
	d.idle = time.Now()
	return 4 * d.options.Workers[Keeping]
}

func (d *Driver) hand(tasks []Task) {
	for _, t := range tasks {
		l := &d.lanes[t.Lane]
		l.mu.Lock()
		l.tasks = append(l.tasks, t)
		l.mu.Unlock()
		l.more.Signal()
	}
}

func (l *lane) load() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tasks) + l.running
}

func (d *Driver) close() {
	for i := range d.lanes {
		d.lanes[i].mu.Lock()
		d.lanes[i].closed = true
		d.lanes[i].mu.Unlock()
		d.lanes[i].more.Broadcast()
	}
}

// work makes calls of one lane.
func (d *Driver) work(ctx context.Context, l *lane) {
	for {
		l.mu.Lock()
		for len(l.tasks) == 0 && !l.closed {
			l.more.Wait()
		}
		if l.closed {
			l.mu.Unlock()
			return
		}
		t := l.tasks[0]
		l.tasks = l.tasks[1:]
		l.running++
		l.mu.Unlock()
		err := d.try(ctx, &t)
		l.mu.Lock()
		l.running--
		l.mu.Unlock()
		if ctx.Err() == nil {
			d.post(func() { t.Then(err) })
		}
	}
}

// try makes a call until it is known how it went.
func (d *Driver) try(ctx context.Context, t *Task) error {
	var refused time.Time // since when this account has no rights
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		if !d.options.Valid() {
			return ErrDeposed // the term is over: whoever leads now does it
		}
		err := t.Do(ctx)
		d.metrics.called(t.Lane, err)
		if !noRights(err) {
			refused = time.Time{}
		} else if refused.IsZero() {
			refused = time.Now()
		}
		if err == nil || ctx.Err() != nil || !api.IsTransient(err) && time.Since(refused) >= rightsWithin {
			return err
		}
		if t.Lane == Telling && wait > time.Second {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// rightsWithin is how long an API server that was started just now may take until it
// knows who has which rights; it refuses everybody until then.
const rightsWithin = 15 * time.Second

// noRights reports whether an error says that this account may not do such a thing at
// all. What an admission refuses is a matter of the object and is not meant.
func noRights(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), `" cannot `)
}
