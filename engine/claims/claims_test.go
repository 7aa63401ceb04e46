package claims_test

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/engine/claims"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// site is eight devices, half of them guaranteed to the queue own, where priority counts; what it
// leaves idle the queue lent may have.
type site struct {
	*claims.Claims
	s *plan.State
}

const own, lent = 0, 1

func newSite(protect unit.Duration, disruptions int32) *site {
	s := plan.NewState(cluster.Uniform("gpus", 2, 4, cluster.Model{Name: "gpu"}, 2))
	s.Tenants = []string{"own", "lent"}
	s.SetQueues(queue.Tree{Protect: protect, Disruptions: disruptions, Queues: []queue.Queue{queue.Root(),
		{Name: "own", Weight: 1000, Guarantee: []queue.Amount{{Milli: 4000}}, Preempt: true}, {Name: "lent", Weight: 1000}}})
	s.Now = 100
	return &site{claims.New(s.View(), false), s}
}

// job admits a job of so many devices to a queue.
func (x *site) job(queue, devices, priority int32) plan.JobID {
	x.s.Shapes = append(x.s.Shapes, plan.Shape{Gang: devices, Devices: 1, Share: 1000, Models: 1})
	id := x.s.Admit("job", plan.Asked{Shape: int32(len(x.s.Shapes) - 1), Priority: priority, Tenant: queue, Account: x.s.AccountsOf(queue, 0),
		Checkpoint: plan.Checkpointing{OnRequest: true}})
	x.Grow(x.s.View().Jobs())
	x.AddWaiting(x.s.View(), id)
	return id
}

// run starts a job of so many devices on a node, and charges it.
func (x *site) run(queue, devices, priority int32, node plan.NodeID) plan.JobID {
	id, d := x.job(queue, devices, priority), x.s.Edit()
	run, why := d.Start(id, []plan.Slot{{Node: node, Device: plan.None, Workers: devices}}, plan.DefaultTerms(), plan.Reason{})
	if d.Commit(); why.Code != plan.NoReason {
		panic("the site has no room for its run")
	}
	x.s.Dispatch(run)
	x.s.Began(run)
	x.Charge(x.s.View(), id)
	return id
}

// ground is by which claim a job may take room from another's run.
func (x *site) ground(job, other plan.JobID) plan.ReasonCode {
	v := x.s.View()
	j := v.Job(job)
	return x.Ground(v, x.LeafOf(v, &j), job, other, v.Shape(job).Milli(v.Shape(job).Gang))
}

// TestGuaranteeIsTakenBack: who is within his guarantee may take room back from who borrowed it, and
// nobody else may; while that run ends its room counts no more.
func TestGuaranteeIsTakenBack(t *testing.T) {
	x := newSite(0, 0)
	borrows := x.run(lent, 4, 0, 0)
	alike, mine, tooMuch := x.job(lent, 4, 9), x.job(own, 4, 0), x.job(own, 5, 0)
	v := x.s.View()
	for job, want := range map[plan.JobID]plan.ReasonCode{alike: plan.NoReason, mine: plan.Reclaimed, tooMuch: plan.NoReason} {
		if got := x.ground(job, borrows); got != want {
			t.Errorf("job %d takes room by %v, %v was expected", job, got, want)
		}
	}
	if !x.WithinGuarantee(v, mine) || x.WithinGuarantee(v, tooMuch) || x.WithinGuarantee(v, alike) {
		t.Error("the wrong jobs are within their guarantee")
	}
	if x.Keeps(v, borrows) || !x.CouldTakeBack(v, v.Shape(mine)) {
		t.Error("what was borrowed is kept from its owner")
	}
	had := x.run(own, 4, 0, 1)
	if x.WithinGuarantee(v, mine) {
		t.Error("a queue is within its guarantee with twice of it")
	}
	if !x.Keeps(x.s.View(), had) {
		t.Error("what a queue is guaranteed is not kept for it")
	}
	x.Count(had, -1)
	if !x.WithinGuarantee(v, mine) {
		t.Error("a run counts that is not counted")
	}
	x.Count(had, 1)
	x.Discharge(had)
	if !x.WithinGuarantee(v, mine) || !slices.Equal(slices.Collect(x.Running()), []int32{int32(borrows)}) {
		t.Error("a run is charged that was discharged")
	}
}

// TestPriorityTakes: in a queue in which priority counts the higher takes room from the lower, as often a day as
// the queues allow, and is not displaced in turn.
func TestPriorityTakes(t *testing.T) {
	x := newSite(0, 2)
	low := x.run(own, 4, 1, 0)
	high, equal := x.job(own, 4, 2), x.job(own, 4, 1)
	if x.ground(high, low) != plan.Outranked || x.ground(equal, low) != plan.NoReason {
		t.Errorf("the higher takes room by %v, one as high by %v", x.ground(high, low), x.ground(equal, low))
	}
	if !x.Outranks(x.s.View(), low, x.job(own, 1, 0)) || x.Outranks(x.s.View(), low, high) {
		t.Error("a run would take its room back from whom it does not outrank")
	}
	x.s.Jobs[low].Preemptions = 2
	if got, day := x.ground(high, low), x.s.Now.Add(unit.Day); got != plan.NoReason || x.Wake() != day {
		t.Errorf("the third time in a day it goes by %v, and is looked at again at %d", got, x.Wake())
	}
}

// TestProtectionIsRemembered: what might be taken back leaves out what is protected, until that ends.
func TestProtectionIsRemembered(t *testing.T) {
	x := newSite(unit.Hour, 0)
	x.run(lent, 4, 0, 0)
	borrows := x.run(lent, 4, 0, 1)
	shape := x.s.View().Shape(x.job(own, 4, 0))
	until := x.ProtectedUntil(x.s.View(), borrows)
	if x.MayTakeBack(x.s.View(), 1, shape, 0) || x.Wake() != until || until < x.s.Now.Add(unit.Hour) {
		t.Errorf("protected until %d, and looked at again at %d", until, x.Wake())
	}
	x.s.Now = until
	if !x.MayTakeBack(x.s.View(), 2, shape, 0) {
		t.Error("what is protected no longer cannot be taken back")
	}
}
