package plan_test

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/plan"
)

// TestLaw: each way in which a run can be ended in vain is told, and what gains something
// is not. On a node of five devices jobs 0 and 1 run on one each and job 2 on two; job 5 has
// a promise of the last.
func TestLaw(t *testing.T) {
	whole, gang := plan.Shape{Gang: 1, Share: 1000}, plan.Shape{Gang: 2, Share: 1000, Sizes: [8]int32{1, 2}}
	at := func(devices ...plan.DeviceID) []plan.Slot {
		return []plan.Slot{{Workers: int32(len(devices)), On: devices}}
	}
	begin := func(d *plan.Draft, job plan.JobID, devices ...plan.DeviceID) {
		if _, why := d.Start(job, at(devices...), plan.DefaultTerms(), plan.Reason{Code: plan.Fits}); why.Code != plan.NoReason {
			panic(why.Words(d.View))
		}
	}
	end := func(d *plan.Draft, job plan.JobID, code plan.ReasonCode, by plan.JobID) {
		d.Stop(d.Job(job).Run, plan.Reason{Code: code, A: int64(by)}, 0)
	}
	for _, c := range []struct {
		name   string
		decide func(d *plan.Draft)
		vain   string
	}{
		{"takes the room", func(d *plan.Draft) { end(d, 0, plan.MadeWayFor, 3); begin(d, 3, 0) }, ""},
		{"does not start", func(d *plan.Draft) { end(d, 0, plan.Reclaimed, 3); begin(d, 4, 0) }, "is for job 3, which does not start"},
		{"needs other room", func(d *plan.Draft) {
			end(d, 0, plan.MadeWayFor, 3)
			end(d, 1, plan.MadeWayFor, 3)
			begin(d, 3, 0)
		}, "leaves room that job 3, for which it is, does not need"},
		{"gives way itself", func(d *plan.Draft) {
			end(d, 0, plan.Reclaimed, 3)
			begin(d, 3, 0)
			end(d, 1, plan.MadeWayFor, 0)
			begin(d, 0, 1)
		}, "is for job 0, which gives way itself"},
		{"comes back", func(d *plan.Draft) {
			end(d, 0, plan.RoundPlan, 0)
			begin(d, 0, 0)
		}, "is followed by as much for it in the same place"},
		{"comes back beside", func(d *plan.Draft) {
			end(d, 0, plan.RoundPlan, 0)
			end(d, 1, plan.RoundPlan, 0)
			begin(d, 3, 0)
			begin(d, 0, 1)
		}, "is followed by as much for it in the same place"},
		{"waits of the decider's will", func(d *plan.Draft) { end(d, 0, plan.RoundPlan, 0) }, ""},
		{"is smaller for nobody", func(d *plan.Draft) { end(d, 2, plan.Rebalanced, 0); begin(d, 2, 3) }, "makes it smaller for nobody"},
		{"is smaller for another", func(d *plan.Draft) {
			end(d, 2, plan.Rebalanced, 0)
			begin(d, 2, 3)
			begin(d, 3, 2)
		}, ""},
		{"moves on the same node", func(d *plan.Draft) {
			end(d, 0, plan.Moved, 0)
			end(d, 1, plan.Moved, 0)
			begin(d, 0, 1)
			begin(d, 1, 0)
		}, ""},
		{"moves nowhere", func(d *plan.Draft) {
			end(d, 0, plan.Moved, 0)
			begin(d, 0, 0)
		}, "is followed by as much for it in the same place"},
		{"is asked by people", func(d *plan.Draft) { end(d, 0, plan.ByUser, 0) }, ""},
		{"withdraws for nobody", func(d *plan.Draft) { end(d, 5, plan.MadeWayFor, 3) }, "is for job 3, which does not start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := one(5, cluster.Model{Name: "gpu"}, whole, whole, gang, whole, whole, whole)
			started(t, s, 0, at(0)[0], plan.DefaultTerms())
			started(t, s, 1, at(1)[0], plan.DefaultTerms())
			started(t, s, 2, at(2, 3)[0], plan.DefaultTerms())
			d := s.Edit()
			begin(d, 5, 4)
			d.Commit()
			d = s.Edit()
			c.decide(d)
			changes, _ := d.Commit()
			vain := new(plan.Judge).Vain(s.View(), changes)
			if c.vain == "" && len(vain) > 0 || c.vain != "" && !slices.ContainsFunc(vain, func(x plan.Vain) bool { return x.Why == c.vain }) {
				t.Errorf("the law says %v, expected %q", vain, c.vain)
			}
			if err := s.View().Law(&plan.Commit{Changes: changes}); (err == nil) != (c.vain == "") {
				t.Errorf("the law says %v, expected %q", err, c.vain)
			}
		})
	}
}

