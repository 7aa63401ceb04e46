package reaction

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
)

// Part says how a run that has a plan goes on when its stages drift or it loses devices.
var Part = strategy.NewPart[Policy](strategy.Part{Name: "reaction", Does: "says how a run goes on whose stages drift or whose devices are lost", Rank: 97,
	Step: "pipeline", Null: "none", Default: "by-price"})

// Policy says how runs with plans go on. It is asked in the cycle; what it chooses is done through the
// Scheduler, which knows who may have what: a way that queues, windows or claims of others forbid is
// passed over for the next.
type Policy interface {
	// Setting is by what it is asked.
	Setting() Setting
	// Ways are how a run could go on, in the order in which they are to be tried. Those that cannot be
	// have a Why and come last. None at all leaves the run as it is, or to its queue.
	Ways(r *Run) []Option
}

// Setting is what no State says.
type Setting struct {
	// Skew is by which part a stage may take longer or shorter than its plan says before anybody asks.
	Skew float64
	// Change is what it takes to tell a run another plan, besides the copies, Start how long until the
	// processes of a run have begun again and found each other, and Repair how long a lost node is
	// believed to be away before any was seen to come back: then it counts as one of those.
	Change, Start, Repair unit.Duration
}
