package local

import (
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
)

// TestPace: the rate told is that of the steps, of the fastest that the job has gone; a
// rest does not count, and what is no news is not told. A checkpoint, which does not say
// of how many steps it is, leaves the progress.
func TestPace(t *testing.T) {
	var told []engine.Event
	d := New(Config{})
	d.report = func(e engine.Event) { told = append(told, e) }
	a := newAttempt(d, run.Order{Job: 3, Attempt: 1, Spec: &workload.Job{Gang: 1}, Workers: make([]run.Worker, 1)})
	at := unit.Time(0)
	note := func(kind supervise.Kind, after unit.Duration, step, of int64) engine.Event {
		at = at.Add(after)
		told = append(told, engine.Event{})
		a.note(0, &supervise.Record{Kind: kind, At: at, Report: supervise.Report{Step: step, Of: of}})
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
	}{
		{supervise.Progress, s, 10, 0, 10_000},
		{supervise.Progress, 5 * s, 60, 0, 60_000}, // not long enough
		{supervise.Progress, 5 * s, 110, plan.FullRate, 110_000},
		{supervise.Checkpoint, s, 120, 0, 120_000},
		{supervise.Progress, 9 * s, 208, 0, 208_000}, // .98: no news
		{supervise.Progress, 10 * s, 238, 300_000, 238_000},
		{supervise.Suspended, s, 0, 0, 0},
		{supervise.Resumed, 100 * s, 0, 0, 0},
		{supervise.Progress, s, 240, 0, 240_000},
		{supervise.Progress, 10 * s, 340, plan.FullRate, 340_000},
	} {
		of := int64(1000)
		if c.kind == supervise.Checkpoint {
			of = 0
		}
		e := note(c.kind, c.after, c.step, of)
		if e.RateMicro != c.rate || e.Progress != c.progress {
			t.Errorf("record %d: told rate %d and progress %d, expected %d and %d", i, e.RateMicro, e.Progress, c.rate, c.progress)
		}
	}
}
