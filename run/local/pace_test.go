package local

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/supervise"
)

// TestPace: the rate told is that of the steps, of what the job was first seen to make; a
// rest does not count, and what is no news is not told. A checkpoint, which does not say
// of how many steps it is, leaves the progress. A run that makes no step for ten times as
// long as one took stands: that is told once, and the count begins anew when it goes on.
func TestPace(t *testing.T) {
	var told []engine.Event
	d := New(Config{})
	d.report = func(e engine.Event) { told = append(told, e) }
	a := newAttempt(d, run.Order{Job: 3, Attempt: 1, Spec: &workload.Job{Resources: workload.Resources{Gang: 1}}, Workers: make([]run.Worker, 1)})
	at, last := unit.Time(0), supervise.Record{}
	note := func(kind supervise.Kind, after unit.Duration, step, of int64) engine.Event {
		at = at.Add(after)
		told = append(told, engine.Event{})
		r := supervise.Record{Kind: kind, At: at, Report: supervise.Report{Step: step, Of: of}}
		if kind == supervise.Progress && step > last.Report.Step && last.At > 0 {
			r.Blocks = slices.Repeat([]control.Block{{Steps: step - last.Report.Step, Took: at.Sub(last.At)}}, paceBlocks)
		}
		switch kind {
		case supervise.Progress:
			last = r
		case supervise.Resumed:
			last.At = 0
		}
		a.note(0, &r)
		return told[len(told)-1]
	}
	const s = unit.Second
	note(supervise.Started, 5*s, 0, 0)
	for i, c := range []struct {
		kind     supervise.Kind
		after    unit.Duration
		step     int64
		rate     int64
		progress int32
		stood    unit.Duration
	}{
		{supervise.Progress, s, 10, 0, 10_000, 0},
		{supervise.Progress, 5 * s, 60, 0, 60_000, 0}, // not long enough
		{supervise.Progress, 5 * s, 110, plan.FullRate, 110_000, 0},
		{supervise.Checkpoint, s, 120, 0, 120_000, 0},
		{supervise.Progress, 9 * s, 208, 980_000, 208_000, 0},
		{supervise.Progress, 10 * s, 306, 0, 306_000, 0}, // no news
		{supervise.Progress, 10 * s, 336, 300_000, 336_000, 0},
		{supervise.Suspended, s, 0, 0, 0, 0},
		{supervise.Resumed, 100 * s, 0, 0, 0, 0},
		{supervise.Progress, s, 340, 0, 340_000, 0},
		{supervise.Progress, 10 * s, 440, plan.FullRate, 440_000, 0},
		{supervise.Progress, 9 * s, 440, 0, 440_000, 0},
		{supervise.Progress, 9 * s, 440, 0, 440_000, 18 * s},
		{supervise.Progress, 60 * s, 440, 0, 440_000, 0}, // known
		{supervise.Progress, 5 * s, 441, 0, 441_000, 0},
		{supervise.Progress, 10 * s, 451, 100_000, 451_000, 0},
		{supervise.Progress, 9 * s, 451, 0, 451_000, 0}, // a step takes a second now
		{supervise.Progress, 3 * s, 451, 0, 451_000, 12 * s},
		{supervise.Progress, s, 452, 0, 452_000, 0},
		{supervise.Progress, 40 * s, 454, 5_000, 454_000, 0},
		{supervise.Progress, 150 * s, 454, 0, 454_000, 0}, // 20 seconds
		{supervise.Progress, 60 * s, 454, 0, 454_000, 210 * s},
	} {
		of := int64(1000)
		if c.kind == supervise.Checkpoint {
			of = 0
		}
		e := note(c.kind, c.after, c.step, of)
		if e.RateMicro != c.rate || e.Progress != c.progress || e.Stood != c.stood {
			t.Errorf("record %d: told rate %d, progress %d, stood %s, expected %d, %d, %s", i, e.RateMicro, e.Progress, e.Stood, c.rate, c.progress, c.stood)
		}
	}
}

// TestGuestIsNoReference: how a guest goes in the gaps of its host says nothing of how its job goes by itself; once that
// was seen, the guest's rate is a part of it.
func TestGuestIsNoReference(t *testing.T) {
	d := New(Config{})
	order := run.Order{Job: 3, Attempt: 1, Spec: &workload.Job{Resources: workload.Resources{Gang: 1}}, Workers: make([]run.Worker, 1)}
	alone := newAttempt(d, order)
	order.Guest = true
	guest := newAttempt(d, order)
	for i, c := range []struct {
		a          *attempt
		pace, want float64
	}{{guest, 2, 0}, {alone, 5, 5}, {guest, 2, 5}} {
		if got := d.reference(c.a, control.Pace{Is: c.pace, Least: c.pace, Most: c.pace}); got != c.want {
			t.Errorf("%d: the reference is %g steps/s, expected %g", i, got, c.want)
		}
	}
}
