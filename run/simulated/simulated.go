// Package simulated is step 6 against simulated nature: it feeds the engine with
// events in the order of their instants, carries out its changes with delays of
// the world's own, and keeps the books. Preemption takes time here as it does
// live; nothing about scheduling is decided here.
package simulated

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/mechanism/bound"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/schedule"
)

// Source yields jobs with their truths in order of submission, io.EOF at the end.
type Source interface {
	Next() (workload.Job, workload.Truth, error)
}

// Config is one simulation.
type Config struct {
	Cluster *cluster.Cluster // of an idle beginning
	Beginning
	// Later are what happens besides jobs and their runs, in order: requests of people,
	// losses that are known beforehand. A job is submitted by Jobs alone.
	Later []Later
	Jobs  Source
	// Expected is about how many jobs will come, where that is known: tables are made as long at once.
	Expected  int
	Scheduler schedule.Scheduler
	Strategy  string // what errors call the Scheduler; empty says only what it is
	Policy    engine.Policy
	World     world.Config
	Breaks    Breaks
	// TellTruth lets the estimators oracle and noisy see true durations.
	TellTruth bool
	// Prices are what things cost; those of checkpoints are for jobs that declare none,
	// where the beginning is idle.
	Prices Prices
	// ObserveEvery is how often running jobs report their progress, and those that have a
	// curve their loss; 0 is never.
	ObserveEvery unit.Duration
	// Says is the part of its work that a job reports as done where so much is, 0..1; nil tells the truth.
	Says func(job plan.JobID, done float64) float64
	// Until ends the history; jobs still alive are censored. 0 runs to the last end.
	Until unit.Time

	Collector *report.Collector
	Decisions io.Writer // canonical commits, nil for none
	Hooks
	Check bool // prove the state legal after every step, and that no commit ends a run in vain
	// NoBounds leaves out the lower bounds of the average JCT: on months of work they take as
	// long to compute as a simple strategy does.
	NoBounds bool
}

// Beginning is what a simulation goes on from in place of an idle cluster.
type Beginning struct {
	// From is the State, which belongs to the simulation from then on. At is the instant
	// at which it goes on, by default the State's own; Known is the truth about each of
	// its jobs.
	From  *plan.State
	At    unit.Time
	Known func(v plan.View, job plan.JobID) world.Known
	// First are fed at the first instant, before anything else.
	First []engine.Event
}

// Hooks are called after every step, where they are set.
type Hooks struct {
	// Step gets what the engine was fed and what it made of it, as a journal would; whoever
	// keeps any of it copies it, with the jobs that events point to.
	Step     func(at unit.Time, events []engine.Event, out *engine.Out, v plan.View)
	Commit   func(v plan.View, c *plan.Commit)
	Progress func(now unit.Time, submitted, ended int64)
	// Span gets what runs did on neighbouring devices, when it is over.
	Span func(s report.Span)
	// React is what people do about what they see, at the same instant.
	React func(v plan.View) []engine.Event
}

// Later is an event whose instant is known beforehand.
type Later struct {
	At    unit.Time
	Event engine.Event
}

// Simulation is one under way.
type Simulation struct {
	config Config
	wake   unit.Time
	engine *engine.Engine
	world  *world.World
	queue  queue
	next   arrival
	runs   []live // by slot
	wait   []bool // by job: counted as waiting
	tally
	hash   hash.Hash
	line   []byte
	ledger ledger
	rigid  []bound.Job
	spent  []unit.Duration // by job: running time, lost work included
	inbox
	chance map[uint64]*rand.Rand
	machines
	barren barren
}

// tally counts jobs and events.
type tally struct {
	waiting   int
	submitted int64
	ended     int64
	before    int64 // of those that ended, before it began
	events    int64
}

// inbox is what the engine is still to be told.
type inbox struct {
	now     []engine.Event // of this instant
	fed     []engine.Event // what it was told last, to be used again
	specs   []workload.Job // that those of this instant point to
	late    []engine.Event // what the driver before was about to report
	answers []engine.Event // by question that took time
}

// machines is how nodes and devices truly are.
type machines struct {
	down   []bool  // by node
	broken []bool  // by device
	cut    []int16 // by device
}

// Run simulates to the end, or for as long as somebody waits for it, and returns the result,
// with the fields that only the caller knows (names, load, effort) left empty.
func Run(ctx context.Context, config Config) (report.Result, error) {
	s, err := New(config)
	for more := true; more && err == nil; {
		if more, err = s.Advance(); err == nil {
			err = ctx.Err()
		}
	}
	if err != nil {
		return report.Result{}, err
	}
	return s.Result()
}

