package engine

import (
	"fmt"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// recorded is a commit as its canonical line tells it.
type recorded struct {
	commit  int64
	at      unit.Time
	changes []recordedChange
}

// recordedChange is one of its changes.
type recordedChange struct {
	id               int64
	verb             string
	job              plan.JobID
	attempt          int32
	device           plan.DeviceID
	geometry         int16
	node             plan.NodeID // None where none is rented or given back
	on               [][3]int32
	terms            plan.Terms
	reason           string
	reasonA, reasonB int64
}

// changeNames are the figures of a change as plan.Change writes them, besides its terms.
var changeNames = figures.Named[recordedChange]{
	figures.By("id", 0, func(c *recordedChange) *int64 { return &c.id }),
	figures.By("job", 0, func(c *recordedChange) *plan.JobID { return &c.job }),
	figures.By("attempt", 0, func(c *recordedChange) *int32 { return &c.attempt }),
	figures.By("device", 0, func(c *recordedChange) *plan.DeviceID { return &c.device }),
	figures.By("geometry", 0, func(c *recordedChange) *int16 { return &c.geometry }),
	figures.By("node", plan.None, func(c *recordedChange) *plan.NodeID { return &c.node }),
	figures.By("a", 0, func(c *recordedChange) *int64 { return &c.reasonA }),
	figures.By("b", 0, func(c *recordedChange) *int64 { return &c.reasonB }),
}

// readCommit reads a canonical line.
func readCommit(line []byte) (rec recorded, err error) {
	t := figures.ReadText(line)
	for name := range t.Members {
		switch string(name) {
		case "commit":
			rec.commit = t.Int()
		case "at_us":
			rec.at = unit.Time(t.Int())
		case "changes":
			for range t.Elements {
				rec.changes = append(rec.changes, recordedChange{node: plan.None, terms: plan.DefaultTerms()})
				rec.changes[len(rec.changes)-1].read(t)
			}
		default:
			t.Skip()
		}
	}
	if err := t.End(); err != nil {
		return rec, fmt.Errorf("reading a recorded commit: %w", err)
	}
	return rec, nil
}

func (c *recordedChange) read(t *figures.Text) {
	for name := range t.Members {
		switch {
		case string(name) == "verb":
			c.verb = string(t.Word())
		case string(name) == "reason":
			c.reason = string(t.Word())
		case string(name) == "on":
			for range t.Elements {
				var on [3]int32
				i := 0
				for range t.Elements {
					if x := t.Int(); i < len(on) {
						on[i] = int32(x)
					}
					i++
				}
				c.on = append(c.on, on)
			}
		case !changeNames.Take(name, t, c) && !c.terms.TakeMember(name, t):
			t.Skip()
		}
	}
}

// Fold applies the events of one instant and the commit that was recorded for them,
// asking no strategy: how a state is rebuilt from a journal. It returns what Step
// would have handed out, and an error when the record does not fit the state.
func (e *Engine) Fold(now unit.Time, events []Event, line []byte, asides []plan.Aside) (Out, error) {
	e.happen(max(now, e.state.Now), events)
	var rec recorded
	if len(line) > 0 {
		var err error
		if rec, err = readCommit(line); err != nil {
			return Out{}, err
		}
	}
	if err := e.refold(&rec, asides); err != nil {
		return Out{}, fmt.Errorf("commit %d at %d: %w", rec.commit, rec.at, err)
	}
	if !e.state.Paused {
		e.saw()
	}
	e.prune()
	out := Out{Ready: e.ready, Over: e.over}
	if len(rec.changes) > 0 {
		out.Commit = &plan.Commit{Seq: rec.commit, At: now, Changes: append(e.forced, e.refolded...)}
	}
	e.forced = nil
	return out, nil
}

// refold makes the recorded edits again, those that people forced excepted: the
// events have made them already.
func (e *Engine) refold(rec *recorded, asides []plan.Aside) error {
	forced := len(e.forced)
	if len(rec.changes) < forced {
		return fmt.Errorf("it has %d changes, the events alone make %d", len(rec.changes), forced)
	}
	d := e.state.Edit()
	changes := rec.changes[forced:]
	for i := 0; i <= len(changes); i++ {
		for ; len(asides) > 0 && asides[0].After <= i; asides = asides[1:] {
			e.refoldAside(d, &asides[0])
		}
		if i < len(changes) {
			if err := e.refoldChange(d, &changes[i]); err != nil {
				d.Discard()
				return fmt.Errorf("change %d: %w", changes[i].id, err)
			}
		}
	}
	made, _ := d.Commit()
	e.refolded = made
	for i := range made {
		e.send(&made[i])
	}
	if len(rec.changes) > 0 {
		e.state.Commits++
		if e.state.Commits != rec.commit {
			return fmt.Errorf("it is commit %d by its own account, %d by the state's", rec.commit, e.state.Commits)
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
	case "reaction":
		d.React(*a.Reaction)
	}
}

func (e *Engine) refoldChange(d *plan.Draft, c *recordedChange) error {
	if next := e.state.NextChange; next != c.id {
		return fmt.Errorf("the state would number it %d", next)
	}
	code, ok := plan.ReasonByName(c.reason)
	if !ok {
		return fmt.Errorf("unknown reason %q", c.reason)
	}
	reason := plan.Reason{Code: code, A: c.reasonA, B: c.reasonB}
	if c.node == plan.None && c.verb != plan.Reshape.String() && !e.valid(c.job) {
		return fmt.Errorf("there is no job %d", c.job)
	}
	run := e.state.RunOf(c.job, c.attempt)
	done := false
	switch c.verb {
	case plan.Start.String():
		_, why := d.Start(c.job, e.slots(c), c.terms, reason)
		done = why.Code == plan.NoReason
	case plan.Stop.String(), plan.Withdraw.String():
		done = run != plan.None && d.Stop(run, reason, 0)
	case plan.Suspend.String():
		done = run != plan.None && d.Suspend(run, reason)
	case plan.Resume.String():
		done = run != plan.None && d.Resume(run, reason)
	case plan.Regrant.String():
		done = run != plan.None && d.Regrant(run, c.terms, reason)
	case plan.Reshape.String():
		done = d.Reshape(c.device, c.geometry, reason)
	case plan.Refuse.String():
		done = d.Refuse(c.job, reason)
	case plan.Finish.String():
		done = d.Shed(c.job)
	case plan.Rent.String():
		done = c.node != plan.None && d.Rent(c.node, reason)
	case plan.Return.String():
		done = c.node != plan.None && d.Return(c.node, reason)
	}
	if !done {
		return fmt.Errorf("%s of job %d attempt %d does not fit the state", c.verb, c.job, c.attempt)
	}
	return nil
}

// slots turns the recorded members back into slots that name every device: [node,
// first device, count] for whole devices in a row, [node, device, -thousandths] for
// shares, device None for cores.
func (e *Engine) slots(c *recordedChange) []plan.Slot {
	perWorker := max(1, e.View().Shape(c.job).Devices)
	var slots []plan.Slot
	for _, on := range c.on {
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
