package scheduletest

import (
	"fmt"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// watched is an order under observation: what it said about a job's rank is held
// against what it says later, as schedule.Order promises.
type watched struct {
	strategy.Around[schedule.Order]
	said   map[plan.JobID]saying
	broken error // the first promise that was not kept
}

// saying is a rank as it was given.
type saying struct {
	key   schedule.Key
	at    unit.Time
	until unit.Time
	where standing
	since unit.Time
}

// standing is what a rank may depend on besides time and what was learned; when it
// changes, the rank is asked for again.
type standing struct {
	phase    plan.Phase
	run      plan.RunID
	status   plan.RunStatus
	attempt  int32
	executed unit.Duration
	estimate unit.Duration
	memo     [2]int64
}

func watch(o schedule.Order) *watched {
	return &watched{Around: strategy.Around[schedule.Order]{Inner: o}, said: map[plan.JobID]saying{}}
}

func standingOf(v plan.View, id plan.JobID) standing {
	j := v.Job(id)
	s := standing{phase: j.Phase, run: j.Run, attempt: j.Attempt, executed: j.Executed, estimate: j.Estimate, memo: j.Memo}
	if j.Run != plan.None {
		s.status = v.Run(j.Run).Status
	}
	return s
}

// Key passes the question on and remembers the answer.
func (w *watched) Key(v plan.View, id plan.JobID) (schedule.Key, unit.Time) {
	w.verify(v, id)
	key, until := w.Inner.Key(v, id)
	if until <= v.Now() {
		w.fault(v, id, "its rank holds until %s, which is not after now", unit.Duration(until))
	}
	w.said[id] = saying{key, v.Now(), until, standingOf(v, id), w.since(v)}
	return key, until
}

// since is when what the order has learned by now was so; ranks change with that.
func (w *watched) since(v plan.View) unit.Time {
	if p, ok := strategy.Can[schedule.Pupil](w.Inner); ok {
		return p.Since(v)
	}
	return 0
}

// Rules are the order's own.
func (w *watched) Rules() schedule.Rules { return w.Inner.Rules() }

// verify holds what was last said about a job against what is said now.
func (w *watched) verify(v plan.View, id plan.JobID) {
	before, asked := w.said[id]
	where := standingOf(v, id)
	if !asked || v.Now() >= before.until || where != before.where || w.since(v) != before.since {
		return
	}
	key, _ := w.Inner.Key(v, id)
	switch order := key.Compare(id, before.key, id); {
	case where.phase == plan.Waiting && order != 0:
		w.fault(v, id, "waits with rank %v since %s, now %v, before its time", before.key, unit.Duration(before.at), key)
	case where.phase == plan.Active && order > 0:
		w.fault(v, id, "runs with rank %v since %s, now %v, which is worse, before its time", before.key, unit.Duration(before.at), key)
	}
}

// verifyAll holds every live job to what was said about it.
func (w *watched) verifyAll(v plan.View) {
	for id := range plan.JobID(v.Jobs()) {
		if p := v.Job(id).Phase; p == plan.Waiting || p == plan.Active {
			w.verify(v, id)
		}
	}
}

func (w *watched) fault(v plan.View, id plan.JobID, format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf("at %s job %s: %s", unit.Duration(v.Now()), v.Name(id), fmt.Sprintf(format, args...))
	}
}

// justPreempted holds a decision to the order's rules.
func (w *watched) justPreempted(v plan.View, c *plan.Commit) {
	rules := w.Rules()
	for i := range c.Changes {
		x := &c.Changes[i]
		if x.Reason.Code != plan.MadeWayFor {
			continue
		}
		if !rules.Preempt {
			w.fault(v, x.Job, "was displaced under rules that do not preempt")
		}
		if x.Verb == plan.Stop && rules.MinimumRun > 0 && v.Now().Sub(v.Run(x.Run).Began) < rules.MinimumRun {
			w.fault(v, x.Job, "was displaced before it had run for %s", rules.MinimumRun)
		}
	}
}
