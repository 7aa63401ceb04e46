package liquid_test

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/liquid"
	"github.com/musterdl/muster/strategies/profile/declared"
)

func TestConformance(t *testing.T) {
	scheduletest.ConformJoint(t, func() allocate.Joint { return liquid.NewBatch(liquid.DefaultBatch()) })
}

// wished notes the most workers that were ever wished.
type wished struct {
	*liquid.BatchPolicy
	most int32
}

func (w *wished) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	into, again := w.BatchPolicy.Wishes(v, jobs, into)
	sum := int32(0)
	for i := range into {
		sum += into[i].Workers
	}
	w.most = max(w.most, sum)
	return into, again
}

// TestBatchHoldsWhoMayStart: places are sought for jobs that their queue lets run, not for
// those that come first and wait all the same.
func TestBatchHoldsWhoMayStart(t *testing.T) {
	var jobs scheduletest.Jobs
	for i, gang := range []int32{4, 4, 16, 4, 2, 4, 2} {
		jobs = append(jobs, scheduletest.Job{Job: workload.Job{Name: string(rune('a' + i)),
			Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole}}, Truth: workload.Truth{Duration: unit.Hour}})
	}
	tree := queue.Tree{Queues: []queue.Queue{queue.Root()}}
	tree.Queues[0].Limit = []queue.Amount{{Milli: 10_000}}
	decider := &wished{BatchPolicy: liquid.NewBatch(liquid.DefaultBatch())}
	config := scheduletest.JointConfig(scheduletest.Nodes(5, 4, 0), jobs, decider, declared.Estimator{})
	config.First = []engine.Event{{Kind: engine.Shares, Queues: &tree}}
	o, err := scheduletest.Run(config)
	if err != nil || o.Finished != 6 {
		t.Fatalf("%d of the 6 jobs that may ever start have finished: %v", o.Finished, err)
	}
	if decider.most != 10 {
		t.Errorf("%d workers were wished at once under a limit of 10", decider.most)
	}
}
