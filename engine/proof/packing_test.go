package proof

import (
	"slices"

	"github.com/musterdl/muster/plan"
)

// worthTrying reports whether two that take turns were never packed and could be.
func (g *gandiva) worthTrying(v plan.View, a, b plan.RunID) bool {
	pair := [2]plan.JobID{v.Run(a).Job, v.Run(b).Job}
	slices.Sort(pair[:])
	memory := v.Shape(pair[0]).Memory + v.Shape(pair[1]).Memory
	return len(g.mates(v, a)) == 1 && !slices.Contains(g.memory.Tried, pair) && memory <= v.Device(plan.DeviceID(g.turnOf(v, a)-1)).Memory &&
		v.Job(pair[0]).Progress > 0 && v.Job(pair[1]).Progress > 0
}

// pack lets two that take turns run side by side for a slice, each on half a device.
func (g *gandiva) pack(d *plan.Draft) {
	for _, a := range running(d.View) {
		mates := g.mates(d.View, a)
		if d.Run(a).Status != plan.Running || len(mates) != 1 || d.Run(mates[0]).Status != plan.Suspended || !g.worthTrying(d.View, a, mates[0]) {
			continue
		}
		b, mark := mates[0], d.Mark()
		jobA, jobB := d.Run(a).Job, d.Run(b).Job
		half, other := d.Run(a).Terms, d.Run(b).Terms
		half.Share = 500
		other.Share, other.Turn = 500, 0
		if !d.Regrant(a, half, plan.Reason{Code: plan.Packed, A: int64(jobB)}) ||
			!d.Regrant(b, other, plan.Reason{Code: plan.Packed, A: int64(jobA)}) ||
			!d.Resume(b, plan.Reason{Code: plan.Packed, A: int64(jobA)}) {
			d.Rollback(mark)
			continue
		}
		pair := [2]plan.JobID{jobA, jobB}
		slices.Sort(pair[:])
		g.memory.Tried = append(g.memory.Tried, pair)
		t := trial{Jobs: [2]plan.JobID{jobA, jobB}}
		for i, job := range t.Jobs {
			t.Progress[i], t.Ran[i] = d.Job(job).Progress, d.Executed(job)
		}
		g.memory.Trials = append(g.memory.Trials, t)
	}
}

// judge compares what each of two packed jobs did in the slice with what it had done
// by itself: together they must do more than one at a time.
func (g *gandiva) judge(d *plan.Draft) {
	kept := g.memory.Trials[:0]
	for _, t := range g.memory.Trials {
		sum := int64(0) // of relative speeds, thousandths
		for i, job := range t.Jobs {
			ran := d.Executed(job) - t.Ran[i]
			if alone := int64(t.Progress[i]) * int64(ran) / max(1, int64(t.Ran[i])); alone > 0 {
				sum += int64(d.Job(job).Progress-t.Progress[i]) * 1000 / alone
			}
		}
		b := d.Job(t.Jobs[1]).Run
		if r := d.Run(b); !t.Judged && r.Status == plan.Running && sum < 1000 {
			d.Suspend(b, plan.Reason{Code: plan.Unpacked, A: int64(t.Jobs[0])})
			continue
		} else if r.Status == plan.Running {
			t.Judged = true
		}
		kept = append(kept, t)
	}
	g.memory.Trials = kept
}
