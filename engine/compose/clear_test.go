package compose_test

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/moves"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
	"github.com/musterdl/muster/strategies/allocate/equal"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// part is a job that asks for so much of a device, and so many cores.
func part(share unit.Milli, cores int64) workload.Job {
	return workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: share, CPU: unit.Milli(cores * 1000)},
		Checkpoint: workload.Checkpoint{OnRequest: true, Save: 5 * unit.Second, Load: 10 * unit.Second}, Estimate: 10 * unit.Hour}
}

// TestMoves: runs that hold parts of devices, and cores of nodes that are not alike, go elsewhere
// for a job that does not fit, in one decision; or they stay.
func TestMoves(t *testing.T) {
	// Three nodes of two devices; the third has few cores.
	c := &cluster.Cluster{Models: []cluster.Model{{Name: "gpu", Speed: 1}, {Name: "other", Speed: 1}}, Racks: []cluster.Rack{{}}}
	for i, cores := range []int64{16, 16, 4} {
		c.AddNode(cluster.Node{Name: string(rune('a' + i)), CPU: unit.Milli(cores * 1000)}, 2)
	}
	cores := func(n int64) workload.Job {
		j := part(1000, n)
		j.Devices = 0
		return j
	}
	never := func(j workload.Job) workload.Job {
		j.Checkpoint = workload.Checkpoint{}
		return j
	}
	takes := func(j workload.Job, d unit.Duration) workload.Job {
		j.Estimate = d
		return j
	}
	for _, test := range []struct {
		name    string
		come    []workload.Job // and run
		gone    []plan.JobID   // of them
		last    workload.Job
		moved   string // who is moved, and what is with it
		protect unit.Duration
		most    int
	}{
		{name: "the smaller part goes beside the other", last: part(1000, 1), moved: "3",
			come: []workload.Job{part(1000, 1), part(600, 1), part(400, 1), part(300, 1), part(700, 1), part(1000, 1), part(1000, 1), part(1000, 1)}, gone: []plan.JobID{2, 4}},
		{name: "not one that does not save when asked", last: part(1000, 1),
			come: []workload.Job{part(1000, 1), never(part(600, 1)), part(400, 1), never(part(300, 1)), part(700, 1), part(1000, 1), part(1000, 1), part(1000, 1)}, gone: []plan.JobID{2, 4}},
		{name: "not for a job that is soon over", last: takes(part(1000, 1), unit.Minute),
			come: []workload.Job{part(1000, 1), part(600, 1), part(400, 1), part(300, 1), part(700, 1), part(1000, 1), part(1000, 1), part(1000, 1)}, gone: []plan.JobID{2, 4}},
		{name: "not one that its queue protects", last: part(1000, 1), protect: unit.Day,
			come: []workload.Job{part(1000, 1), part(600, 1), part(400, 1), part(300, 1), part(700, 1), part(1000, 1), part(1000, 1), part(1000, 1)}, gone: []plan.JobID{2, 4}},
		{name: "more than may be moved stay", last: part(1000, 1), most: 1,
			come: []workload.Job{part(1000, 1), part(400, 1), part(300, 1), part(300, 1), part(300, 1), part(300, 1), part(400, 1), part(1000, 1), part(1000, 1), part(1000, 1)}, gone: []plan.JobID{1, 6}},
		{name: "cores alone go where cores are left", last: part(1000, 8), moved: "1",
			come: []workload.Job{part(1000, 8), cores(6), part(1000, 9), part(1000, 1), part(1000, 1), part(1000, 1), part(1000, 1)}, gone: []plan.JobID{3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			policy := moves.Small()
			if test.most > 0 {
				policy.Most = test.most
			}
			tree := queue.Tree{Queues: []queue.Queue{queue.Root()}, Protect: test.protect}
			s := newSite(t, c, tree, composed(func() compose.Parts {
				return compose.Parts{Estimator: declared.Estimator{}, Order: fifo.New(fifo.Default()), Sizer: equal.Sizer{}, Placer: bestfit.New(bestfit.Default()), Flow: maxmin.Policy{}, Moves: policy}
			}))
			for _, j := range test.come {
				s.submit(j, 100*unit.Hour)
			}
			for s.now < unit.Time(5*unit.Hour) {
				s.pass(unit.Time(5 * unit.Hour).Sub(s.now))
			}
			for _, id := range test.gone {
				s.step(engine.Event{Kind: engine.Cancel, Job: id})
			}
			s.pass(unit.Minute)
			var moved []string
			s.look = func(c *plan.Commit) {
				if c == nil {
					return
				}
				for _, x := range c.Changes {
					if x.Reason.Code == plan.Defragmented && x.Verb == plan.Stop {
						moved = append(moved, string(rune('0'+x.Job)))
					}
				}
			}
			s.submit(test.last, unit.Hour)
			s.pass(unit.Minute)
			last := s.e.View().Job(plan.JobID(len(test.come)))
			if got := strings.Join(moved, " "); got != test.moved || (last.Phase == plan.Active) != (test.moved != "") {
				t.Errorf("%q are moved and the job is %s, want %q", got, last.Phase, test.moved)
			}
			for id := range plan.JobID(len(test.come)) {
				j := s.e.View().Job(id)
				if is := strings.Contains(test.moved, string(rune('0'+id))); j.Phase == plan.Active && is != (j.Preemptions == 1) {
					t.Errorf("job %d counts %d disruptions", id, j.Preemptions)
				}
			}
		})
	}
}
