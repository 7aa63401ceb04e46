package proof

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// pollux chooses counts, placements and batches of all jobs jointly, in rounds (after
// Qiao et al., OSDI 2021; the genetic search is a greedy one, goodput a fixed curve
// of diminishing returns). It pulls at: a resize as a stop and a start that waits for
// it, many of them in one commit; terms that follow from the count.
type pollux struct{ next unit.Time }

const polluxRound = 30 * unit.Second

func (p *pollux) Remember() []byte { return remember(p.next) }

func (p *pollux) Recall(memory []byte) error { return recall(memory, &p.next) }

func (p *pollux) Decide(d *plan.Draft, _ schedule.Trigger) unit.Time {
	if ended(d.View) {
		return unit.Never
	}
	if d.Now() < p.next {
		return p.next
	}
	p.next = round(d.Now(), polluxRound)
	want := p.allocate(d.View)
	mark := d.Mark()
	var again []plan.JobID
	resized := map[plan.JobID]int32{}
	for _, run := range running(d.View) {
		r := d.Run(run)
		if n := want[r.Job]; n != r.Workers && r.Status == plan.Running && d.Now().Sub(r.Began) >= polluxRound {
			resized[r.Job] = r.Workers
			again = append(again, r.Job)
			d.Stop(run, plan.Reason{Code: plan.Rebalanced, A: int64(r.Workers), B: int64(n)}, 0)
		}
	}
	placed := true
	for _, job := range again {
		placed = p.start(d, job, want[job], plan.Reason{Code: plan.Rebalanced, A: int64(resized[job]), B: int64(want[job])}) && placed
	}
	if !placed { // fragmented: nobody is stopped in vain
		d.Rollback(mark)
	}
	for _, job := range waiting(d.View) {
		if n := want[job]; n > 0 {
			p.start(d, job, n, plan.Reason{Code: plan.RoundPlan})
		}
	}
	return p.next
}

func (p *pollux) start(d *plan.Draft, job plan.JobID, n int32, why plan.Reason) bool {
	terms := plan.DefaultTerms()
	terms.Share.Batch = 32 * n
	return place(d, job, n, terms, why)
}

// allocate gives every job its smallest size in order of submission, and what is left
// one size at a time to the job that gains most by it.
func (p *pollux) allocate(v plan.View) map[plan.JobID]int32 {
	want := map[plan.JobID]int32{}
	left := int64(0)
	for id := range plan.NodeID(v.Nodes()) {
		if v.Node(id).Status == plan.Up {
			left += int64(v.Node(id).Count) * 1000
		}
	}
	var jobs []plan.JobID
	for id := range plan.JobID(v.Jobs()) {
		j := v.Job(id)
		if j.Phase != plan.Active && j.Phase != plan.Waiting {
			continue
		}
		if n := larger(v.Shape(id), 0); v.Shape(id).Milli(n) <= left {
			want[id], left = n, left-v.Shape(id).Milli(n)
			jobs = append(jobs, id)
		}
	}
	for {
		best, most := plan.JobID(plan.None), int64(0)
		for _, id := range jobs {
			shape := v.Shape(id)
			n := larger(shape, want[id])
			cost := shape.Milli(n) - shape.Milli(want[id])
			if n == 0 || cost > left {
				continue
			}
			if gain := (goodput(n) - goodput(want[id])) * 1000 / cost; gain > most {
				best, most = id, gain
			}
		}
		if best == plan.None {
			return want
		}
		n := larger(v.Shape(best), want[best])
		left -= v.Shape(best).Milli(n) - v.Shape(best).Milli(want[best])
		want[best] = n
	}
}

// larger returns the next larger legal size, or 0.
func larger(shape *plan.Shape, n int32) (next int32) {
	for _, size := range append(shape.Sizes[:], shape.Gang) {
		if size > n && (next == 0 || size < next) {
			next = size
		}
	}
	return next
}

// goodput is a curve of diminishing returns, in arbitrary units.
func goodput(n int32) int64 { return 1_000_000 * int64(n) / int64(n+8) }
