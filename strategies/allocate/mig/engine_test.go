package mig

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/envelope"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

// everybody wishes every job what it asks for.
type everybody struct{}

func (everybody) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	for _, id := range jobs {
		into = append(into, allocate.Wish{Job: id, Workers: v.Shape(id).Gang})
	}
	return into, unit.Never
}

// Through the whole cycle, checked at every step: jobs that ask for instances and a few
// that want whole devices all end, on two devices that are cut as they come.
func TestCycle(t *testing.T) {
	table, _ := envelope.MIG("A100", 0)
	c := cluster.Uniform("a100s", 1, 2, cluster.Model{Name: "A100", Memory: 40 << 10, Speed: 1, Geometries: table.Geometries()}, 1)
	dice := rand.New(rand.NewPCG(1, 0))
	var jobs scheduletest.Jobs
	for i := range 60 {
		part := table.Part(envelope.Instance{Profile: []int{0, 0, 2, 3}[dice.IntN(4)]})
		w := workload.Job{Name: fmt.Sprint("job", i), Submit: unit.Time(i) * unit.Time(5*unit.Minute),
			Resources: workload.Resources{Gang: 1, Devices: 1, Share: part.Milli, Memory: part.Memory}}
		if i%10 == 9 {
			w.Share = unit.Whole
		}
		jobs = append(jobs, scheduletest.Job{Job: w, Truth: workload.Truth{Duration: unit.Duration(5+dice.IntN(50)) * unit.Minute}})
	}
	config := scheduletest.JointConfig(c, jobs, everybody{}, oracle.Estimator{})
	config.Scheduler = compose.New(compose.Parts{Joint: everybody{}, Estimator: oracle.Estimator{}, Placer: New(Default()), Flow: maxmin.Policy{}})
	o, err := scheduletest.Run(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range o.Jobs {
		if j.Outcome != report.Finished {
			t.Errorf("%s is %s", j.Name, j.Outcome)
		}
	}
}
