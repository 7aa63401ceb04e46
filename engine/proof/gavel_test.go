package proof

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// gavel realises fractions of time in rounds: the jobs that have received the fewest
// rounds go first, and where that leaves somebody out, single-device jobs are packed
// in pairs (after Narayanan et al., OSDI 2020; all fractions are equal). It pulls at:
// what was received as memory beside the State, packing through a slot's reserve and
// through new terms of a run that goes on.
type gavel struct{ gavelMemory }

type gavelMemory struct {
	Next     unit.Time
	Received []int64 // rounds, by job
}

const gavelRound = 360 * unit.Second

func (g *gavel) Remember() []byte { return remember(g.gavelMemory) }

func (g *gavel) Recall(memory []byte) error { return recall(memory, &g.gavelMemory) }

func (g *gavel) Decide(d *plan.Draft, _ schedule.Trigger) unit.Time {
	for len(g.Received) < d.Jobs() {
		g.Received = append(g.Received, 0)
	}
	if ended(d.View) {
		return unit.Never
	}
	if d.Now() >= g.Next {
		g.Next = round(d.Now(), gavelRound)
		g.plan(d)
	}
	for _, job := range g.ranked(d.View) { // room that nobody planned with
		if d.Job(job).Phase == plan.Waiting {
			place(d, job, d.Shape(job).Gang, plan.DefaultTerms(), plan.Reason{Code: plan.Fits})
		}
	}
	return g.Next
}

// ranked lists the jobs that run or wait, the least served first.
func (g *gavel) ranked(v plan.View) (jobs []plan.JobID) {
	for id := range plan.JobID(v.Jobs()) {
		if p := v.Job(id).Phase; p == plan.Waiting || p == plan.Active {
			jobs = append(jobs, id)
		}
	}
	slices.SortStableFunc(jobs, func(a, b plan.JobID) int { return cmp.Compare(g.Received[a], g.Received[b]) })
	return jobs
}

// plan decides who has this round.
func (g *gavel) plan(d *plan.Draft) {
	left := int64(0)
	for id := range plan.NodeID(d.Nodes()) {
		if d.Node(id).Status == plan.Up {
			left += int64(d.Node(id).Count) * 1000
		}
	}
	var in []plan.JobID
	single := plan.JobID(plan.None) // has a device of its own so far
	pairs, hosts := map[plan.JobID]plan.JobID{}, map[plan.JobID]bool{}
	for _, job := range g.ranked(d.View) {
		shape := d.Shape(job)
		alone := shape.Gang == 1 && shape.Devices == 1 && shape.Share == 1000
		switch cost := shape.Milli(shape.Gang); {
		case cost <= left:
			left -= cost
			if alone {
				single = job
			}
		case alone && single != plan.None:
			pairs[job], hosts[single], single = single, true, plan.None
		default:
			continue
		}
		in = append(in, job)
		g.Received[job]++
	}
	for _, run := range running(d.View) {
		job := d.Run(run).Job
		with, paired := pairs[job]
		if !slices.Contains(in, job) || paired && !together(d.View, run, d.Job(with).Run) {
			d.Stop(run, plan.Reason{Code: plan.RoundPlan}, 0)
		} else {
			grow(d, run)
		}
	}
	for _, job := range in {
		if with, paired := pairs[job]; paired {
			g.pair(d, job, with)
		} else if d.Job(job).Phase == plan.Waiting {
			terms := plan.DefaultTerms()
			if hosts[job] {
				terms.Share.Milli = 500
			}
			place(d, job, d.Shape(job).Gang, terms, plan.Reason{Code: plan.RoundPlan})
		}
	}
}

// pair lets a job share the device of another that runs.
func (g *gavel) pair(d *plan.Draft, job, with plan.JobID) {
	run := d.Job(with).Run
	if d.Job(job).Phase != plan.Waiting || run == plan.None {
		return
	}
	mark, terms := d.Mark(), d.Run(run).Terms
	if terms.Share.Milli != 500 {
		terms.Share.Milli = 500
		if !d.Regrant(run, terms, plan.Reason{Code: plan.Packed, A: int64(job)}) {
			return
		}
	}
	var slot plan.Slot
	d.GrantsOf(run, func(h plan.Grant) { slot = plan.Slot{Node: h.Node, Device: h.Device, Workers: 1, Reserve: 500} })
	terms = plan.DefaultTerms()
	terms.Share.Milli = 500
	if _, why := d.Start(job, []plan.Slot{slot}, terms, plan.Reason{Code: plan.Packed, A: int64(with)}); why.Code != plan.NoReason {
		d.Rollback(mark)
	}
}

// together reports whether two runs are on the same device.
func together(v plan.View, a, b plan.RunID) (on bool) {
	if b == plan.None {
		return false
	}
	v.GrantsOf(a, func(g plan.Grant) {
		v.GrantsOn(g.Device, func(h plan.Grant) { on = on || h.Run == b })
	})
	return on
}

// grow gives a packed run its device back when it is alone on it.
func grow(d *plan.Draft, run plan.RunID) {
	r, others := d.Run(run), false
	d.GrantsOf(run, func(h plan.Grant) {
		if h.Device != plan.None {
			d.GrantsOn(h.Device, func(o plan.Grant) { others = others || o.Run != run })
		}
	})
	if terms := r.Terms; terms.Share.Milli == 500 && !others {
		terms.Share.Milli = 1000
		d.Regrant(run, terms, plan.Reason{Code: plan.Unpacked, A: plan.None})
	}
}