// New begins a simulation: with an idle cluster, or from a State.
func New(config Config) (*Simulation, error) {
	submits := func(e engine.Event) bool { return e.Kind == engine.Submit }
	if slices.ContainsFunc(config.First, submits) || slices.ContainsFunc(config.Later, func(l Later) bool { return submits(l.Event) }) {
		return nil, errors.New("a job is submitted by the source of jobs, not by an event")
	}
	config.World.Switch = config.Prices.Switch
	s := &Simulation{config: config, hash: sha256.New(), wake: unit.Never}
	if s.config.Collector == nil {
		s.config.Collector = report.NewCollector(report.Limits{})
	}
	if config.From == nil {
		s.engine = engine.New(config.Cluster, config.Scheduler, config.Policy)
		s.world = world.New(config.Cluster, config.World)
		for i := range config.Cluster.Nodes {
			if n := &config.Cluster.Nodes[i]; !n.Rental {
				s.ledger.capacity += int64(n.Count) * 1000
				s.ledger.price += int64(n.MilliPerHour)
			}
		}
		s.cut = make([]int16, len(config.Cluster.Devices))
		s.schedulingBreaks(0)
		s.schedulingSlow(0)
		s.now = append(s.now, config.First...)
		s.expect(config.Expected)
		return s, s.read()
	}
	return s, s.resume()
}

// Advance simulates the next instant at which anything happens, and reports whether
// there was one before the end.
func (s *Simulation) Advance() (more bool, err error) {
	at := s.Next()
	if at == unit.Never || s.config.Until > 0 && at > s.config.Until {
		return false, nil
	}
	return true, s.instant(at)
}

// State is what the engine knows; nobody else edits it.
func (s *Simulation) State() *plan.State { return s.engine.State() }

// Known is what is true of a job at this moment.
func (s *Simulation) Known(id plan.JobID) world.Known { return s.world.Known(id) }

// BusySec is the device seconds, of one device model, that jobs kept busy up to an
// instant since which nothing has happened, and GrantedSec those of all models that they
// held.
func (s *Simulation) BusySec(at unit.Time, model int32) float64 { return s.world.BusySec(at, model) }

// GrantedSec is said with BusySec.
func (s *Simulation) GrantedSec(at unit.Time) float64 {
	return s.ledger.occupiedTime.Plus(unit.Use(s.ledger.occupied, at.Sub(s.ledger.now))).Hours() * 3600
}

// Rate is the progress of a run at this moment, per second of its job's true duration; 0
// where it computes nothing.
func (s *Simulation) Rate(run plan.RunID) float64 { return s.world.Rate(run) }

// Left is the work that a job has left at this moment, of its true duration.
func (s *Simulation) Left(id plan.JobID) unit.Duration {
	return s.world.Left(s.ledger.now, id, s.engine.View().Job(id).Run)
}

// Next is the next instant at which anything happens. It is Never when nothing is left
// but things breaking for nobody.
func (s *Simulation) Next() unit.Time {
	if s.next.done && len(s.config.Later) == 0 && s.submitted == s.ended && s.ledger.live == 0 {
		return unit.Never
	}
	at := min(s.wake, s.queue.next())
	if !s.next.done {
		at = min(at, max(s.ledger.now, s.next.job.Submit))
	}
	if len(s.config.Later) > 0 {
		at = min(at, max(s.ledger.now, s.config.Later[0].At))
	}
	return at
}

// instant feeds the engine everything that happens at one instant, and what its
// changes cause at the same instant, until nothing more does.
func (s *Simulation) instant(at unit.Time) error {
	s.endDays(at)
	s.ledger.advance(at)
	if err := s.arrivals(at); err != nil {
		return err
	}
	s.later(at)
	for {
		e, due := s.queue.popDue(at)
		if !due {
			break
		}
		s.happen(at, e)
	}
	return s.settle(at)
}

// settle feeds what has happened at an instant, and what that causes, until nothing
// more does.
func (s *Simulation) settle(at unit.Time) error {
	for {
		events := s.now
		s.now, s.specs = s.fed[:0], s.specs[:0]
		s.events += int64(len(events))
		out := s.engine.Step(at, events)
		if s.config.Step != nil {
			s.config.Step(at, events, &out, s.engine.View())
		}
		if err := s.took(at, &out); err != nil {
			return err
		}
		if err := s.goesOn(at, events, &out); err != nil {
			return err
		}
		s.wake = out.Wake
		if err := s.arrivals(at); err != nil {
			return err
		}
		if s.config.React != nil && len(s.now) == 0 {
			s.now = append(s.now, s.config.React(s.engine.View())...)
		}
		s.fed = events
		if len(s.now) == 0 {
			break
		}
	}
	s.config.Collector.Queue(at, s.waiting)
	s.config.Collector.Busy(at, unit.Milli(s.ledger.occupied), unit.Milli(s.ledger.capacity))
	if s.config.Progress != nil {
		s.config.Progress(at, s.submitted, s.ended)
	}
	return nil
}

