// Package claims says who may have room: what each queue holds and may claim, as the ledger of
// queues has it, and whose run may be stopped for whom by a guarantee or a priority. It counts
// what runs against queues and users. It knows no heap and changes no draft.
package claims

import (
	"math"

	"github.com/musterdl/muster/model/bitset"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/queue/share"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Claims are the tree of queues as decisions see it: the ledger, which says what each may claim,
// with the jobs that wait and run counted in it.
type Claims struct {
	queue.Ledger
	dealer  *share.Dealer
	config  *queue.Tree
	byRank  bool // runs take each other's room by rank, or a joint decider's wish
	aimed   bool // what each branch deserves is known, in this decision
	ages    int64
	waiting []asks   // by job, where there are several queues
	leaves  []leaf   // by branch
	charged []charge // by job: what its run counts for
	more    map[plan.JobID][]charge
	running bitset.Set // jobs that are charged, where there are several queues
	lowest  int32      // no job that ever waited or ran has a lower priority
	// When somebody may be displaced again that was protected from it until then.
	again unit.Time
	gives []give // what could be taken back
	of    int64  // the pass that they are of
}

// leaf is what runs in a leaf.
type leaf struct {
	running  []plan.JobID // in no order
	preempts bool         // priority counts for its jobs
}

// asks is what a job that waits asks for, as it is counted in its leaf.
type asks struct {
	leaf   int32
	models uint64
	milli  int64
}

// New reads the queues of a state in which nothing waits or runs. Where runs also take each other's
// room by rank, a run that did has no protected time.
func New(v plan.View, byRank bool) *Claims {
	of := v.Ledgers()
	c := &Claims{Ledger: of.Empty(), config: v.Queues(), dealer: of.Dealer(), byRank: byRank, ages: -1, lowest: math.MaxInt32,
		more: map[plan.JobID][]charge{}, again: unit.Never}
	c.leaves = make([]leaf, c.Branches())
	for b := range c.leaves {
		c.leaves[b].preempts = c.Preempts(int32(b))
	}
	return c
}

// Grow makes room for so many jobs.
func (c *Claims) Grow(jobs int) {
	c.charged = append(c.charged, make([]charge, jobs-len(c.charged))...)
	if c.Shared() {
		c.waiting = append(c.waiting, make([]asks, jobs-len(c.waiting))...)
	}
}

// LeafOf is the leaf that a job is filed in.
func (c *Claims) LeafOf(v plan.View, j *plan.Job) int32 {
	if !c.Shared() {
		return 0
	}
	return c.Leaf(v.QueueOf(j.Tenant))
}

// AddWaiting counts what a job that waits asks for, if it does.
func (c *Claims) AddWaiting(v plan.View, id plan.JobID) {
	c.DropWaiting(id)
	j := v.Job(id)
	c.lowest = min(c.lowest, j.Priority)
	if c.Shared() && j.Phase == plan.Waiting {
		models, milli := v.Shape(id).Asks()
		c.waiting[id] = asks{c.LeafOf(v, &j), models, milli}
		c.Wait(c.waiting[id].leaf, models, milli)
	}
}

// DropWaiting counts it no more.
func (c *Claims) DropWaiting(id plan.JobID) {
	if !c.Shared() {
		return
	}
	if w := c.waiting[id]; w.milli > 0 {
		c.Wait(w.leaf, w.models, -w.milli)
		c.waiting[id] = asks{}
	}
}

// Models are the device models that a job is counted with that waits, 0 where it is not counted.
func (c *Claims) Models(waits plan.JobID) uint64 { return c.waiting[waits].models }

// AimOnce works out what each branch deserves, once in a decision.
func (c *Claims) AimOnce() {
	if !c.aimed {
		c.aimed = true
		c.dealer.Aim(&c.Ledger)
	}
}

// Age begins a decision: it reads how past use is remembered by now, where it was aged since.
func (c *Claims) Age(v plan.View) {
	c.aimed = false
	if c.Shared() && v.Ages() != c.ages {
		c.ages = v.Ages()
		c.Remember(v.Ledgers().Past())
	}
}

// WithinGuarantee reports whether a job's smallest size is within what a queue that it is
// in is guaranteed.
func (c *Claims) WithinGuarantee(v plan.View, job plan.JobID) bool {
	j, shape := v.Job(job), v.Shape(job)
	return c.Guaranteed(c.LeafOf(v, &j), shape.Models, shape.Milli(shape.Least()))
}

// Entitled reports whether milli more for a leaf are within a guarantee, or may be
// taken by priority.
func (c *Claims) Entitled(leaf int32, models uint64, milli int64, priority int32) bool {
	return priority > c.lowest && c.leaves[leaf].preempts || c.Guaranteed(leaf, models, milli)
}

// MayEntitle reports whether any of the jobs of a leaf that ask for this may be entitled to it, as far as all
// of them are alike.
func (c *Claims) MayEntitle(leaf int32, models uint64, milli int64) bool {
	return c.leaves[leaf].preempts || milli <= c.MostGuaranteed(leaf) && c.Guaranteed(leaf, models, milli)
}

// LookAgain notes an instant at which somebody may be displaced who may not before.
func (c *Claims) LookAgain(at unit.Time) { c.again = min(c.again, at) }

// Wake is the first instant that LookAgain noted.
func (c *Claims) Wake() unit.Time { return c.again }

// SetWake replaces what LookAgain noted.
func (c *Claims) SetWake(at unit.Time) { c.again = at }
