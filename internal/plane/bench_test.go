package plane

import (
	"bytes"
	"cmp"
	"io"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
)

// failer is a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// member is one run in nature, which goes on whatever becomes of the plane.
type member struct {
	job     plan.JobID
	attempt int32
}

// nature is a driver in which nothing happens by itself: the test says what does.
type nature struct {
	t     failer
	alive map[member]plan.Verb // by run: the last order
	told  int                  // orders
}

// Recover checks that the plane knows of every run that is alive.
func (n *nature) Recover(live []run.Order, _ func(engine.Event)) {
	known := map[member]bool{}
	for _, o := range live {
		m := member{o.Job, o.Attempt}
		known[m] = true
		if _, ok := n.alive[m]; !ok && o.Status == plan.Starting {
			n.alive[m] = plan.Start // the plane died before it gave the order
		}
	}
	for m := range n.alive {
		if !known[m] {
			n.t.Fatalf("run %d.%d is alive and the plane does not say so", m.job, m.attempt)
		}
	}
}

// Order notes what was ordered.
func (n *nature) Order(o run.Order) {
	n.told++
	m := member{o.Job, o.Attempt}
	if _, ok := n.alive[m]; ok || o.Verb == plan.Start {
		n.alive[m] = o.Verb
	}
}

// members lists what is alive, in order.
func (n *nature) members() []member {
	return slices.SortedFunc(maps.Keys(n.alive), func(a, b member) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.attempt, b.attempt))
	})
}

// bench is a plane over nature that is stepped by hand, with a clock of its own.
type bench struct {
	t       failer
	journal *store.Store
	nature  *nature
	clock   unit.Time
	config  Config
	plane   *Plane
	wake    unit.Time
}

const epoch = unit.Time(1_700_000_000_000_000)

func newBench(t failer, dir, strategy string) *bench {
	t.Helper()
	w := &bench{t: t, clock: epoch, nature: &nature{t: t, alive: map[member]plan.Verb{}}}
	w.open(dir)
	w.config = Config{Cluster: devices(2, 2), Seed: 1, Policy: engine.DefaultPolicy(), Driver: w.nature,
		Now: func() unit.Time { return w.clock }, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), SnapshotEvery: 1 << 40}
	w.strategy(strategy)
	w.start()
	return w
}

func (w *bench) open(dir string) {
	w.t.Helper()
	var err error
	if w.journal, err = store.Open(dir, store.Options{Now: func() unit.Time { return w.clock }}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *bench) strategy(name string) {
	w.t.Helper()
	var err error
	if w.config.Strategy, err = catalogue.Resolve(name); err != nil {
		w.t.Fatal(err)
	}
}

// devices is a cluster of so many nodes.
func devices(nodes, perNode int) *cluster.Cluster {
	return cluster.Uniform("lab", nodes, perNode, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16)
}

// start lets a new plane take over the journal, as Run does.
func (w *bench) start() {
	w.t.Helper()
	w.plane = w.rebuilt()
	w.nature.Recover(run.Live(w.plane.engine.View(), w.plane.spec), nil)
	w.step()
}

// rebuilt is a plane that has read the journal and done nothing yet.
func (w *bench) rebuilt() *Plane {
	w.t.Helper()
	w.config.Journal = w.journal
	p, err := Open(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// step lets the plane take messages in.
func (w *bench) step(batch ...message) {
	w.t.Helper()
	wake, err := w.plane.step(batch)
	if err != nil {
		w.t.Fatal(err)
	}
	w.wake = wake
}

// report feeds events of the driver.
func (w *bench) report(events ...engine.Event) {
	w.t.Helper()
	var batch []message
	for _, e := range events {
		batch = append(batch, message{events: []engine.Event{e}})
	}
	w.step(batch...)
}

// ask makes one request in a step of its own.
func (w *bench) ask(e engine.Event, key string) Reply {
	w.t.Helper()
	m := request(e, key)
	w.step(m)
	return <-m.reply
}

func request(e engine.Event, key string) message {
	return message{events: []engine.Event{e}, key: key, reply: make(chan Reply, 1)}
}

func submission(name string, gang int32) engine.Event {
	return engine.Event{Kind: engine.Submit, Spec: &workload.Job{Name: name, Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole},
		Program: workload.Program{Command: []string{"true"}}}}
}

// submit submits a job that must be accepted.
func (w *bench) submit(name string, gang int32) plan.JobID {
	w.t.Helper()
	r := w.ask(submission(name, gang), "")
	if r.Err != nil {
		w.t.Fatal(r.Err)
	}
	return r.Job
}

// settle confirms everything that was ordered, until nothing more is.
func (w *bench) settle() {
	w.t.Helper()
	for {
		told := w.nature.told
		for _, m := range w.nature.members() {
			e := engine.Event{Job: m.job, Attempt: m.attempt}
			switch w.nature.alive[m] {
			case plan.Start:
				e.Kind = engine.Started
			case plan.Stop:
				e.Kind = engine.Stopped
				delete(w.nature.alive, m)
			}
			w.report(e)
		}
		if w.nature.told == told {
			return
		}
	}
}

// exit lets a run end by itself.
func (w *bench) exit(m member, class plan.FailureClass) {
	w.t.Helper()
	delete(w.nature.alive, m)
	w.report(engine.Event{Kind: engine.Exited, Job: m.job, Attempt: m.attempt, Ending: engine.Ending{Class: class}})
}

// finishAll lets every job run to its end.
func (w *bench) finishAll() {
	w.t.Helper()
	for range 1000 {
		w.settle()
		v := w.plane.engine.View()
		over := true
		for id := range plan.JobID(v.Jobs()) {
			over = over && v.Job(id).Phase.Over()
		}
		if over {
			return
		}
		for _, m := range w.nature.members() {
			w.exit(m, plan.NoFailure)
		}
		w.clock = max(w.clock, min(w.wake, w.clock.Add(unit.Hour)))
		w.step()
	}
	v := w.plane.engine.View()
	for id := range plan.JobID(v.Jobs()) {
		if j := v.Job(id); !j.Phase.Over() {
			w.t.Fatalf("job %d does not end: it is %s, attempt %d, %d blockers: %s", id, j.Phase, j.Attempt, j.Blockers, j.Reason.Words(v))
		}
	}
}

// phase is where a job stands.
func (w *bench) phase(id plan.JobID) plan.Phase { return w.plane.engine.View().Job(id).Phase }

// state is the state as a snapshot would keep it. Time also passes when nothing
// happens, which no journal records, and whether a job that is over was ever looked
// at means nothing.
func state(t failer, p *Plane) []byte {
	t.Helper()
	c := p.engine.State().Copy()
	c.Now = 0
	for i := range c.Jobs {
		c.Jobs[i].Admitted = c.Jobs[i].Admitted && !c.Jobs[i].Phase.Over()
	}
	var b bytes.Buffer
	if err := c.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// verify decides the journal again.
func (w *bench) verify() Verdict {
	w.t.Helper()
	found, err := Verify(w.journal)
	if err != nil {
		w.t.Fatal(err)
	}
	if found.Differs != 0 {
		w.t.Fatalf("batch %d is decided otherwise:\n%s\n%s", found.Differs, found.Recorded, found.Decided)
	}
	return found
}

func (w *bench) close() {
	w.t.Helper()
	if err := w.journal.Close(); err != nil {
		w.t.Fatal(err)
	}
}

var _ failer = (*testing.T)(nil)
