package proof

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// gandiva lets two gangs of one shape take turns on the same devices, tries once
// whether they do better side by side, and undoes what does not pay (after Xiao et
// al., OSDI 2018; no migration, no grow-shrink). It pulls at: turns, suspend and
// resume, memory given up while suspended, terms that change a grant, decisions by
// observed progress.
type gandiva struct{ m gandivaMemory }

type gandivaMemory struct {
	Next  unit.Time
	Pairs []pair // packed once; those on trial or kept have Packed set
}

// pair is two jobs that were packed. Progress and Ran are theirs when that began.
type pair struct {
	Jobs            [2]plan.JobID
	Progress        [2]int32
	Ran             [2]unit.Duration
	Packed, Settled bool
}

const slice = 60 * unit.Second

func (g *gandiva) Remember() []byte { return remember(g.m) }

func (g *gandiva) Recall(memory []byte) error { return recall(memory, &g.m) }

func (g *gandiva) Decide(d *plan.Draft, _ schedule.Trigger) unit.Time {
	if ended(d.View) {
		return unit.Never
	}
	for _, job := range waiting(d.View) {
		place(d, job, d.Shape(job).Gang, plan.DefaultTerms().WithShare(&plan.ShareTerms{Guest: plan.None, Swap: d.Shape(job).Memory}), plan.Reason{Code: plan.Fits})
	}
	g.repair(d, plan.Suspended)
	g.repair(d, plan.Running)
	if d.Now() >= g.m.Next {
		g.m.Next = round(d.Now(), slice)
		g.judge(d)
		for _, run := range running(d.View) {
			if r := d.Run(run); r.Status == plan.Running && r.Terms.Share.Milli != 500 {
				g.endSlice(d, run)
			}
		}
	}
	return g.m.Next
}

// host returns a run's first device, and the other run on it.
func host(v plan.View, run plan.RunID) (device plan.DeviceID, other plan.RunID) {
	device, other = plan.None, plan.None
	v.GrantsOf(run, func(h plan.Grant) {
		if device == plan.None {
			device = h.Device
		}
	})
	v.GrantsOn(device, func(h plan.Grant) {
		if h.Run != run {
			other = h.Run
		}
	})
	return device, other
}

// repair gives devices, turns and time back to runs of a status that an end or an
// undone packing left without.
func (g *gandiva) repair(d *plan.Draft, status plan.RunStatus) {
	for i := range g.m.Pairs {
		p := &g.m.Pairs[i]
		p.Packed = p.Packed && d.Job(p.Jobs[0]).Run != plan.None && d.Job(p.Jobs[1]).Run != plan.None
	}
	for _, run := range running(d.View) {
		r := d.Run(run)
		device, other := host(d.View, run)
		packed := slices.ContainsFunc(g.m.Pairs, func(p pair) bool { return p.Packed && slices.Contains(p.Jobs[:], r.Job) })
		if terms := r.Terms; r.Status == status && r.Change == 0 && terms.Share.Milli == 500 && !packed {
			terms.Share.Milli, terms.Share.Turn = 1000, int32(device)+1
			d.Regrant(run, terms, plan.Reason{Code: plan.SliceBegins})
		}
		if r.Status == plan.Suspended && (other == plan.None || !d.Run(other).Status.Computes()) {
			d.Resume(run, plan.Reason{Code: plan.SliceBegins})
		}
	}
}

// endSlice lets another run or waiting job have the devices of a run for a slice, or
// for a first time both at once.
func (g *gandiva) endSlice(d *plan.Draft, run plan.RunID) {
	mark, r := d.Mark(), d.Run(run)
	device, other := host(d.View, run)
	done := false
	switch {
	case other == plan.None:
		terms := r.Terms
		terms.Share.Turn = int32(device) + 1
		for _, job := range waiting(d.View) {
			if done || d.Job(job).Shape != d.Job(r.Job).Shape || d.Shape(job).Share < 1000 {
				continue
			}
			d.Regrant(run, terms, plan.Reason{Code: plan.SliceBegins})
			d.Suspend(run, plan.Reason{Code: plan.SliceOver})
			_, why := d.Start(job, same(d.View, run), terms, plan.Reason{Code: plan.SliceBegins})
			done = why.Code == plan.NoReason
		}
	case d.Run(other).Status != plan.Suspended || d.Run(other).Terms.Share.Milli == 500:
	case g.untried(d.View, r.Job, d.Run(other).Job):
		done = g.pack(d, run, other)
	default:
		done = d.Suspend(run, plan.Reason{Code: plan.SliceOver}) && d.Resume(other, plan.Reason{Code: plan.SliceBegins})
	}
	if !done {
		d.Rollback(mark)
	}
}

// same names the devices of a run.
func same(v plan.View, run plan.RunID) (slots []plan.Slot) {
	v.GrantsOf(run, func(h plan.Grant) {
		if n := len(slots); n == 0 || slots[n-1].Node != h.Node {
			slots = append(slots, plan.Slot{Node: h.Node, Device: plan.None})
		}
		s := &slots[len(slots)-1]
		s.On = append(s.On, h.Device)
		s.Workers = int32(len(s.On)) / v.Shape(v.Run(run).Job).Devices
	})
	return slots
}

func (g *gandiva) untried(v plan.View, a, b plan.JobID) bool {
	return v.Job(a).Progress > 0 && v.Job(b).Progress > 0 && !slices.ContainsFunc(g.m.Pairs, func(p pair) bool {
		return slices.Contains(p.Jobs[:], a) && slices.Contains(p.Jobs[:], b)
	})
}

// pack lets two that take turns run side by side, each on half of every device.
func (g *gandiva) pack(d *plan.Draft, a, b plan.RunID) bool {
	p := pair{Jobs: [2]plan.JobID{d.Run(a).Job, d.Run(b).Job}, Packed: true}
	for i, job := range p.Jobs {
		p.Progress[i], p.Ran[i] = d.Job(job).Progress, d.Executed(job)
	}
	g.m.Pairs = append(g.m.Pairs, p)
	half, other := d.Run(a).Terms, d.Run(b).Terms
	half.Share.Milli, other.Share.Milli, other.Share.Turn = 500, 500, 0
	return d.Regrant(a, half, plan.Reason{Code: plan.Packed, A: int64(p.Jobs[1])}) &&
		d.Regrant(b, other, plan.Reason{Code: plan.Packed, A: int64(p.Jobs[0])}) &&
		d.Resume(b, plan.Reason{Code: plan.Packed, A: int64(p.Jobs[0])})
}

// judge compares what packed jobs did in the slice with what each had done by itself:
// together they must have done more than one at a time.
func (g *gandiva) judge(d *plan.Draft) {
	for i := range g.m.Pairs {
		p := &g.m.Pairs[i]
		b := d.Job(p.Jobs[1]).Run
		if !p.Packed || p.Settled || d.Run(b).Status != plan.Running {
			continue
		}
		sum := int64(0) // of relative speeds, thousandths
		for k, job := range p.Jobs {
			alone := int64(p.Progress[k]) * int64(d.Executed(job)-p.Ran[k]) / max(1, int64(p.Ran[k]))
			sum += int64(d.Job(job).Progress-p.Progress[k]) * 1000 / max(1, alone)
		}
		if p.Settled = true; sum < 1000 {
			p.Packed = !d.Suspend(b, plan.Reason{Code: plan.Unpacked, A: int64(p.Jobs[0])})
		}
	}
}
