package plan

import (
	"fmt"
	"slices"
)

// Law proves that a commit ends nobody's run in vain; v is the state that it led to. It
// returns the first run for which that is not so. What people ask for, and what failures
// force, is beside the law.
func (v View) Law(c *Commit) error {
	for _, x := range new(Judge).Vain(v, c.Changes) {
		return fmt.Errorf("commit %d, at %d s: the %s of job %d (%s) %s", c.Seq, c.At/1e6, x.Change.Verb, x.Change.Job, x.Change.Reason.Code, x.Why)
	}
	return nil
}

// Vain is a change that ends a run, or suspends it, and gains nothing.
type Vain struct {
	Change *Change
	Why    string
}

// Vain lists those of the changes of one decision that end a run in vain. Who gives way to a
// job leaves it what it needs to start: devices, or what the queues allow. Who is ended for
// a job takes nothing from others in the same decision but to grow, or by its rank if it
// went by rank. And whose run is ended of the strategy's own will starts again in it only
// larger, or elsewhere, or smaller where another takes the rest, or to leave a rented node,
// which can be given back, or what became slow.
func (l *Judge) Vain(v View, changes []Change) (vain []Vain) {
	read := false
	for i := range changes {
		if x := &changes[i]; x.Ends() && x.Reason.Code.Willed() {
			if !read {
				l.read(v, changes)
				read = true
			}
			if why := l.judge(x); why != "" {
				vain = append(vain, Vain{x, why})
			}
		}
	}
	return vain
}

// Ends reports whether a change ends a run or suspends it.
func (c *Change) Ends() bool { return c.Verb == Stop || c.Verb == Suspend || c.Verb == Withdraw }

// Begins reports whether a change lets a run compute.
func (c *Change) Begins() bool { return c.Verb == Start || c.Verb == Resume }

// Willed reports whether a strategy ends runs for a reason of its own will.
func (c ReasonCode) Willed() bool {
	switch c {
	case MadeWayFor, Reclaimed, Outranked, SliceOver, Rebalanced, Moved, LeaseOver, RoundPlan, Packed, Unpacked, Merged, TookRoomOf, Answered, LeftSlow:
		return true
	}
	return false
}

// Judge is who looks at the changes of decisions by their law, one after another.
type Judge struct {
	View
	begun   map[JobID]*Change
	ended   map[JobID]*Change // by a strategy's will
	awaited map[int64]int     // by how many of those that begin
	taken   map[DeviceID]bool // by them
}

// read takes in the changes of one decision, which led to a state.
func (l *Judge) read(v View, changes []Change) {
	if l.View = v; l.begun == nil {
		l.begun, l.ended, l.awaited, l.taken = map[JobID]*Change{}, map[JobID]*Change{}, map[int64]int{}, map[DeviceID]bool{}
	}
	clear(l.begun)
	clear(l.ended)
	clear(l.awaited)
	clear(l.taken)
	for i := range changes {
		switch c := &changes[i]; {
		case c.Begins():
			l.begun[c.Job] = c
			for _, a := range c.After {
				l.awaited[a]++
			}
			v.GrantsOf(c.Run, func(g Grant) { l.taken[g.Device] = true })
		case c.Ends() && c.Reason.Code.Willed():
			l.ended[c.Job] = c
		}
	}
}

// judge says why an end of a run is in vain, nothing where it is not.
func (l *Judge) judge(x *Change) string {
	again, served := l.begun[x.Job], l.served(x)
	if c := x.Reason.Code; c == MadeWayFor || c == Reclaimed || c == Outranked {
		by := JobID(x.Reason.A)
		begun, ended := l.begun[by], l.ended[by]
		switch {
		case begun == nil:
			return fmt.Sprintf("is for job %d, which does not start", by)
		case ended != nil && l.Run(ended.Run).Terms.Share.Guest == None && !(c == MadeWayFor && ended.Reason.Code == MadeWayFor) && (ended.Verb == Withdraw || l.Run(ended.Run).Workers >= l.Run(begun.Run).Workers):
			return fmt.Sprintf("is for job %d, which gives way itself", by)
		case !served && !l.counts(x, begun, again):
			return fmt.Sprintf("leaves room that job %d, for which it is, does not need", by)
		}
		served = true
	}
	served = served || l.leaves(x, again) || x.Reason.Code == LeftSlow
	switch {
	case again == nil || x.Verb == Withdraw:
		return "" // who decides for all at once may have a job wait for a better place
	case l.Again(x, again.Run):
		return "is followed by as much for it in the same place"
	case l.Run(again.Run).Workers < l.Run(x.Run).Workers && !served:
		return "makes it smaller for nobody"
	}
	return ""
}

