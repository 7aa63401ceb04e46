package reproduce

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// DecisionWork is a cluster of two device models with so many jobs, waiting or running,
// at every moment: for each that ends another comes. The jobs are those of CommitWork.
type DecisionWork struct {
	Devices, Active int
	Measured        int           // ends of jobs that are timed
	Budget          time.Duration // of processor time, after which no more are
	MostP99         time.Duration // for how long a step may hold the engine up
	Seed            uint64
}

// Decisions is the size that muster bench --strategies measures, and LargeDecisions the
// one that it measures with --large.
var (
	Decisions      = DecisionWork{Devices: 10_000, Active: 5_000, Measured: 500, Budget: 10 * time.Second, MostP99: 10 * time.Millisecond, Seed: 1}
	LargeDecisions = DecisionWork{Devices: 100_000, Active: 100_000, Measured: 500, Budget: 20 * time.Second, MostP99: 50 * time.Millisecond, Seed: 1}
)

// decisionWarm is how many jobs end before decisions are timed.
const decisionWarm = 100

// DecisionTime is how much processor time a strategy holds the engine up for each of its
// steps, and how much the answers took that it asked for, which do not.
type DecisionTime struct {
	Strategy string `json:"strategy"`
	Part     string `json:"part"` // "several" of a composition
	Devices  int    `json:"devices"`
	Active   int    `json:"active_jobs"`
	Running  int    `json:"running_jobs"` // at the end
	Steps    int    `json:"steps"`
	// FirstSec is the step in which all jobs come at once.
	FirstSec float64 `json:"first_s"`
	P50Sec   float64 `json:"p50_s"`
	P99Sec   float64 `json:"p99_s"`
	MaxSec   float64 `json:"max_s"`
	Allocs   float64 `json:"allocs_per_step"`

	Answers      int     `json:"answers,omitempty"`
	P50AnswerSec float64 `json:"p50_answer_s,omitempty"`
	MaxAnswerSec float64 `json:"max_answer_s,omitempty"`

	Target  string `json:"target,omitempty"`
	Missed  bool   `json:"missed"`
	Missing string `json:"missing,omitempty"` // why nothing was measured
}

// TimedCompositions are the reservations, and what README and docs tell users to run that
// ranks or places otherwise than one strategy alone does.
var TimedCompositions = []string{"fifo+easy", "fifo+conservative", "fifo+chance", "history+fifo+easy", "history+srsf", "srtf+oracle",
	"las+equal-share", "tiresias+consolidate", "tiresias+feasible"}

// TimedStrategies are those whose decisions are timed: every order and every decider
// for all jobs at once, but for scripts, which take what they take; and compositions.
func TimedStrategies() (list []string) {
	for _, part := range []*strategy.Part{schedule.OrderPart, allocate.JointPart} {
		for _, name := range catalogue.Names(part) {
			if name != "external" {
				list = append(list, name)
			}
		}
	}
	return append(list, TimedCompositions...)
}

// closed drives an engine with a constant number of jobs: what it decides happens at
// once, costs nothing, and goes on at the rate of the reference.
type closed struct {
	bench
	ending  []unit.Time // by job: of the run it has, Never where it does not compute
	ended   int
	answers []time.Duration
	steps   []time.Duration
	wake    unit.Time
}

// MeasureDecisions times the steps of a strategy's engine.
func MeasureDecisions(strategy string, w DecisionWork) (DecisionTime, error) {
	m := DecisionTime{Strategy: strategy, Part: partOf(strategy), Devices: w.Devices, Active: w.Active}
	built, err := build(Setup{Strategy: strategy, Seed: w.Seed})
	if err != nil {
		return m, err
	}
	jobs, _, err := CommitWork{Devices: w.Devices, Load: 1, Measured: w.Active + decisionWarm + 4*w.Measured, Seed: w.Seed}.draw()
	if err != nil {
		return m, err
	}
	c := &cluster.Cluster{Name: "two models"}
	for i, part := range []struct {
		name    string
		devices int
	}{{"V100", w.Devices * 3 / 4}, {"K80", w.Devices / 4}} {
		model, rack := c.AddModel(cluster.Model{Name: part.name, Memory: 16 << 10, Speed: 1 / float64(1+i)}), c.AddRack(cluster.Rack{Name: part.name})
		for n := range part.devices / 8 {
			c.AddNode(cluster.Node{Name: fmt.Sprint(part.name, "-", n), Rack: rack, Model: model, CPU: 96 * unit.Whole, Memory: 512 << 10}, 8)
		}
	}
	b := &closed{bench: bench{engine: engine.New(c, built.Scheduler, engine.DefaultPolicy()), truth: built.TellTruth, jobs: jobs}, wake: unit.Never}
	for range w.Active {
		b.submit(0)
	}
	b.settle(0)
	m.FirstSec = b.steps[0].Seconds()
	if err := b.until(decisionWarm, cpuTime()+w.Budget); err != nil {
		return m, err
	}
	b.steps, b.answers = b.steps[:0], b.answers[:0]
	allocs := allocated()
	if err := b.until(b.ended+w.Measured, cpuTime()+w.Budget); err != nil {
		return m, err
	}
	if len(b.steps) == 0 {
		return m, errors.New("no job ended while decisions were to be timed")
	}
	m.Allocs = float64(allocated()-allocs) / float64(len(b.steps))
	b.sum(&m)
	m.Target, m.Missed = "p99 "+w.MostP99.String(), m.P99Sec > w.MostP99.Seconds()
	return m, nil
}

