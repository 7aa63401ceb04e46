package world

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Answers says how a replica answers batches of every size from 1 on, in seconds, beside
// those that compute on its device: Keeps is how long a batch keeps it busy, Takes how
// long until its requests are answered. Both are empty while it answers nobody.
// SharePercent is what it has of the device.
type Answers struct {
	Keeps, Takes []float64
	SharePercent float64
}

// Largest is the size of its largest batch.
func (a Answers) Largest() int { return max(0, len(a.Keeps)-1) }

// dynamic is how many requests a replica answers at once, at most, whose strategy names
// no batch.
const dynamic = 32

// serves fills in what is true of a run that is a replica of a service on its device.
// One that is up goes on being up: how it shares its device shows in its answers alone.
func (w *World) serves(v plan.View, x *run, model string, batch int32) {
	x.replica = nil
	law := w.config.Services[model]
	if law == nil || x.count != 1 || v.ProfileOf(x.job).RatePerSecMilli == 0 {
		return
	}
	service := law.Find(w.truth[x.job].class)
	if service == nil {
		return
	}
	x.solo = 1
	share := min(x.limit, float64(v.Shape(x.job).Share)/1000)
	x.replica = &replica{device: &law.Device, tenant: sharing.Tenant{Model: service, Batch: cmp.Or(int(batch), dynamic), SharePercent: 100 * share}}
}

// tell says how the services among some runs answer from now on.
func (w *World) tell(now unit.Time, runs ...plan.RunID) {
	if w.config.Answers == nil {
		return
	}
	for _, id := range runs {
		if x := &w.runs[id]; x.replica != nil {
			w.config.Answers(now, x.job, w.answers(id))
		}
	}
}

// answers are those of a replica beside the other services on its device. What others
// there leave of its speed slows all of its answers.
func (w *World) answers(id plan.RunID) (a Answers) {
	x := &w.runs[id]
	if !x.live || x.paused {
		return a
	}
	tenants := []sharing.Tenant{x.replica.tenant}
	for _, d := range x.devices {
		for _, r := range w.onDev[d] {
			if y := &w.runs[r]; r != id && !y.paused && y.replica != nil {
				tenants = append(tenants, y.replica.tenant)
			}
		}
	}
	a.SharePercent = x.replica.tenant.SharePercent
	a.Keeps, a.Takes = make([]float64, x.replica.tenant.Batch+1), make([]float64, x.replica.tenant.Batch+1)
	left := w.beside(id)
	for n := 1; n <= x.replica.tenant.Batch; n++ {
		tenants[0].Batch = n
		each, _, _ := x.replica.device.Predict(tenants, nil)
		a.Keeps[n], a.Takes[n] = float64(n)/each[0].PerSec/left, each[0].LatencyMs/1000/left
	}
	return a
}

// Line is the requests of one replica, by the seconds at which they came. A batch begins
// when the replica is free and it is full, or its first request has waited for as long as
// one may.
type Line struct {
	WaitSec float64
	// TookSec is, for each request that was answered, how long that took.
	TookSec []float64
	waits   []float64
	free    float64
	answers Answers
}

// Overdue is how many requests have waited for longer than so many seconds.
func (l *Line) Overdue(at, sec float64) int {
	n, _ := slices.BinarySearch(l.waits, at-sec)
	return n
}

// Change has the replica answer otherwise from an instant on.
func (l *Line) Change(at float64, a Answers) {
	l.Until(at)
	l.answers, l.free = a, max(l.free, at)
}

// Arrive adds a request, which came after all others.
func (l *Line) Arrive(at float64) {
	l.Until(at)
	l.waits = append(l.waits, at)
}

// Until begins the batches that begin before an instant.
func (l *Line) Until(at float64) {
	largest := l.answers.Largest()
	for len(l.waits) > 0 && largest > 0 {
		ready := l.waits[0] + l.WaitSec
		if len(l.waits) >= largest {
			ready = min(ready, l.waits[largest-1])
		}
		begin := max(ready, l.free)
		if begin > at {
			return
		}
		n := 0
		for n < min(largest, len(l.waits)) && l.waits[n] <= begin {
			n++
		}
		for _, came := range l.waits[:n] {
			l.TookSec = append(l.TookSec, begin+l.answers.Takes[n]-came)
		}
		l.free, l.waits = begin+l.answers.Keeps[n], l.waits[n:]
	}
}
