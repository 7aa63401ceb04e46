package compose_test

import (
	"reflect"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/engine/placing"
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/victims"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// versatile decides for all jobs at once, admits those that came with an even number,
// takes the last place of those that the placer offers, and remembers how often it was
// asked to.
type versatile struct{ remembered int }

func (*versatile) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	for _, id := range jobs {
		into = append(into, allocate.Wish{Job: id, Workers: 1})
	}
	return into, unit.Never
}

func (*versatile) Admit(_ plan.View, job plan.JobID) (bool, plan.Reason) {
	return job%2 == 0, plan.Reason{}
}

func (*versatile) Rate(_ plan.View, _ allocate.Need, found []allocate.Candidate) int {
	return len(found) - 1
}

func (o *versatile) Remember() []byte {
	o.remembered++
	return []byte{1}
}

func (*versatile) Recall([]byte) error { return nil }

// nobody is a gate and a rater that must not be asked.
type nobody struct{ t *testing.T }

func (n nobody) Admit(plan.View, plan.JobID) (bool, plan.Reason) {
	n.t.Error("the composition's gate was asked")
	return true, plan.Reason{}
}

func (n nobody) Rate(plan.View, allocate.Need, []allocate.Candidate) int {
	n.t.Error("the composition's rater was asked")
	return 0
}

// TestJointThatDoesMore: a joint decider that is a gate and a rater as well is asked as
// those too, in the place of the composition's, and has one memory.
func TestJointThatDoesMore(t *testing.T) {
	d := &versatile{}
	s := compose.New(compose.Parts{Joint: d, Gate: nobody{t}, Rater: nobody{t}, Estimator: declared.Estimator{}, Placer: bestfit.New(bestfit.Default()), Flow: maxmin.Policy{}})
	e := engine.New(cluster.Uniform("three", 3, 1, cluster.Model{Name: "gpu", Speed: 1}, 3), s, engine.DefaultPolicy())
	var events []engine.Event
	for range 2 {
		events = append(events, engine.Event{Kind: engine.Submit, Spec: &workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}}})
	}
	e.Step(0, events)
	v := e.View()
	if even, odd := v.Job(0), v.Job(1); even.Run == plan.None || odd.Phase != plan.Refused {
		t.Fatalf("it is no gate: the even job is %s, the odd one %s", even.Phase, odd.Phase)
	}
	v.GrantsOf(v.Job(0).Run, func(g plan.Grant) {
		if g.Node == 0 {
			t.Errorf("the job runs on node %d, the placer's first: the decider did not rate", g.Node)
		}
	})
	if d.remembered != 1 {
		t.Errorf("it was asked %d times in one decision what it remembers", d.remembered)
	}
}

// Two parts call their contracts Policy.
type (
	// Flow is that of step 5.
	Flow = flow.Policy
	// Reaction is that of step 4.
	Reaction = reaction.Policy
)

// every is a strategy of every part of a Scheduler, and counts how often it is asked what
// it remembers.
type every struct {
	profile.Estimator
	schedule.Gate
	schedule.Order
	allocate.Sizer
	allocate.Placer
	placing.Planner
	Flow
	victims.Chooser
	allocate.Rater
	allocate.Switcher
	allocate.Sharer
	allocate.Joint
	Reaction
	asked *int
}

func (e every) Remember() []byte {
	*e.asked++
	return nil
}

func (every) Recall([]byte) error { return nil }

// TestEveryPartRemembers: whichever part remembers, the Scheduler that is composed of it
// does, and asks it once.
func TestEveryPartRemembers(t *testing.T) {
	fields := reflect.TypeFor[compose.Parts]()
	for i := range fields.NumField() {
		if fields.Field(i).Type.Kind() != reflect.Interface {
			continue // numbers
		}
		asked := 0
		parts := compose.Parts{Order: fifo.Order{}}
		reflect.ValueOf(&parts).Elem().Field(i).Set(reflect.ValueOf(every{Order: fifo.Order{}, asked: &asked}))
		s, _ := strategy.Can[strategy.Remembering](compose.New(parts))
		if s.Remember(); asked != 1 {
			t.Errorf("%s remembers, and was asked %d times what", fields.Field(i).Name, asked)
		}
	}
}
