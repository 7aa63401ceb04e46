package plan

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Reaction is how a run with a plan went on when what the plan was made for was so no more: why it
// was asked, all ways that there were with their prices, and the one that was taken. It is kept so
// that a person sees what was not done.
type Reaction struct {
	Job   JobID     `json:"job"`
	At    unit.Time `json:"at_us"`
	Cause Cause     `json:"cause"`
	// Workers is how many it had, where it lost some.
	Workers int32 `json:"workers,omitempty"`
	// Chosen is the way that was taken, empty where the job was left to its queue.
	Chosen string `json:"chosen,omitempty"`
	Ways   []Way  `json:"ways"`
	// Left are the nodes that it left as slow, with this reaction or one before it.
	Left []Leaving `json:"left,omitempty"`
}

// Leaving is a slow node that a job left, and until when that is not expected to be repaired.
type Leaving struct {
	Node  NodeID    `json:"node"`
	Until unit.Time `json:"until_us"`
}

// Cause is why a run could not go on as it was.
type Cause string

// The causes.
const (
	Drifted Cause = "drift" // its stages took other times than its plan says
	LostOne Cause = "lost"  // a device of it was lost
)

// Way is one way to go on, the cheapest first; pipeline/reaction says what the figures are.
type Way struct {
	Name  string        `json:"way"`
	Pause unit.Duration `json:"pause_us"`
	Redo  unit.Duration `json:"redo_us"`
	Step  unit.Duration `json:"step_us"`
	Price float64       `json:"price_device_s"`
	Why   string        `json:"why,omitempty"` // it cannot be, or was not taken although it is cheaper
}

// mostReactions bounds how many are kept: the last of each of so many jobs.
const mostReactions = 256

// Reaction is the last of a job.
func (v View) Reaction(job JobID) (Reaction, bool) {
	for i := range v.s.Reactions {
		if v.s.Reactions[i].Job == job {
			return v.s.Reactions[i], true
		}
	}
	return Reaction{}, false
}

// React keeps how a job's run went on.
func (d *Draft) React(r Reaction) {
	// A new list: a mark, or a copy of the state, may hold the old.
	all := slices.DeleteFunc(slices.Clone(d.s.Reactions), func(o Reaction) bool { return o.Job == r.Job })
	if len(all) >= mostReactions {
		all = all[1:]
	}
	d.s.Reactions = append(all, r)
	d.aside(Aside{Kind: "reaction", Job: r.Job, Reaction: &r})
}