// TestLawOfRentedNodes: to leave a rented node is a gain, also for a smaller place; to
// stay on it is not, nor to leave one of our own.
func TestLawOfRentedNodes(t *testing.T) {
	for _, c := range []struct {
		name   string
		rental bool
		to     []plan.DeviceID // where it goes on; devices 0 and 1 are of the node, 2 of another
		lawful bool
	}{
		{"to a smaller one", true, []plan.DeviceID{2}, true},
		{"to none", true, nil, true},
		{"smaller on it", true, []plan.DeviceID{0}, false},
		{"from our own to a smaller one", false, []plan.DeviceID{2}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := plan.NewState(cluster.Uniform("two", 2, 2, cluster.Model{Name: "gpu"}, 2))
			s.Shapes = []plan.Shape{{Gang: 2, Devices: 1, Share: 1000, Models: 1, Sizes: [8]int32{1, 2}}}
			s.Admit("job", plan.Asked{})
			s.Cluster.Nodes[0].Rental = c.rental
			started(t, s, 0, plan.Slot{Workers: 2, On: []plan.DeviceID{0, 1}}, plan.DefaultTerms())
			d := s.Edit()
			d.Stop(d.Job(0).Run, plan.Reason{Code: plan.Moved}, 0)
			if c.to != nil {
				if _, why := d.Start(0, []plan.Slot{{Node: plan.NodeID(c.to[0] / 2), Workers: 1, On: c.to}}, plan.DefaultTerms(), plan.Reason{Code: plan.Moved}); why.Code != plan.NoReason {
					t.Fatal(why.Words(s.View()))
				}
			}
			changes, _ := d.Commit()
			if err := s.View().Law(&plan.Commit{Changes: changes}); (err == nil) != c.lawful {
				t.Errorf("the law says %v", err)
			}
		})
	}
}

// TestLawCounts: a run may give way by what the queues allow, though another device is
// taken; where they allow both, it did so in vain.
func TestLawCounts(t *testing.T) {
	for _, limit := range []int64{1000, 2000} {
		whole := plan.Shape{Gang: 1, Share: 1000}
		s := one(2, cluster.Model{Name: "gpu"}, whole, whole)
		s.Tenants, s.Queues = []string{""}, queue.Tree{Queues: []queue.Queue{queue.Root()}}
		s.Queues.Queues[0].Limit = []queue.Amount{{Milli: limit}}
		run := started(t, s, 0, plan.Slot{Workers: 1, On: []plan.DeviceID{0}}, plan.DefaultTerms())
		d := s.Edit()
		d.Stop(run, plan.Reason{Code: plan.MadeWayFor, A: 1}, 0)
		if _, why := d.Start(1, []plan.Slot{{Workers: 1, On: []plan.DeviceID{1}}}, plan.DefaultTerms(), plan.Reason{}); why.Code != plan.NoReason {
			t.Fatal(why.Words(s.View()))
		}
		changes, _ := d.Commit()
		if err := s.View().Law(&plan.Commit{Changes: changes}); (err == nil) != (limit == 1000) {
			t.Errorf("under a limit of %d the law says %v", limit, err)
		}
	}
}

// TestGuestIsToldForWhom: a guest that leaves for the memory of a new run is told whose.
func TestGuestIsToldForWhom(t *testing.T) {
	big := plan.Shape{Gang: 1, Share: 500, Memory: 10}
	s := one(1, cluster.Model{Name: "gpu", Memory: 20}, big, big, big)
	started(t, s, 0, plan.Slot{Device: 0, Workers: 1}, plan.DefaultTerms())
	guest := plan.DefaultTerms()
	guest.Share.Guest = 0
	started(t, s, 1, plan.Slot{Device: 0, Workers: 1}, guest)
	d := s.Edit()
	defer d.Discard()
	if _, why := d.Start(2, []plan.Slot{{Device: 0, Workers: 1}}, plan.DefaultTerms(), plan.Reason{}); why.Code != plan.NoReason {
		t.Fatal(why.Words(s.View()))
	}
	if c := d.Changes()[0]; c.Verb != plan.Stop || c.Job != 1 || c.Reason != (plan.Reason{Code: plan.MadeWayFor, A: 2}) {
		t.Errorf("the first change is %s of job %d for %+v, expected the guest's stop for job 2", c.Verb, c.Job, c.Reason)
	}
}
