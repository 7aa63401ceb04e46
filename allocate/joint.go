package allocate

import (
	"fmt"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Wish is what a joint decider wants one job to have from now on.
type Wish struct {
	Job     plan.JobID
	Workers int32 // 0: it waits
	// Slots are exact places; nil lets the composition's placer choose among the device
	// models of Models, where 0 is all that the job may use.
	Slots  []plan.Slot
	Models uint64
	// Share says how its run is to use its devices; nil leaves a run as it is, and starts
	// one as the placer says or else its job asks.
	Share *plan.ShareTerms
	// Suspend keeps its run resident without computing.
	Suspend bool
	Reason  plan.Reason
}

// JointPart decides for all jobs at once, in the place of size and order. There need be
// none. It is of the step that its strategy says.
var JointPart = strategy.NewPart[Joint](strategy.Part{Name: "joint", Does: "decides for all jobs at once", Rank: 130, Forbids: []string{"size", "order"}})

// Joint decides for all jobs at once. Jobs are all that wait or run, by id. One without
// a wish gets nothing: it waits, or is stopped. Wishes are carried out in their order,
// as far as there is room. again is when it wants to decide even if nothing happens;
// unit.Never is only when jobs come and go.
type Joint interface {
	Wishes(v plan.View, jobs []plan.JobID, into []Wish) (wishes []Wish, again unit.Time)
}

// Rhythm is a Joint that looks at runs at most once in Every, however much happens.
// Between two such rounds it is asked only where a job waits that there is room for, and
// then only starts are carried out.
type Rhythm interface {
	Every() unit.Duration
}

// Gathering is a Rhythm that lets jobs gather between two rounds: it is not asked before,
// though there is room.
type Gathering interface{ Gathers() }

// Rotating is a Joint that lets jobs take turns by design: a run may go for another that went for it before,
// when it has had its turn, which is so long.
type Rotating interface{ Turn() unit.Duration }

// Slow is a Joint whose decision may take longer than a cycle has. Its question is put
// outside, where Solve, which must follow from the question alone, answers it; Learn is
// handed the reply before Wishes is next called. A nil question asks nothing.
type Slow interface {
	Question(v plan.View, jobs []plan.JobID) []byte
	Solve(question []byte) (reply []byte, err error)
	Learn(reply []byte)
}

// Renter is a Joint that rents nodes: it says which of them it wants, and which not any
// more; those are given back once they are empty.
type Renter interface {
	Rentals(v plan.View) (want, unwanted []plan.NodeID)
}

// Check panics where the slots of a wish are for another number of workers than it
// names: it could never be carried out, and would be tried for ever.
func (w *Wish) Check() {
	sum := int32(0)
	for i := range w.Slots {
		sum += w.Slots[i].Workers
	}
	if w.Slots != nil && sum != w.Workers {
		panic(fmt.Sprintf("allocate: a wish for %d workers of job %d names slots for %d", w.Workers, w.Job, sum))
	}
}
