package engine

import (
	"encoding/json"
	"fmt"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/unit"
)

// recorded is a commit as its canonical line tells it.
type recorded struct {
	Commit  int64            `json:"commit"`
	At      unit.Time        `json:"at_us"`
	Changes []recordedChange `json:"changes"`
}

type recordedChange struct {
	ID       int64         `json:"id"`
	Verb     string        `json:"verb"`
	Job      plan.JobID    `json:"job"`
	Attempt  int32         `json:"attempt"`
	Device   plan.DeviceID `json:"device"`
	Geometry int16         `json:"geometry"`
	Node     *plan.NodeID  `json:"node"`
	On       [][3]int32    `json:"on"`
	Batch    int32         `json:"batch"`
	Plan     *int32        `json:"plan"`
	Class    int32         `json:"class"`
	Weight   int32         `json:"weight"`
	Shift    unit.Duration `json:"shift_us"`
	Turn     int32         `json:"turn"`
	Guest    *plan.JobID   `json:"guest"`
	Bond     plan.Bond     `json:"bond"`
	Reserved int32         `json:"reserved_mbps"`
	Share    int32         `json:"share"`
	Swap     int32         `json:"swap_mib"`
	Ceiling  int32         `json:"ceiling"`
	Fence    plan.Fence    `json:"fence"`
	Reason   string        `json:"reason"`
	A        int64         `json:"a"`
	B        int64         `json:"b"`
}

// Fold applies the events of one instant and the commit that was recorded for them,
// asking no strategy: how a state is rebuilt from a journal. It returns what Step
// would have handed out, and an error when the record does not fit the state.
func (e *Engine) Fold(now unit.Time, events []Event, line []byte, asides []plan.Aside) (Out, error) {
	e.happen(max(now, e.state.Now), events)
	var rec recorded
	if len(line) > 0 {
		if err := json.Unmarshal(line, &rec); err != nil {
			return Out{}, fmt.Errorf("reading a recorded commit: %w", err)
		}
	}
	if err := e.refold(&rec, asides); err != nil {
		return Out{}, fmt.Errorf("commit %d at %d: %w", rec.Commit, rec.At, err)
	}
	if !e.state.Paused {
		e.saw()
	}
	e.prune()
	out := Out{Ready: e.ready, Over: e.over}
	if len(rec.Changes) > 0 {
		out.Commit = &plan.Commit{Seq: rec.Commit, At: now, Changes: append(e.forced, e.refolded...)}
	}
	e.forced = nil
	return out, nil
}

// refold makes the recorded edits again, those that people forced excepted: the
// events have made them already.
func (e *Engine) refold(rec *recorded, asides []plan.Aside) error {
	forced := len(e.forced)
	if len(rec.Changes) < forced {
		return fmt.Errorf("it has %d changes, the events alone make %d", len(rec.Changes), forced)
	}
	d := e.state.Edit()
	changes := rec.Changes[forced:]
	for i := 0; i <= len(changes); i++ {
		for ; len(asides) > 0 && asides[0].After <= i; asides = asides[1:] {
			e.refoldAside(d, &asides[0])
		}
		if i < len(changes) {
			if err := e.refoldChange(d, &changes[i]); err != nil {
				d.Discard()
				return fmt.Errorf("change %d: %w", changes[i].ID, err)
			}
		}
	}
	made, _ := d.Commit()
	e.refolded = made
	for i := range made {
		e.send(&made[i])
	}
	if len(rec.Changes) > 0 {
		e.state.Commits++
		if e.state.Commits != rec.Commit {
			return fmt.Errorf("it is commit %d by its own account, %d by the state's", rec.Commit, e.state.Commits)
		}
	}
	return nil
}

