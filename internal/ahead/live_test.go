package ahead_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// live is a control plane as an engine sees one: what drivers and people say comes in
// batches, in the order in which it arrived and with reports that change nothing in
// between, through the encoding of the journal. Its runs are no simulation's.
type live struct {
	t      *rapid.T
	h      *history
	engine *engine.Engine
	chance *rand.Rand
	due    []said
	done   []unit.Duration // by job: of its work, kept
	runs   map[[2]int32]unit.Time
	lines  []byte
	steps  int
	cut    int
	saved  *plan.State
	to     *history // whose strategy takes over right after the cut; nil is none
}

// said is what the driver will say, unless the run is stopped before.
type said struct {
	at    unit.Time
	event engine.Event
}

// run lives through the history.
func (l *live) run() {
	sched, err := l.h.scheduler()
	if err != nil {
		l.t.Fatal(err)
	}
	l.engine, l.runs, l.chance = engine.New(l.h.cluster, sched, engine.DefaultPolicy()), map[[2]int32]unit.Time{}, rand.New(rand.NewPCG(1, 1))
	for i := range l.h.arrivals {
		l.due = append(l.due, said{l.h.arrivals[i].Job.Submit, engine.Event{Kind: engine.Submit, Spec: &l.h.arrivals[i].Job}})
		l.done = append(l.done, 0)
	}
	for wake := unit.Never; ; {
		now := wake
		for _, r := range l.due {
			now = min(now, r.at)
		}
		if now == unit.Never || now > endless {
			return
		}
		wake = l.batch(now)
		if l.steps == l.cut && l.to != nil {
			wake = l.switchTo(now)
			l.to = nil
		}
	}
}

// batch delivers what is due, shuffled: only submissions keep their order.
func (l *live) batch(now unit.Time) (wake unit.Time) {
	var events, submissions []engine.Event
	l.due = slices.DeleteFunc(l.due, func(r said) bool {
		switch {
		case r.at > now:
			return false
		case r.event.Kind == engine.Submit:
			submissions = append(submissions, r.event)
		default:
			events = append(events, r.event)
		}
		return true
	})
	for id := range plan.JobID(l.engine.View().Jobs()) {
		if r := l.engine.View().Job(id).Run; r != plan.None && l.chance.IntN(3) == 0 {
			events = append(events, engine.Event{Kind: engine.Observed, Job: id, Attempt: l.engine.View().Run(r).Attempt, Observation: engine.Observation{Progress: 1}})
		}
	}
	l.chance.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for _, s := range submissions {
		events = slices.Insert(events, l.chance.IntN(len(events)+1), s)
	}
	i := 0
	for k := range events {
		if events[k].Kind == engine.Submit {
			events[k], i = submissions[i], i+1
		}
	}
	wake = l.step(now, l.journaled(events))
	if l.steps++; l.steps == l.cut {
		var err error
		if l.saved, err = l.engine.State().Clone(); err != nil {
			l.t.Fatal(err)
		}
	}
	return wake
}

// step feeds the engine, and carries out what it decides.
func (l *live) step(now unit.Time, events []engine.Event) (wake unit.Time) {
	out := l.engine.Step(now, events)
	if out.Commit != nil {
		l.lines = out.Commit.AppendJSON(l.lines, l.engine.View())
	}
	for _, e := range events {
		l.confirmed(now, &e)
	}
	for i := range out.Ready {
		l.order(now, &out.Ready[i])
	}
	return out.Wake
}

// switchTo gives the decisions to another strategy.
func (l *live) switchTo(now unit.Time) (wake unit.Time) {
	sched, err := l.to.scheduler()
	if err != nil {
		l.t.Fatal(err)
	}
	l.engine.Switch(sched)
	return l.step(now, []engine.Event{{Kind: engine.Switched}})
}

// journaled are events as a journal gives them back.
func (l *live) journaled(events []engine.Event) (back []engine.Event) {
	data, err := json.Marshal(events)
	if err == nil {
		err = json.Unmarshal(data, &back)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return back
}

// confirmed goes on with a run of which the engine has heard.
func (l *live) confirmed(now unit.Time, e *engine.Event) {
	switch id := [2]int32{int32(e.Job), e.Attempt}; e.Kind {
	case engine.Started:
		l.runs[id] = now
		left := l.h.arrivals[e.Job].Truth.Duration - l.done[e.Job]
		l.due = append(l.due, said{now.Add(left), engine.Event{Kind: engine.Exited, Job: e.Job, Attempt: e.Attempt, Ending: engine.Ending{Kept: left}}})
	case engine.Exited, engine.Stopped:
		l.done[e.Job] += e.Kept
	}
}

// order carries a change out.
func (l *live) order(now unit.Time, c *plan.Change) {
	checkpoint := l.h.arrivals[c.Job].Job.Checkpoint
	switch c.Verb {
	case plan.Start:
		at := now.Add(l.h.start)
		if c.Attempt > 1 {
			at = at.Add(checkpoint.Load)
		}
		l.due = append(l.due, said{at, engine.Event{Kind: engine.Started, Job: c.Job, Attempt: c.Attempt}})
	case plan.Stop:
		l.due = slices.DeleteFunc(l.due, func(r said) bool {
			return r.event.Job == c.Job && r.event.Attempt == c.Attempt && r.event.Attempt > 0
		})
		stopped := said{now, engine.Event{Kind: engine.Stopped, Job: c.Job, Attempt: c.Attempt}}
		if began, ok := l.runs[[2]int32{int32(c.Job), c.Attempt}]; ok {
			stopped.event.Kept = now.Sub(began)
			if checkpoint.OnRequest {
				stopped.at = now.Add(checkpoint.Save)
			} else {
				stopped.event.Kept -= stopped.event.Kept % checkpoint.Every
			}
		}
		l.due = append(l.due, stopped)
	default:
		l.t.Fatalf("a %s is not carried out here", c.Verb)
	}
}

// drawLived draws a history for a live plane: people and losses come to the other test.
func drawLived(t *rapid.T, strategies []string) history {
	h := drawHistory(t, strategies)
	h.later = nil
	for i := range h.arrivals {
		j, truth := &h.arrivals[i].Job, &h.arrivals[i].Truth
		j.Sizes, j.After, j.TimeLimit = nil, nil, 0
		j.Submit -= j.Submit % unit.Time(unit.Second)
		truth.Duration += unit.Second - truth.Duration%unit.Second
	}
	return h
}

// TestFaithfulToLive: the same of a history that was lived rather than simulated.
func TestFaithfulToLive(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		h := drawLived(t, []string{"fifo", "fifo-strict", "las", "tiresias", "srtf+declared", "srsf+declared+consolidate", "sjf+history"})
		l := live{t: t, h: &h}
		l.run()
		again := live{t: t, h: &h, cut: rapid.IntRange(1, l.steps).Draw(t, "cut")}
		again.run()
		config := h.ahead(again.saved)
		var got bytes.Buffer
		config.Decisions = &got
		f, err := ahead.Run(context.Background(), config)
		if err != nil || !f.Result.Balanced {
			t.Fatalf("%v %+v\n%s", err, f.Result.Ledger, &h)
		}
		if want := after(again.saved, l.lines); !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("cut at step %d of %d, %s:\n%sthe future decides\n%s\nthe history\n%s", again.cut, l.steps, unit.Duration(again.saved.Now), &h, got.Bytes(), want)
		}
	})
}
