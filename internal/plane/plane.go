// Package plane is the live control plane: one goroutine that owns the engine,
// gathers requests and reports into batches, makes each batch and the commit it
// caused durable, and only then answers the requests and hands changes to the
// driver. After a crash it is rebuilt from its journal without asking a strategy,
// and the driver finds running work again.
package plane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
)

// Config is a control plane.
type Config struct {
	Cluster *cluster.Cluster
	// Absent are devices of Cluster that are not there now.
	Absent []plan.DeviceID
	// Strategy decides from the start on; the zero one leaves it to the strategy that
	// decided last, at first catalogue.House.
	Strategy catalogue.Composition
	Seed     uint64
	Policy   engine.Policy
	Journal  *store.Store
	Driver   run.Driver
	Now      func() unit.Time // microseconds since the Unix epoch
	Log      *slog.Logger
	// Queues, where it is given, is the tree of queues to begin with; nil is the one
	// that the journal left.
	Queues *queue.Tree
	// Image, where it is given, is the state to begin with: that of a store other than
	// the journal, which must be empty.
	Image *engine.Image
	// Told, where it is given, hears of every step once it is durable and before its
	// changes are handed to the driver. It is called in the plane's goroutine.
	Told func(s *plan.State, out *engine.Out)
	// SnapshotEvery is the number of batches between snapshots.
	SnapshotEvery int64
}

// Plane is a running control plane.
type Plane struct {
	config Config
	engine *engine.Engine
	decide decider
	jobs   []JobInfo // by job: what the engine does not need to know
	arrays map[string]Array
	stats  Stats

	inbox     chan message
	done      chan struct{}
	sinceSnap int64
	saving    saving
	lost      []engine.Event // of a batch that could not be made durable, to be tried again
	wall      unit.Time      // the clock when it was last read
	ahead     unit.Duration  // of that clock, because it went back
	starting  []engine.Event // what a start, or going back to what is durable, begins with
	follower  Follower       // nil is none
	stepped   Bell
	failed    failures
}

// JobInfo is what the plane keeps of a job beside the engine's state.
type JobInfo struct {
	Spec      *workload.Job
	FirstLoss float64
	LastLoss  float64
	Dossier   []Entry
	Failure   *plan.Failure // of the latest attempt that failed; nil is none
}

// Fail is the verb of an entry that is no decision: an attempt failed by itself.
const Fail = "fail"

// Declined is the verb of one that says that a run does not go by the plan that it was told.
const Declined = "declined"

// Entry is one decision in a job's dossier, or that an attempt failed.
type Entry struct {
	At      unit.Time
	Verb    string
	Attempt int32
	Words   string
	Notes   []plan.Note
}

// Array is where the copies of an array are: their ids follow each other.
type Array struct {
	First plan.JobID
	Count int32
}

// Stats count what the plane did since it started.
type Stats struct {
	Batches, Events, Commits int64
	CommitSec                []float64 // latencies of the latest journal writes
	CommitSumSec             float64   // of all since the start
	Started                  unit.Time
}

// message is a request, a report or a question to the plane's goroutine.
type message struct {
	events []engine.Event // all of them happen, or none
	each   bool           // but those that are refused
	key    string
	reply  chan Reply             // nil for reports
	query  func(v plan.View)      // instead of an event
	enter  func() ([]byte, error) // of a switch: the setting, as things stand when it is accepted
}

// Reply answers a request.
type Reply struct {
	Job plan.JobID
	Err error
}

// ErrClosed is returned once the plane has stopped.
var ErrClosed = errors.New("the control plane has stopped")

// maxBatch bounds how many events become durable together, but for one request that has
// more.
const maxBatch = 512

