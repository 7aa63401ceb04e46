// Package filing knows where jobs are filed: those that wait in classes of their shape, or in the line of a joint
// decider, those that run by their rank, and who is worth another try after something has changed. It decides
// nothing: whoever does files jobs by it, and asks package lines who is next.
package filing

import (
	"math/bits"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/agenda"
	"github.com/musterdl/muster/engine/claims"
	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/engine/room"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/obstacle"
)

// Parts are those of a composition by which jobs are filed; as in package compose.
type Parts struct {
	Order   schedule.Order // nil under a joint decider
	Rules   schedule.Rules // of the order
	Sharer  allocate.Sharer
	Reserve calendar.Policy
	// Patient says that the placer may let jobs wait for a better place.
	Patient bool
}

// Repairs says until when a job that lost its run waits to start with as many workers as it had.
type Repairs interface {
	RepairedBy(v plan.View, job plan.JobID) (until unit.Time, had int32)
}

// Files are where all jobs are filed.
type Files struct {
	// Elastic is how many elastic jobs are among the running.
	Elastic int

	parts   Parts
	ager    schedule.Ager
	pupil   schedule.Pupil
	repairs Repairs
	placing *placing.Placing
	room    *room.Maker
	agenda  *agenda.Agenda
	claims  *claims.Claims
	lines   *lines.Lines
	takers  takers    // scratch
	since   unit.Time // what was known then is what ranks go by
}

var _ room.Files = (*Files)(nil)

// New files jobs as the parts say.
func New(parts Parts, by *placing.Placing, repairs Repairs) *Files {
	f := &Files{parts: parts, placing: by, repairs: repairs}
	f.ager, _ = strategy.Can[schedule.Ager](parts.Order)
	f.pupil, _ = strategy.Can[schedule.Pupil](parts.Order)
	return f
}

// Ask has the owners asked.
func (f *Files) Ask(m *room.Maker, a *agenda.Agenda, c *claims.Claims, l *lines.Lines) {
	f.room, f.agenda, f.claims, f.lines = m, a, c, l
}

// Never reports whether a job can never start here: it is filed nowhere then, until the engine names it
// again because the cluster or its queues are others.
func (f *Files) Never(v plan.View, job plan.JobID) bool {
	return obstacle.Never(v, &f.claims.Ledger, job).Code != plan.NoReason
}

// File puts a waiting job in its class, if it can ever start.
func (f *Files) File(v plan.View, id plan.JobID) {
	if f.Never(v, id) {
		return
	}
	f.claims.AddWaiting(v, id)
	if f.parts.Order == nil {
		f.lines.FileInLine(id)
		return
	}
	kind, key, until := f.kind(v, id)
	c := f.lines.File(kind, lines.Item{Key: key, Job: id, Priority: v.Job(id).Priority}, until)
	best := c.Best().Job == id && (f.parts.Rules.Preempt || len(c.Items()) == 1 || f.TakesBack(v, c) || !f.agenda.Empty())
	if best || len(f.agenda.Windows()) > 0 {
		f.lines.Unblock(c) // the class has a new best job, or one that may end before a node closes
	}
}

// kind is the class of a job, with its rank and until when both hold.
func (f *Files) kind(v plan.View, id plan.JobID) (k lines.Kind, key schedule.Key, until unit.Time) {
	j := v.Job(id)
	k = lines.Kind{Owner: lines.Owner{Leaf: f.claims.LeafOf(v, &j), User: plan.None, Guest: j.Run != plan.None}, Shape: j.Shape}
	if f.claims.LimitsUsers(k.Leaf) {
		k.User = j.User
	}
	key, until = f.parts.Order.Key(v, id)
	if sees := f.parts.Reserve.Foresight; sees != nil {
		step, holds := sees.Step(v, id)
		k.Step, until = step, min(until, holds)
	} else if f.parts.Reserve.Depth > 0 {
		k.Step = int32(bits.Len64(uint64(calendar.Length(v, id, v.Shape(id).Gang))))
	}
	return k, key, until
}

// FileRunning ranks a job that has a run among the running.
func (f *Files) FileRunning(v plan.View, id plan.JobID) {
	f.lines.FileRunning(id)
	f.claims.Charge(v, id)
	if v.Shape(id).Elastic() {
		f.Elastic++
	}
	f.claims.LosesProtection(v, id)
	if !f.parts.Rules.Preempt {
		return
	}
	if at := f.room.Ripe(v, id, plan.None); at > v.Now() {
		f.room.Retry = min(f.room.Retry, at)
	}
	key, until := f.parts.Order.Key(v, id)
	f.lines.Rank(lines.Item{Key: key, Job: id})
	f.lines.Until(until, id)
}

// FileActive files a job that has a run: among those that wait, if it is a guest that longs for
// devices of its own.
func (f *Files) FileActive(v plan.View, id plan.JobID) {
	if f.Longs(v, id) && !f.Never(v, id) {
		f.File(v, id)
	} else {
		f.FileRunning(v, id)
	}
}

// Longs reports whether a job is a guest that wants devices of its own, and waits for them as others do.
func (f *Files) Longs(v plan.View, id plan.JobID) bool {
	run := v.Job(id).Run
	if f.parts.Sharer == nil || f.parts.Order == nil || run == plan.None {
		return false
	}
	r := v.Run(run)
	return r.Terms.Share.Guest != plan.None && r.Status == plan.Running && !f.room.Stays(id) && f.parts.Sharer.Moves(v, id)
}

// Drop takes a job out of wherever it is filed.
func (f *Files) Drop(v plan.View, id plan.JobID) {
	if f.lines.Runs(id) {
		if v.Shape(id).Elastic() {
			f.Elastic--
		}
		f.claims.Discharge(id)
	}
	f.lines.Drop(id, !f.agenda.Empty()) // the next may be short enough to fit before a claim or a window
}

// Smaller is the next smaller size that a job may start with, or 0.
func (f *Files) Smaller(v plan.View, job plan.JobID, n int32) int32 {
	if n = v.Shape(job).Smaller(n); n == 0 {
		return 0
	}
	if until, had := f.repairs.RepairedBy(v, job); n < had && until > v.Now() {
		return 0
	}
	return n
}

// again files a waiting job anew.
func (f *Files) again(v plan.View, id plan.JobID) {
	f.Drop(v, id)
	f.File(v, id)
}

// RecallAside files the jobs again that were set aside.
func (f *Files) RecallAside(v plan.View) {
	for _, job := range f.lines.RecallAside() {
		if !f.lines.Filed(job) && v.Job(job).Phase == plan.Waiting {
			f.File(v, job)
		}
	}
}