// partOf is the part that a strategy fills, or that several are named.
func partOf(strategy string) string {
	if e, ok := catalogue.Find(strategy); ok {
		return e.Part.Name
	}
	return "several"
}

// sum fills in what was measured.
func (b *closed) sum(m *DecisionTime) {
	slices.Sort(b.steps)
	m.Steps = len(b.steps)
	m.P50Sec, m.P99Sec, m.MaxSec = b.steps[len(b.steps)/2].Seconds(), b.steps[len(b.steps)*99/100].Seconds(), b.steps[len(b.steps)-1].Seconds()
	if slices.Sort(b.answers); len(b.answers) > 0 {
		m.Answers, m.P50AnswerSec, m.MaxAnswerSec = len(b.answers), b.answers[len(b.answers)/2].Seconds(), b.answers[len(b.answers)-1].Seconds()
	}
	for _, at := range b.ending {
		if at != unit.Never {
			m.Running++
		}
	}
}

// allocated is how often anything was taken from the heap.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// until goes on until so many jobs have ended, or the process has used so much time.
func (b *closed) until(ended int, deadline time.Duration) error {
	for b.ended < ended && cpuTime() < deadline {
		at := b.wake
		if len(b.ends) > 0 {
			at = min(at, b.ends[0].at)
		}
		if at == unit.Never {
			return errors.New("nothing runs, and nothing is waited for")
		}
		for len(b.ends) > 0 && b.ends[0].at <= at {
			e := b.pop()
			if b.ending[e.job] != e.at || b.engine.View().Job(e.job).Attempt != e.attempt {
				continue // it was stopped or suspended meanwhile
			}
			b.ending[e.job] = unit.Never
			b.ended++
			b.more = append(b.more, engine.Event{Kind: engine.Exited, Job: e.job, Attempt: e.attempt, Ending: engine.Ending{Kept: at.Sub(b.jobs[e.job].run)}})
			b.submit(at)
		}
		b.settle(at)
	}
	return nil
}

func (b *closed) submit(at unit.Time) {
	if b.next == len(b.jobs) {
		return
	}
	j := &b.jobs[b.next]
	j.spec.Submit, j.spec.Estimate = at, j.left
	b.more = append(b.more, engine.Event{Kind: engine.Submit, Spec: &j.spec})
	if b.truth {
		b.more = append(b.more, engine.Event{Kind: engine.Truth, Job: plan.JobID(b.next), Span: j.left})
	}
	b.ending = append(b.ending, unit.Never)
	b.next++
}

// settle feeds what happens at an instant, and what that causes, until nothing more does.
func (b *closed) settle(at unit.Time) {
	for {
		b.now, b.more = b.more, b.now[:0]
		began := cpuTime()
		out := b.engine.Step(at, b.now)
		b.steps = append(b.steps, cpuTime()-began)
		for i := range out.Ready {
			b.obey(at, &out.Ready[i])
		}
		for _, ask := range out.Asks {
			b.answer(ask)
		}
		b.wake = out.Wake
		if len(b.more) == 0 {
			return
		}
	}
}

func (b *closed) answer(ask strategy.Ask) {
	began := cpuTime()
	reply, err := b.engine.Answerer().Answer(ask.Question)
	if err != nil {
		reply = nil // as the control plane does
	}
	b.answers = append(b.answers, cpuTime()-began)
	b.more = append(b.more, engine.Event{Kind: engine.Answered, Answer: strategy.Answer{Asker: ask.Asker, Reply: reply}})
}

// obey carries a change out, and confirms it.
func (b *closed) obey(at unit.Time, c *plan.Change) {
	confirm := engine.Event{Job: c.Job, Attempt: c.Attempt, Device: c.Device, Change: c.ID}
	switch c.Verb {
	case plan.Start, plan.Resume:
		j := &b.jobs[c.Job]
		j.run, b.ending[c.Job] = at, at.Add(j.left)
		b.push(ending{b.ending[c.Job], c.Job, c.Attempt})
		confirm.Kind = engine.Started
		if c.Verb == plan.Resume {
			confirm.Kind = engine.Resumed
		}
	case plan.Stop, plan.Suspend:
		if b.ending[c.Job] != unit.Never {
			j := &b.jobs[c.Job]
			confirm.Kept = at.Sub(j.run)
			j.left, b.ending[c.Job] = j.left-confirm.Kept, unit.Never
		}
		confirm.Kind = engine.Stopped
		if c.Verb == plan.Suspend {
			confirm.Kind = engine.Suspended
		}
	case plan.Reshape:
		confirm.Kind = engine.Reshaped
	default:
		return
	}
	b.more = append(b.more, confirm)
}