func (e *Engine) refoldAside(d *plan.Draft, a *plan.Aside) {
	switch a.Kind {
	case "estimate":
		d.Estimate(a.Job, unit.Duration(a.A))
	case "menu":
		d.Offers(a.Job, a.Menu)
	case "memo":
		d.Memo(a.Job, [2]int64{a.A, a.B})
	case "why":
		d.Explain(a.Job, plan.Reason{Code: a.Code, A: a.A, B: a.B})
	case "lease":
		d.Lease(plan.RunID(a.Job), unit.Time(a.A))
	case "plan":
		d.AddPlan(*a.Plan)
	case "claims":
		d.Reserve(a.Claims)
	case "memory":
		d.Remember(a.Memory)
	}
}

func (e *Engine) refoldChange(d *plan.Draft, c *recordedChange) error {
	if next := e.state.NextChange; next != c.ID {
		return fmt.Errorf("the state would number it %d", next)
	}
	code, ok := plan.ReasonByName(c.Reason)
	if !ok {
		return fmt.Errorf("unknown reason %q", c.Reason)
	}
	reason := plan.Reason{Code: code, A: c.A, B: c.B}
	if c.Node == nil && c.Verb != plan.Reshape.String() && !e.valid(c.Job) {
		return fmt.Errorf("there is no job %d", c.Job)
	}
	run := e.state.RunOf(c.Job, c.Attempt)
	done := false
	switch c.Verb {
	case plan.Start.String():
		_, why := d.Start(c.Job, e.slots(c), c.terms(), reason)
		done = why.Code == plan.NoReason
	case plan.Stop.String(), plan.Withdraw.String():
		done = run != plan.None && d.Stop(run, reason, 0)
	case plan.Suspend.String():
		done = run != plan.None && d.Suspend(run, reason)
	case plan.Resume.String():
		done = run != plan.None && d.Resume(run, reason)
	case plan.Regrant.String():
		done = run != plan.None && d.Regrant(run, c.terms(), reason)
	case plan.Reshape.String():
		done = d.Reshape(c.Device, c.Geometry, reason)
	case plan.Refuse.String():
		done = d.Refuse(c.Job, reason)
	case plan.Finish.String():
		done = d.Shed(c.Job)
	case plan.Rent.String():
		done = c.Node != nil && d.Rent(*c.Node, reason)
	case plan.Return.String():
		done = c.Node != nil && d.Return(*c.Node, reason)
	}
	if !done {
		return fmt.Errorf("%s of job %d attempt %d does not fit the state", c.Verb, c.Job, c.Attempt)
	}
	return nil
}

func (c *recordedChange) terms() plan.Terms {
	t := plan.DefaultTerms()
	t.Batch, t.Class, t.Weight, t.Shift, t.Turn, t.Reserved = c.Batch, c.Class, c.Weight, c.Shift, c.Turn, c.Reserved
	t.Share, t.Swap, t.Bond, t.Ceiling, t.Fence = c.Share, c.Swap, c.Bond, c.Ceiling, c.Fence
	if c.Plan != nil {
		t.Plan = *c.Plan
	}
	if c.Guest != nil {
		t.Guest = *c.Guest
	}
	return t
}

// slots turns the recorded members back into slots that name every device: [node,
// first device, count] for whole devices in a row, [node, device, -thousandths] for
// shares, device None for cores.
func (e *Engine) slots(c *recordedChange) []plan.Slot {
	perWorker := max(1, e.View().Shape(c.Job).Devices)
	var slots []plan.Slot
	for _, on := range c.On {
		node, count, reserve := plan.NodeID(on[0]), max(1, on[2]), max(0, -on[2])
		if on[2] > 0 {
			reserve = 1000
		}
		if on[1] == plan.None {
			slots = append(slots, plan.Slot{Node: node, Device: plan.None, Workers: 1})
			continue
		}
		if n := len(slots); n == 0 || slots[n-1].Node != node || slots[n-1].Reserve != reserve {
			slots = append(slots, plan.Slot{Node: node, Device: plan.None, Reserve: reserve})
		}
		s := &slots[len(slots)-1]
		for i := range count {
			s.On = append(s.On, plan.DeviceID(on[1]+i))
		}
		s.Workers = int32(len(s.On)) / perWorker
	}
	return slots
}
