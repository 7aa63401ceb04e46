package compose

import (
	"math"

	"github.com/musterdl/muster/engine/lines"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/queue/share"
	"github.com/musterdl/muster/plan"
)

// tree is the tree of queues as decisions see it: the ledger, which says what each
// may claim, and what waits and runs in each branch of it.
type tree struct {
	queue.Ledger
	dealer *share.Dealer
	aimed  bool   // what each branch deserves is known, in this decision
	asks   []asks // by job
	heads  []head // by branch
	ages   int64
	lowest int32 // no job that was ever filed has a lower priority
	config *queue.Tree
}

// head is what runs in a branch.
type head struct {
	running  []plan.JobID // of a leaf, in no order
	preempts bool         // priority counts for its jobs
}

// asks is what a job that waits asks for, as it is counted in its leaf.
type asks struct {
	leaf   int32
	models uint64
	milli  int64
}

// newTree reads the queues of a state.
func newTree(v plan.View) tree {
	of := v.Ledgers()
	t := tree{Ledger: of.Empty(), config: v.Queues(), dealer: of.Dealer(), ages: -1, lowest: math.MaxInt32}
	t.heads = make([]head, t.Branches())
	for b := range t.heads {
		t.heads[b].preempts = t.Preempts(int32(b))
	}
	return t
}

// leaf is the branch that a job is filed in.
func (t *tree) leaf(v plan.View, j *plan.Job) int32 {
	if !t.Shared() {
		return 0
	}
	return t.Leaf(v.QueueOf(j.Tenant))
}

// wait counts what a job that waits asks for, if it does.
func (t *tree) wait(v plan.View, id plan.JobID) {
	t.unwait(id)
	if j := v.Job(id); t.Shared() && j.Phase == plan.Waiting {
		for len(t.asks) < v.Jobs() {
			t.asks = append(t.asks, asks{})
		}
		models, milli := v.Shape(id).Asks()
		t.asks[id] = asks{t.leaf(v, &j), models, milli}
		t.Wait(t.asks[id].leaf, models, milli)
	}
}

// unwait counts it no more.
func (t *tree) unwait(id plan.JobID) {
	if int(id) < len(t.asks) && t.asks[id].milli > 0 {
		t.Wait(t.asks[id].leaf, t.asks[id].models, -t.asks[id].milli)
		t.asks[id] = asks{}
	}
}

// aim works out what each branch deserves, once in a decision.
func (t *tree) aim() {
	if !t.aimed {
		t.aimed = true
		t.dealer.Aim(&t.Ledger)
	}
}

// age reads how past use is remembered by now, where it was aged since.
func (t *tree) age(v plan.View) {
	t.aimed = false
	if t.Shared() && v.Ages() != t.ages {
		t.ages = v.Ages()
		t.Remember(v.Ledgers().Past())
	}
}

// nextLeaf descends to the leaf that is served next, or none.
func (s *Scheduler) nextLeaf() int32 {
	t := &s.claims.tree
	if !t.Shared() {
		if s.lines.Available(0) {
			return 0
		}
		return plan.None
	}
	at := int32(0)
	for len(t.Below(at)) > 0 {
		best := int32(plan.None)
		for _, b := range t.Below(at) {
			if !s.lines.Available(b) {
				continue
			}
			if best < 0 {
				best = b
				continue
			}
			t.aim()
			before, tie := t.Before(b, best, s.nextModels(b), s.nextModels(best))
			if before || tie && s.ranksBefore(b, best) {
				best = b
			}
		}
		if best < 0 {
			return plan.None
		}
		at = best
	}
	return at
}

// ranksBefore reports whether the best job of one leaf ranks before that of another;
// of others the first named goes first.
func (s *Scheduler) ranksBefore(a, b int32) bool {
	if len(s.claims.tree.Below(a))+len(s.claims.tree.Below(b)) > 0 {
		return false
	}
	if s.round != nil {
		return s.round.asking[a][0].turn < s.round.asking[b][0].turn
	}
	x, y := s.lines.First(a), s.lines.First(b)
	return x != nil && y != nil && x.Best().Before(y.Best())
}

// nextModels are the models that the best job of a branch may have; of those with others below all.
func (s *Scheduler) nextModels(b int32) uint64 {
	const any = ^uint64(0)
	t := &s.claims.tree
	if len(t.Lent()) == 1 || len(t.Below(b)) > 0 {
		return any
	}
	job := plan.JobID(plan.None)
	if s.round != nil {
		job = s.round.asking[b][0].job
	} else if c := s.lines.First(b); c != nil {
		job = c.Best().Job
	}
	if job < 0 || int(job) >= len(t.asks) || t.asks[job].models == 0 {
		return any
	}
	return t.asks[job].models
}

// takesBack reports whether the best job of a class may claim room from what runs: it
// is within a guarantee, or priority counts where it is.
func (s *Scheduler) takesBack(v plan.View, c *lines.Class) bool {
	if !s.claims.tree.Shared() || len(c.Items()) == 0 {
		return false
	}
	shape := v.ShapeOf(c.Shape)
	return s.claims.tree.entitled(c.Leaf, shape.Models, shape.Milli(smallest(shape)), c.Best().Priority)
}

// guaranteed reports whether a job's smallest size is within what a queue that it is
// in is guaranteed.
func (t *tree) guaranteed(v plan.View, job plan.JobID) bool {
	j, shape := v.Job(job), v.Shape(job)
	return t.Guaranteed(t.leaf(v, &j), shape.Models, shape.Milli(smallest(shape)))
}

// entitled reports whether milli more for a leaf are within a guarantee, or may be
// taken by priority.
func (t *tree) entitled(leaf int32, models uint64, milli int64, priority int32) bool {
	return priority > t.lowest && t.heads[leaf].preempts || t.Guaranteed(leaf, models, milli)
}
