package local

import (
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/supervise"
)

// TestPace: the rate told is that of the steps, of the fastest that the job has gone; a
// rest does not count, and what is no news is not told. A checkpoint, which does not say
// of how many steps it is, leaves the progress. A run that makes no step for ten times as
// long as one took stands: that is told once, and the count begins anew when it goes on.
func TestPace(t *testing.T) {
	var told []engine.Event
	d := New(Config{})
	d.report = func(e engine.Event) { told = append(told, e) }
	a := newAttempt(d, run.Order{Job: 3, Attempt: 1, Spec: &workload.Job{Resources: workload.Resources{Gang: 1}}, Workers: make([]run.Worker, 1)})
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
		stood    unit.Duration
	}{
		{supervise.Progress, s, 10, 0, 10_000, 0},
		{supervise.Progress, 5 * s, 60, 0, 60_000, 0}, // not long enough
		{supervise.Progress, 5 * s, 110, plan.FullRate, 110_000, 0},
		{supervise.Checkpoint, s, 120, 0, 120_000, 0},
		{supervise.Progress, 9 * s, 208, 0, 208_000, 0}, // .98: no news
		{supervise.Progress, 10 * s, 238, 300_000, 238_000, 0},
		{supervise.Suspended, s, 0, 0, 0, 0},
		{supervise.Resumed, 100 * s, 0, 0, 0, 0},
		{supervise.Progress, s, 240, 0, 240_000, 0},
		{supervise.Progress, 10 * s, 340, plan.FullRate, 340_000, 0},
		{supervise.Progress, 9 * s, 340, 0, 340_000, 0},
		{supervise.Progress, 9 * s, 340, 0, 340_000, 18 * s},
		{supervise.Progress, 60 * s, 340, 0, 340_000, 0}, // known
		{supervise.Progress, 5 * s, 341, 0, 341_000, 0},
		{supervise.Progress, 10 * s, 351, 100_000, 351_000, 0},
		{supervise.Progress, 9 * s, 351, 0, 351_000, 0}, // a step takes a second now
		{supervise.Progress, 3 * s, 351, 0, 351_000, 12 * s},
		{supervise.Progress, s, 352, 0, 352_000, 0},
		{supervise.Progress, 40 * s, 354, 5_000, 354_000, 0},
		{supervise.Progress, 150 * s, 354, 0, 354_000, 0}, // 20 seconds
		{supervise.Progress, 60 * s, 354, 0, 354_000, 210 * s},
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