// Open rebuilds the plane from its journal.
func Open(config Config) (*Plane, error) {
	p := &Plane{config: config, inbox: make(chan message, 4096), done: make(chan struct{})}
	if p.config.SnapshotEvery == 0 {
		p.config.SnapshotEvery = 50_000
	}
	p.stats.Started = config.Now()
	if err := p.recover(); err != nil {
		return nil, fmt.Errorf("rebuilding the control plane from its journal: %w", err)
	}
	p.wall = config.Now()
	p.ahead = max(0, p.engine.View().Now().Sub(p.wall))
	return p, nil
}

// now is the time as the engine is told it. It never goes back: when the clock does,
// time goes on from where it was, at half speed until the clock has caught up.
func (p *Plane) now() unit.Time {
	wall := p.config.Now()
	if passed := wall.Sub(p.wall); passed < 0 {
		p.ahead -= passed
	} else {
		p.ahead -= min(p.ahead, passed/2)
	}
	p.wall = wall
	return wall.Add(p.ahead)
}

// Run serves until the context ends; then it saves a snapshot.
func (p *Plane) Run(ctx context.Context) error {
	defer close(p.done)
	p.config.Driver.Recover(run.Live(p.engine.View(), p.spec), p.Report)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var batch []message // the first has only what a start begins with
	for {
		wake, err := p.step(batch)
		if err != nil {
			return err
		}
		timer.Reset(p.until(wake))
		select {
		case <-ctx.Done():
			p.lastSnapshot()
			return nil
		case m := <-p.inbox:
			batch = p.gather(m, batch[:0])
		case <-timer.C:
			batch = batch[:0]
		}
	}
}

// until is how long to sleep for an instant to come, at most a minute, so that a
// clock that jumps cannot oversleep it for long.
func (p *Plane) until(wake unit.Time) time.Duration {
	d := wake.Sub(p.now())
	if wake == unit.Never || d > unit.Minute {
		d = unit.Minute
	}
	return time.Duration(max(0, d)) * time.Microsecond
}

// gather takes what else is waiting.
func (p *Plane) gather(first message, batch []message) []message {
	batch = append(batch, first)
	for size := max(1, len(first.events)); size < maxBatch; {
		select {
		case m := <-p.inbox:
			batch = append(batch, m)
			size += max(1, len(m.events))
		default:
			return batch
		}
	}
	return batch
}

// step accepts the requests of a batch, lets the engine decide, makes both durable,
// and then answers and orders.
func (p *Plane) step(batch []message) (unit.Time, error) {
	now := p.now()
	events, replies, keys := p.accept(batch, now)
	if len(events) > 0 {
		p.begin()
	}
	if err := p.decide.follow(p.engine, events); err != nil {
		return 0, err
	}
	out := p.engine.Step(now, events)
	if err := p.journal(now, events, &out, keys); err != nil {
		if err := p.undurable(err, events, replies); err != nil {
			return 0, err
		}
		p.answer(batch) // there is still something to look at
		return now, nil
	}
	p.took(now, events, &out)
	p.failed.note(events)
	p.failed.tell(&out, p.engine.View(), p.config.Log)
	// It was the first batch that had these; later ones may be others.
	p.config.Queues, p.config.Strategy, p.config.Image = nil, catalogue.Composition{}, nil
	for _, r := range replies {
		r.to <- r.reply
	}
	if p.config.Told != nil {
		p.config.Told(p.engine.State(), &out)
	}
	p.order(&out)
	if len(events) > 0 {
		p.stepped.Ring()
	}
	p.answer(batch)
	if p.sinceSnap >= p.config.SnapshotEvery {
		p.snapshot()
	}
	return out.Wake, nil
}

// answer answers the questions of a batch.
func (p *Plane) answer(batch []message) {
	for _, m := range batch {
		if m.query != nil {
			m.query(p.engine.View())
			m.reply <- Reply{}
		}
	}
}

type answer struct {
	to    chan Reply
	reply Reply
}

