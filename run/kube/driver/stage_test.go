package driver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"log/slog"
	"testing"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/apitest"
	"github.com/musterdl/muster/schedule"
)

// stage plays a Core and an engine in a World, step by step in one goroutine: what is
// decided, and when, is a pure function of the script.
type stage struct {
	t      testing.TB
	w      *apitest.World
	client *apitest.Client
	core   *Core
	engine *engine.Engine
	sched  func() schedule.Scheduler
	wake   unit.Time
	again  []Task
	sum    hash.Hash // of all commits
	lines  []string
	failed map[string]plan.Failure // by job: as the engine was told last
}

func composed(t testing.TB, text string) func() schedule.Scheduler {
	c, err := catalogue.Parse("test", text)
	if err != nil {
		t.Fatal(err)
	}
	return func() schedule.Scheduler {
		b, err := c.Build(catalogue.Env{Seed: 1}, true)
		if err != nil {
			t.Fatal(err)
		}
		return b.Scheduler
	}
}

func newStage(t testing.TB, w *apitest.World, sched func() schedule.Scheduler) *stage {
	s := &stage{t: t, w: w, client: w.Client, sched: sched, sum: sha256.New(), wake: unit.Never, failed: map[string]plan.Failure{}}
	s.begin()
	return s
}

// reach makes a call until it is answered.
func (s *stage) reach(call func() error) {
	for err := call(); err != nil; err = call() {
		if !api.IsTransient(err) {
			s.t.Fatal(err)
		}
		s.w.Advance(time.Second)
	}
}

func (s *stage) now() unit.Time { return unit.Time(s.w.Now().UnixMicro()) }

// begin puts the state together from what the World has: at first from nothing, after
// a crash from its objects.
func (s *stage) begin() {
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(s.t.Output(), nil))
	}
	s.core = New(Config{Scheduler: "muster", Pods: s.client, Owners: s.client, Records: s.client, Ledgers: s.client, Voice: s.client,
		Fence: "1/test", Now: s.now, Log: log})
	s.again = nil
	ctx := context.Background()
	var jobs []api.Job
	var ledger api.Ledger
	var found bool
	s.reach(func() (err error) { jobs, err = s.client.ListJobs(ctx); return err })
	s.reach(func() (err error) { ledger, found, err = s.client.GetLedger(ctx, "muster"); return err })
	for { // while the server is away nothing is listed
		changes := s.client.Next()
		s.core.Take(changes)
		if len(changes) > 0 {
			break
		}
		s.w.Advance(time.Second)
		s.client.Restart()
	}
	b, err := s.core.Begin(ledger, found, jobs)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range b.Lost {
		s.t.Logf("%v: the run of %s could not be found again", s.w.Since(), name)
	}
	state, err := plan.Load(b.Image.State)
	if err != nil {
		s.t.Fatal(err)
	}
	s.engine = engine.Restore(state, s.sched(), engine.DefaultPolicy())
	s.step(engine.Event{Kind: engine.Assembled, Image: b.Image})
	s.settle()
}

// crash forgets everything but the objects.
func (s *stage) crash() {
	s.client.Restart()
	s.begin()
}

func (s *stage) spec(id plan.JobID) *workload.Job {
	if e := s.core.roster.byJob[id]; e != nil {
		return e.spec
	}
	return &workload.Job{Name: "gone", Resources: workload.Resources{Gang: 1, Share: unit.Whole}}
}

// settle lets everything happen that follows at this instant.
func (s *stage) settle() {
	for range 1000 {
		events := s.core.Events()
		accepted := events[:0]
		for _, e := range events {
			if e.Kind == engine.Submit {
				if err := s.engine.Accept(&e); err != nil {
					s.core.Refused(e.Spec.Name, err)
					continue
				}
			}
			accepted = append(accepted, e)
		}
		if len(accepted) > 0 || s.engine.Due(s.now()) {
			s.step(accepted...)
		}
		tasks := append(s.core.Tasks(), s.core.Keep(1<<20)...)
		for _, t := range tasks {
			s.do(t)
		}
		if len(accepted) == 0 && len(tasks) == 0 {
			return
		}
	}
	s.t.Fatal("it does not come to rest")
}

// do makes a call; one of which nobody knows how it went is made again later.
func (s *stage) do(t Task) {
	err := t.Do(context.Background())
	if api.IsTransient(err) {
		s.again = append(s.again, t)
		return
	}
	t.Then(err)
}

func (s *stage) step(events ...engine.Event) {
	for i := range events {
		if e := &events[i]; e.Failure != nil {
			f := *e.Failure
			f.Class = e.Class
			s.failed[s.engine.View().Name(e.Job)] = f
		}
	}
	out := s.engine.Step(s.now(), events)
	s.wake = out.Wake
	if err := s.engine.State().Check(); err != nil {
		s.t.Fatalf("%v: %v", s.w.Since(), err)
	}
	if out.Commit != nil {
		line := out.Commit.AppendJSON(nil, s.engine.View())
		s.sum.Write(line)
		s.lines = append(s.lines, string(line))
	}
	s.core.Told(Gather(s.engine.State(), &out, true))
	orders := make([]run.Order, 0, len(out.Ready))
	for i := range out.Ready {
		orders = append(orders, run.Carry(s.engine.View(), &out.Ready[i], s.spec))
	}
	for _, o := range orders {
		s.core.Order(o)
	}
}

// next plays what there is at this instant: it takes in what changed, makes calls
// again, and settles, until nothing more changes.
func (s *stage) next() {
	for s.once() > 0 {
	}
}

// once plays what one look at the API server tells.
func (s *stage) once() int {
	changes := s.client.Next()
	s.core.Take(changes)
	s.core.Tick()
	again := s.again
	s.again = nil
	for _, t := range again {
		s.do(t)
	}
	s.settle()
	if s.core.Broken() != "" {
		s.t.Logf("%v: beginning anew: %s", s.w.Since(), s.core.Broken())
		s.crash()
	}
	return len(changes)
}

// until plays for a while, at every instant at which something is due.
func (s *stage) until(end time.Duration) {
	for s.w.Since() < end {
		s.one(end)
	}
}

// one plays the present instant and goes to the next at which something is due.
func (s *stage) one(end time.Duration) {
	s.next()
	at, due := s.w.Due()
	if wake := time.UnixMicro(int64(s.wake)); s.wake != unit.Never && (!due || wake.Before(at)) {
		at, due = wake, true
	}
	if len(s.again) > 0 || !due {
		if soon := s.w.Now().Add(time.Second); !due || soon.Before(at) {
			at = soon
		}
	}
	step := at.Sub(s.w.Now())
	s.w.Advance(min(max(step, 0), end-s.w.Since()))
}

func (s *stage) hash() string { return hex.EncodeToString(s.sum.Sum(nil)) }

func (s *stage) phases() string {
	text := ""
	v := s.engine.View()
	for id := range plan.JobID(v.Jobs()) {
		if v.Name(id) != "" {
			text += fmt.Sprintf("%s %s\n", v.Name(id), v.Job(id).Phase)
		}
	}
	return text
}
