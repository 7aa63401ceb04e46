package scheduletest

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// everybody wishes every job what it asks for, in order of submission.
type everybody struct{}

func (everybody) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	for _, id := range jobs {
		into = append(into, allocate.Wish{Job: id, Workers: v.Shape(id).Gang})
	}
	return into, unit.Never
}

// turns lets the job that has run least compute, and nobody else, for a minute each.
type turns struct{}

func (turns) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	least := plan.JobID(plan.None)
	for _, id := range jobs {
		if least == plan.None || v.Executed(id) < v.Executed(least) {
			least = id
		}
	}
	if least == plan.None {
		return into, unit.Never
	}
	return append(into, allocate.Wish{Job: least, Workers: v.Shape(least).Gang}), v.Now().Add(10 * unit.Minute)
}

// TestJointSuite: deciders that are as simple as can be keep the contract.
func TestJointSuite(t *testing.T) {
	t.Run("everybody", func(t *testing.T) { ConformJoint(t, func() allocate.Joint { return everybody{} }) })
	t.Run("turns", func(t *testing.T) { ConformJoint(t, func() allocate.Joint { return turns{} }) })
}