// accept turns messages into events; a request that is refused, or was acknowledged
// before under the same key, is answered without one.
func (p *Plane) accept(batch []message, now unit.Time) (events []engine.Event, replies []answer, keys []store.Key) {
	events = append(append(events, p.starting...), p.lost...)
	p.starting, p.lost = nil, nil
	taken, answered := map[string]bool{}, map[string]plan.JobID{}
	next := plan.JobID(p.engine.View().Jobs())
	for i := range batch {
		m := &batch[i]
		switch {
		case m.query != nil:
			continue
		case m.reply == nil:
			events = append(events, m.events...)
			continue
		}
		r, known := p.known(m.key)
		if job, ok := answered[m.key]; ok {
			r.Job, known = job, true // the same request twice in one batch
		}
		if !known {
			var accepted []engine.Event
			if accepted, r.Err = p.admit(m, events, taken); r.Err == nil {
				if r.Job = accepted[0].Job; accepted[0].Kind == engine.Submit {
					r.Job = next
				}
				for i := range accepted {
					if w := accepted[i].Spec; w != nil {
						next += plan.JobID(max(1, w.Array))
					}
				}
				events = append(events, accepted...)
				if m.key != "" {
					answered[m.key] = r.Job
					keys = append(keys, store.Key{Key: m.key, Value: fmt.Append(nil, r.Job), ExpiresAt: now.Add(unit.Day)})
				}
			}
		}
		replies = append(replies, answer{m.reply, r})
	}
	if len(events) == 0 && p.engine.Due(now) {
		// Time alone changes the state now, and that has to be durable like all else.
		events = append(events, engine.Event{Kind: engine.Tick})
	}
	return events, replies, keys
}

// known looks an idempotency key up.
func (p *Plane) known(key string) (Reply, bool) {
	if key == "" {
		return Reply{}, false
	}
	value, seen, err := p.config.Journal.Seen(key)
	if err != nil || !seen {
		return Reply{}, false
	}
	var r Reply
	if _, err := fmt.Sscan(string(value), &r.Job); err != nil {
		return Reply{}, false
	}
	return r, true
}

// Refusing says why requests are refused that would have to be durable, and nil where they
// are not.
func (p *Plane) Refusing() error { return p.config.Journal.Refusing() }

// undurable deals with a batch that could not be written: nobody is told that it
// happened, the engine goes back to what is durable, and what the driver reported
// is kept for the next batch.
func (p *Plane) undurable(cause error, events []engine.Event, replies []answer) error {
	p.config.Log.Error("the journal cannot be written; nothing of this batch happened", "error", cause)
	for _, r := range replies {
		if r.reply.Err == nil {
			r.reply.Err = fmt.Errorf("not accepted, the journal cannot be written: %w", cause)
		}
		r.to <- r.reply
	}
	for _, e := range events {
		if e.Kind.Reported() {
			p.lost = append(p.lost, e)
		}
	}
	if err := p.recover(); err != nil {
		return errors.Join(cause, err)
	}
	time.Sleep(100 * time.Millisecond) // a full disk does not empty itself at once
	return nil
}

// order hands the ready changes to the driver.
func (p *Plane) order(out *engine.Out) {
	for i := range out.Ready {
		p.config.Driver.Order(run.Carry(p.engine.View(), &out.Ready[i], p.spec))
	}
	for _, ask := range out.Asks {
		if answerer := p.engine.Answerer(); answerer != nil {
			go p.solve(answerer, ask)
		}
	}
}

// solve lets a question be answered beside the engine. One that cannot be is answered
// with nothing: the strategy goes on with what it has.
func (p *Plane) solve(answerer strategy.Answerer, ask strategy.Ask) {
	reply, err := answerer.Answer(ask.Question)
	if err != nil {
		p.config.Log.Error("a question of the strategy was not answered", "asker", ask.Asker, "err", err)
	}
	p.Report(engine.Event{Kind: engine.Answered, Answer: strategy.Answer{Asker: ask.Asker, Reply: reply}})
}

func (p *Plane) spec(id plan.JobID) *workload.Job { return p.jobs[id].Spec }