// took carries out what a step yields.
func (s *Simulation) took(at unit.Time, out *engine.Out) error {
	v := s.engine.View()
	if out.Commit != nil {
		if err := s.committed(v, out.Commit); err != nil {
			return err
		}
	}
	for i := range out.Ready {
		s.carryOut(at, &out.Ready[i])
	}
	for _, ask := range out.Asks {
		if err := s.answer(at, ask); err != nil {
			return err
		}
	}
	s.now, s.late = append(s.now, s.late...), nil
	// What has come of them is told in an order that does not depend on how they came
	// to be ready together.
	slices.SortStableFunc(s.now, func(a, b engine.Event) int { return int(a.Job) - int(b.Job) })
	for _, id := range out.Over {
		s.over(v, id)
	}
	if s.config.Check {
		if err := s.engine.State().Check(); err != nil {
			return fmt.Errorf("at %s: %w", unit.Duration(at), err)
		}
	}
	return nil
}

// answer lets who is outside reply to a question. The work that it puts into that is taken
// to be in proportion to the question's length.
func (s *Simulation) answer(at unit.Time, ask strategy.Ask) error {
	answerer := s.engine.Answerer()
	if answerer == nil {
		return errors.New("the strategy asks questions, and nobody is there to answer")
	}
	reply, err := answerer.Answer(ask.Question)
	if err != nil {
		return fmt.Errorf("answering the strategy: %w", err)
	}
	e := engine.Event{Kind: engine.Answered, Answer: strategy.Answer{Asker: ask.Asker, Reply: reply}}
	if d := s.config.Prices.Answer * unit.Duration(len(ask.Question)) / 1024; d > 0 {
		s.answers = append(s.answers, e)
		s.queueUp(at.Add(d), entry{kind: answered, change: int64(len(s.answers) - 1)})
		return nil
	}
	s.emit(e)
	return nil
}

// count keeps the number of waiting jobs up to date with a job's phase.
func (s *Simulation) count(v plan.View, id plan.JobID) {
	if id == plan.None {
		return
	}
	waits := v.Job(id).Phase.Waits()
	if waits == s.wait[id] {
		return
	}
	s.wait[id] = waits
	if waits {
		s.waiting++
	} else {
		s.waiting--
	}
}

// over records a job that ended.
func (s *Simulation) over(v plan.View, id plan.JobID) {
	s.count(v, id)
	s.ended++
	s.barren = barren{}
	s.config.Collector.Job(s.record(v, id))
}

func (s *Simulation) record(v plan.View, id plan.JobID) report.JobRecord {
	j, shape := v.Job(id), v.Shape(id)
	return report.JobRecord{ID: int32(id), Name: v.Name(id), Submit: j.Submit, FirstStart: j.Started, End: min(j.Ended, s.ledger.now),
		Gang: shape.Gang, Devices: unit.Milli(shape.Milli(shape.Gang)), Alone: s.world.Duration(id), Run: s.spent[id],
		Waited: v.WaitedFor(id), Preemptions: j.Preemptions, Restarts: j.Restarts, Outcome: Outcome(j), Deadline: j.Deadline}
}

// Outcome is how a job's phase is reported.
func Outcome(j plan.Job) report.Outcome {
	switch j.Phase {
	case plan.Finished:
		return report.Finished
	case plan.Failed:
		if j.Reason.Code == plan.OverLimit {
			return report.TimeLimit
		}
		return report.Failed
	case plan.Cancelled:
		return report.Cancelled
	case plan.Refused:
		return report.Refused
	}
	return report.Unfinished
}

// Result balances the books and sums up, once and at the end.
func (s *Simulation) Result() (report.Result, error) {
	v := s.engine.View()
	for id := range plan.JobID(v.Jobs()) {
		if !over(v, id) {
			s.config.Collector.Job(s.record(v, id))
		}
	}
	s.closeRuns(v)
	var r report.Result
	r.Commits, r.Events = s.engine.State().Commits, s.events
	r.DecisionHash = hex.EncodeToString(s.hash.Sum(nil))
	r.BusyDeviceSec = s.endDay(s.ledger.now)
	r.Cost = s.ledger.cost
	s.fillBubbles(&r)
	s.ledger.balance(&r, charged(v, s.ledger.now))
	if !s.config.NoBounds {
		s.bounds(v, &r)
	}
	r = s.config.Collector.Result(r)
	if jobs := int64(v.Jobs()); jobs != s.submitted || r.Jobs != jobs-s.before {
		r.Balanced = false
	}
	return r, nil
}
