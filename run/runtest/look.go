package runtest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// look is a text under way.
type look struct {
	*testing.T
	Stage
	able strategy.Ability // of the driver
}

// because is the reason of whatever is decided here.
var because = plan.Reason{Code: plan.Fits}

// start starts a job with one worker on each of these devices, on terms that edit changes,
// and waits until the engine knows that it computes.
func (x *look) start(id plan.JobID, edit func(d *plan.Draft, t *plan.Terms), devices ...plan.DeviceID) {
	x.Helper()
	x.Decide(func(d *plan.Draft) {
		terms := plan.DefaultTerms()
		if edit != nil {
			edit(d, &terms)
		}
		var slots []plan.Slot
		for _, on := range devices {
			slots = append(slots, plan.Slot{Node: d.Device(on).Node, Device: plan.None, Workers: 1, On: []plan.DeviceID{on}})
		}
		if _, why := d.Start(id, slots, terms, because); why.Code != plan.NoReason {
			x.Fatalf("job %d cannot be started: %s", id, why.Code)
		}
	})
	x.await(fmt.Sprintf("job %d computes", id), func(v plan.View) bool { return x.status(v, id) == plan.Running })
}

// status is that of a job's run; Gone where it has none.
func (x *look) status(v plan.View, id plan.JobID) plan.RunStatus {
	if run := v.Job(id).Run; run != plan.None {
		return v.Run(run).Status
	}
	return plan.Gone
}

// stop stops a job's run and waits until the engine knows that it has left.
func (x *look) stop(id plan.JobID) {
	x.Helper()
	x.Decide(func(d *plan.Draft) {
		if !d.Stop(d.Job(id).Run, because, 0) {
			x.Fatalf("job %d cannot be stopped", id)
		}
	})
	x.await(fmt.Sprintf("job %d has left", id), func(v plan.View) bool { return v.Job(id).Leaving == plan.None })
}

// rest suspends a job's run, or lets it go on.
func (x *look) rest(id plan.JobID, asleep bool) {
	x.Helper()
	status := plan.Running
	x.Decide(func(d *plan.Draft) {
		ok := false
		if asleep {
			ok, status = d.Suspend(d.Job(id).Run, because), plan.Suspended
		} else {
			ok = d.Resume(d.Job(id).Run, because)
		}
		if !ok {
			x.Fatalf("job %d cannot be put to rest (%v), or woken", id, asleep)
		}
	})
	x.await(fmt.Sprintf("job %d is %s", id, status), func(v plan.View) bool {
		return x.status(v, id) == status && v.Run(v.Job(id).Run).Change == 0
	})
}

// regrant gives a job's run that goes on other terms.
func (x *look) regrant(id plan.JobID, edit func(t *plan.Terms)) {
	x.Helper()
	x.Decide(func(d *plan.Draft) {
		terms := d.Run(d.Job(id).Run).Terms
		edit(&terms)
		if !d.Regrant(d.Job(id).Run, terms, because) {
			x.Fatalf("job %d cannot go on as %+v", id, terms)
		}
	})
}

// patience is how long something may take to be seen, on a machine that may have much else to do.
const patience = 3 * unit.Minute

// await lets time pass until the engine knows something.
func (x *look) await(what string, known func(v plan.View) bool) {
	x.Helper()
	x.until(what, func() bool { return known(x.View()) })
}

// until lets time pass until something is seen.
func (x *look) until(what string, seen func() bool) {
	x.Helper()
	for end := x.View().Now().Add(patience); !seen(); x.Pass(20 * unit.Millisecond) {
		if x.View().Now() > end {
			x.Fatalf("in %s it was not seen that %s", patience, what)
		}
	}
}

// works fails unless the workers of a job are alive on these devices, and it gets on.
func (x *look) works(id plan.JobID, devices ...plan.DeviceID) {
	x.Helper()
	if got := x.Workers(id); !slices.Equal(got, devices) {
		x.Fatalf("the workers of job %d are on the devices %v, expected %v", id, got, devices)
	}
	before := x.Done(id)
	x.until(fmt.Sprintf("job %d gets on", id), func() bool { return x.Done(id) > before })
}

// goesOn waits for the first work of a run, and fails where it is work that an earlier
// run of the job had done.
func (x *look) goesOn(id plan.JobID, saved float64) {
	x.Helper()
	x.until(fmt.Sprintf("job %d gets on", id), func() bool { return x.Done(id) > 0 })
	if got := x.Done(id); got < saved {
		x.Errorf("job %d had done %.3f and goes on at %.3f", id, saved, got)
	}
}

// window is how long work is watched to know how fast it goes.
const window = 2 * unit.Second

// paces are how much of a device each of these jobs keeps busy now.
func (x *look) paces(ids []plan.JobID) []float64 {
	got := make([]float64, len(ids))
	for i, id := range ids {
		got[i] = -x.Done(id)
	}
	x.Pass(window)
	for i, id := range ids {
		got[i] = (got[i] + x.Done(id)) / window.Seconds()
	}
	return got
}

// parts are how much of a device each of these jobs, which would take all of it, has.
func (x *look) parts(ids []plan.JobID) []float64 {
	c, ok := x.Stage.(Capped)
	if !ok {
		return x.paces(ids)
	}
	var got []float64
	for _, id := range ids {
		got = append(got, c.Part(id))
	}
	return got
}

// measured measures until a judge is content, since others on a machine may spoil it.
func (x *look) measured(what string, measure func() []float64, good func(p []float64) bool) {
	x.Helper()
	for end := x.View().Now().Add(patience); ; {
		got := measure()
		if good(got) {
			x.Logf("%s: %.3f", what, got)
			return
		}
		if x.View().Now() > end {
			x.Errorf("%s: %.3f was measured, off by at most %.3g", what, got, x.Off())
			return
		}
	}
}

// near reports whether what was measured is as expected.
func (x *look) near(got, want float64) bool { return math.Abs(got-want) <= x.Off() }

// have fails unless the jobs 0, 1 and so on have these parts of a device.
func (x *look) have(what string, want ...float64) {
	x.Helper()
	var ids []plan.JobID
	for id := range want {
		ids = append(ids, plan.JobID(id))
	}
	x.measured(fmt.Sprintf("%s, expected %.3f", what, want), func() []float64 { return x.parts(ids) }, func(p []float64) bool {
		return !slices.ContainsFunc(ids, func(id plan.JobID) bool { return !x.near(p[id], want[id]) })
	})
}
