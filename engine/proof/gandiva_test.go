package proof

import (
	"encoding/json"
	"slices"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/unit"
)

// gandiva lets gangs of one size take turns on the same devices, and tries whether two
// do better side by side; what does not pay is undone (after Xiao et al., OSDI 2018;
// no migration, no grow-shrink). It pulls at: turns, suspend and resume, memory given
// up while suspended, terms that change a grant, decisions by observed progress.
type gandiva struct{ memory gandivaMemory }

type gandivaMemory struct {
	Next   unit.Time
	Tried  [][2]plan.JobID // pairs that were packed once
	Trials []trial
}

// trial is two jobs packed to see whether it pays. Progress and Ran are theirs when it
// began.
type trial struct {
	Jobs     [2]plan.JobID
	Progress [2]int32
	Ran      [2]unit.Duration
	Judged   bool
}

const slice = 60 * unit.Second

func (g *gandiva) Remember() []byte {
	b, err := json.Marshal(g.memory)
	if err != nil {
		panic(err) // numbers and lists of numbers
	}
	return b
}

func (g *gandiva) Recall(memory []byte) error { return json.Unmarshal(memory, &g.memory) }

func (g *gandiva) Decide(d *plan.Draft, _ schedule.Trigger) unit.Time {
	if ended(d.View) {
		return unit.Never
	}
	for _, job := range waiting(d.View) {
		terms := plan.DefaultTerms()
		terms.Swap = d.Shape(job).Memory
		place(d, job, d.Shape(job).Gang, terms, plan.Reason{Code: plan.Fits})
	}
	g.repair(d)
	if d.Now() >= g.memory.Next {
		g.memory.Next = round(d.Now(), slice)
		g.judge(d)
		turned := g.turn(d)
		g.join(d)
		if !turned {
			g.pack(d)
		}
	}
	return g.memory.Next
}

// repair gives turns and devices back to those that an end or an undone packing left
// without.
func (g *gandiva) repair(d *plan.Draft) {
	g.memory.Trials = slices.DeleteFunc(g.memory.Trials, func(t trial) bool {
		return d.Job(t.Jobs[0]).Run == plan.None || d.Job(t.Jobs[1]).Run == plan.None
	})
	for _, run := range running(d.View) {
		r := d.Run(run)
		if r.Change != 0 || r.Terms.Share == 0 || g.onTrial(r.Job) {
			continue
		}
		terms := r.Terms // it was packed and is not any more
		terms.Share, terms.Turn = 1000, g.turnOf(d.View, run)
		d.Regrant(run, terms, plan.Reason{Code: plan.SliceBegins})
	}
	for _, run := range running(d.View) {
		if d.Run(run).Status == plan.Suspended && !slices.ContainsFunc(g.mates(d.View, run), func(o plan.RunID) bool { return d.Run(o).Status.Computes() }) {
			d.Resume(run, plan.Reason{Code: plan.SliceBegins})
		}
	}
}

func (g *gandiva) onTrial(job plan.JobID) bool {
	return slices.ContainsFunc(g.memory.Trials, func(t trial) bool { return slices.Contains(t.Jobs[:], job) })
}

// turnOf numbers a turn by the first device of those who take it.
func (g *gandiva) turnOf(v plan.View, run plan.RunID) (turn int32) {
	v.GrantsOf(run, func(h plan.Grant) {
		if turn == 0 {
			turn = int32(h.Device) + 1
		}
	})
	return turn
}

// mates are the other runs on a run's first device.
func (g *gandiva) mates(v plan.View, run plan.RunID) (mates []plan.RunID) {
	v.GrantsOn(plan.DeviceID(g.turnOf(v, run)-1), func(h plan.Grant) {
		if h.Run != run {
			mates = append(mates, h.Run)
		}
	})
	return mates
}

// turn ends the slice of every run that others wait for, and begins that of the one
// that has waited longest.
func (g *gandiva) turn(d *plan.Draft) (turned bool) {
	for _, run := range running(d.View) {
		if r := d.Run(run); r.Status != plan.Running || r.Terms.Turn == 0 || g.onTrial(r.Job) {
			continue
		}
		next := plan.RunID(plan.None)
		for _, o := range g.mates(d.View, run) {
			if r := d.Run(o); r.Status == plan.Suspended && r.Change == 0 && (next == plan.None || r.Since < d.Run(next).Since) {
				next = o
			}
		}
		if next == plan.None || g.worthTrying(d.View, run, next) {
			continue
		}
		mark := d.Mark()
		d.Suspend(run, plan.Reason{Code: plan.SliceOver})
		if !d.Resume(next, plan.Reason{Code: plan.SliceBegins}) {
			d.Rollback(mark)
			continue
		}
		turned = true
	}
	return turned
}

// join lets waiting gangs take turns with the run of their size that has the fewest
// mates.
func (g *gandiva) join(d *plan.Draft) {
	for _, job := range waiting(d.View) {
		shape, best, fewest := d.Shape(job), plan.RunID(plan.None), 3
		for _, run := range running(d.View) {
			r := d.Run(run)
			if n := len(g.mates(d.View, run)); r.Status == plan.Running && d.Job(r.Job).Shape == d.Job(job).Shape && shape.Share == 1000 && r.Terms.Share != 500 && n < fewest {
				best, fewest = run, n
			}
		}
		if best == plan.None {
			continue
		}
		mark, terms := d.Mark(), d.Run(best).Terms
		var slots []plan.Slot
		d.GrantsOf(best, func(h plan.Grant) {
			if n := len(slots); n == 0 || slots[n-1].Node != h.Node {
				slots = append(slots, plan.Slot{Node: h.Node, Device: plan.None})
			}
			s := &slots[len(slots)-1]
			s.On = append(s.On, h.Device)
			s.Workers = int32(len(s.On)) / shape.Devices
		})
		terms.Turn = g.turnOf(d.View, best)
		d.Regrant(best, terms, plan.Reason{Code: plan.SliceBegins})
		d.Suspend(best, plan.Reason{Code: plan.SliceOver})
		if _, why := d.Start(job, slots, terms, plan.Reason{Code: plan.SliceBegins}); why.Code != plan.NoReason {
			d.Rollback(mark)
		}
	}
}
