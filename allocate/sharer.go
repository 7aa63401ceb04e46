package allocate

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// SharePart offers places beside those that hold devices. There need be none: then who finds no
// devices of his own waits.
var SharePart = strategy.NewPart[Sharer](strategy.Part{Name: "share", Rank: 35, Step: "allocate"})

// Sharer lets jobs for which there is no room live beside others as their guests, whatever
// the order and the placer are. A guest holds nothing, and keeps its place in the queue: it is
// tried for devices of its own as if it waited, once it moves.
type Sharer interface {
	// Beside appends the place as a guest where a job is expected to go fastest, with the part of its own
	// rate at which it would, in thousandths, as score; none where there is no place.
	Beside(v plan.View, need Need, into []Candidate) []Candidate
	// Moves reports whether devices of its own would be worth a restart to a guest.
	Moves(v plan.View, job plan.JobID) bool
	// Sees notes how much of its devices' time a job's run was seen to keep busy.
	Sees(v plan.View, job plan.JobID, busy unit.Milli)
	Watcher
}