// leaves reports whether a job that is ended, and goes on by again or not at all, is no more on
// a rented node on which it was: that can be given back.
func (l *Judge) leaves(x, again *Change) (yes bool) {
	stays := map[NodeID]bool{}
	if again != nil {
		l.GrantsOf(again.Run, func(g Grant) { stays[g.Node] = true })
	}
	l.GrantsOf(x.Run, func(g Grant) { yes = yes || l.Cluster().Nodes[g.Node].Rental && !stays[g.Node] })
	return yes
}

// served reports whether another has something of an end of a run: the room that it leaves,
// or its turn, or a host that is alone again. A promise that is taken back has left its room
// already.
func (l *Judge) served(x *Change) bool {
	others := l.awaited[x.ID]
	if again := l.begun[x.Job]; again != nil && slices.Contains(again.After, x.ID) {
		others--
	}
	t := l.Run(x.Run).Terms.Share
	served := x.Verb == Withdraw || others > 0 || t.Guest != None
	if !served && (x.Verb == Suspend || t.Turn != 0) {
		l.GrantsOf(x.Run, func(g Grant) { served = served || l.taken[g.Device] })
	}
	return served
}

// counts reports whether the queues would not allow what begins if the run that has ended
// still counted; again is the start by which its job goes on, nil where it does not.
func (l *Judge) counts(x, begun, again *Change) bool {
	if ledger := l.Ledgers().Empty(); !ledger.Bounds() {
		return false
	}
	ledger := l.Ledgers().Held()
	use := func(run RunID, sign int64) (models uint64, milli int64) {
		job := l.Job(l.Run(run).Job)
		l.GrantsOf(run, func(g Grant) {
			if g.Device != None {
				model := l.Node(g.Node).Model
				ledger.Use(ledger.Leaf(l.QueueOf(job.Tenant)), job.User, model, sign*int64(g.Reserve))
				models, milli = models|1<<model, milli+int64(g.Reserve)
			}
		})
		return models, milli
	}
	use(x.Run, 1)
	if again != nil {
		use(again.Run, -1)
	}
	models, milli := use(begun.Run, -1)
	may, _ := l.MayTake(&ledger, begun.Job, models, milli)
	return may == 0
}

// Again reports whether a run is in the place of the one that a change has ended: as much
// on the same nodes or, where that was to move or was a guest, on the same devices. A guest that gets devices of
// its own, or the other way round, has something else.
func (v View) Again(ended *Change, run RunID) bool {
	guest := v.Run(ended.Run).Terms.Share.Guest != None
	if guest != (v.Run(run).Terms.Share.Guest != None) {
		return false
	}
	places := func(run RunID) (at []int32) {
		v.GrantsOf(run, func(g Grant) {
			if at = append(at, int32(g.Node)); ended.Reason.Code == Moved || ended.Reason.Code == Defragmented || guest {
				at = append(at, int32(g.Device))
			}
		})
		slices.Sort(at)
		return at
	}
	return ended.Run == run || slices.Equal(places(ended.Run), places(run))
}

// Ended is the change by which this draft has ended a job's run, nil where it has not.
func (d *Draft) Ended(job JobID) *Change {
	if d.s.Jobs[job].Since != d.s.Now {
		return nil
	}
	for i := len(d.changes) - 1; i >= 0; i-- {
		if c := &d.changes[i]; c.Job == job && (c.Verb == Stop || c.Verb == Withdraw) {
			return c
		}
	}
	return nil
}
