package compose_test

import (
	"testing"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/allocate/fixed"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// TestWhoMayTakeMoreModelsIsTried: a job whose queue may have one model of device alone, and finds no room there,
// keeps nobody from the other: neither by what it was refused, nor by a claim on what it can never have.
func TestWhoMayTakeMoreModelsIsTried(t *testing.T) {
	for _, depth := range []int{0, 1} {
		c := cluster.Uniform("site", 2, 3, cluster.Model{Name: "old", Speed: 1}, 1)
		c.Models = append(c.Models, cluster.Model{Name: "new", Speed: 1})
		c.Nodes[1].Model = 1
		tree := queue.Tree{Queues: []queue.Queue{queue.Root(), {Name: "narrow", Weight: 1_000_000, Limit: []queue.Amount{{Model: "new"}}}, {Name: "wide", Weight: 1000}}}
		s := newSite(t, c, tree, composed(func() compose.Parts {
			return compose.Parts{Estimator: declared.Estimator{}, Order: fifo.New(fifo.Default()), Sizer: fixed.Sizer{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{},
				Reserve: calendar.Policy{Depth: depth}}
		}))
		s.atOnce = true
		s.job("wide", 1, 9*unit.Hour) // holds some of the old model, so that the narrow queue is served first
		first, other := s.job("narrow", 2, 2*unit.Hour), s.job("wide", 3, unit.Hour)
		next, last := s.job("narrow", 2, unit.Hour), s.job("wide", 2, unit.Minute)
		s.until(unit.Time(61 * unit.Minute)) // the new model has been free for a minute
		for id, want := range map[plan.JobID]plan.Phase{first: plan.Active, other: plan.Finished, next: plan.Waiting, last: plan.Finished} {
			if p := s.e.View().Job(id).Phase; p != want {
				t.Errorf("depth %d: job %d is %s, want %s", depth, id, p, want)
			}
		}
		s.until(unit.Time(2 * unit.Hour))
		if p := s.e.View().Job(next).Phase; p != plan.Active {
			t.Errorf("depth %d: the next of the narrow queue is %s when there is room for it", depth, p)
		}
	}
}
