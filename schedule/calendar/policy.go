package calendar

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// ReservePart says for whom room is held that comes free later.
var ReservePart = strategy.NewPart[Policy](strategy.Part{Name: "reserve", Rank: 60, Step: "schedule", Null: "no-reservation", Default: "no-reservation"})

// Policy says who gets a place in the calendar, so that work which fills in does not
// put him off for ever.
type Policy struct {
	// Depth is how many of the best-ranked jobs that do not fit have a claim.
	Depth int `yaml:"depth" least:"0"`
	// Patience is how long the oldest job waits until it has a claim whatever its rank;
	// 0 is for ever. It bounds starvation under orders that would let it wait.
	Patience unit.Duration `yaml:"patience" least:"0"`
	// Slack is how long a claim may be put off by work that takes longer than expected
	// before its room is closed for all other work. Room that is closed lies idle until
	// the last run on it has really ended, so without slack every estimate that is too
	// short costs devices.
	Slack unit.Duration `yaml:"slack" least:"0"`
	// Repair is how long a lost node is believed to be away before any came back: it counts as the first of those. A
	// job may claim the node for when it should be back, so that what fills in does not put it off for longer than
	// the repair takes. 0 is that nobody counts on a lost node.
	Repair unit.Duration `yaml:"repair" least:"0"`
	// Foresight, where there is one, is asked how long runs take, who claims and who passes whom.
	Foresight Foresight `yaml:"-"`
}

// Foresight is what a policy goes by that does not believe estimates as they come. It must follow
// from the State alone. Where the Policy has one,
// those who do not displace others pass whoever ranks before them and does not fit, or waits for
// his turn, in order of Step. Nobody passes a claim that is closed.
type Foresight interface {
	// Length is how long a run of a job on so many workers is reckoned to take from now on.
	Length(v plan.View, job plan.JobID, workers int32) unit.Duration
	// Expected is when a run is reckoned to end, and whether that stays so until then, see Calendar.Look.
	Expected(v plan.View, run plan.RunID) (end unit.Time, steady bool)
	// Step is how long a job is likely to take, in steps, the shortest first, and until when that is so.
	Step(v plan.View, job plan.JobID) (step int32, until unit.Time)
	// Claims reports whether a job that does not fit may have a claim by its rank, and Pays whether a claim on
	// room that is there at an instant is worth what it keeps idle until then, where so many wait who are alike.
	Claims(v plan.View, job plan.JobID, workers int32) bool
	Pays(v plan.View, job plan.JobID, alike int, at unit.Time) bool
}

// None has no calendar but for maintenance.
var None = strategy.Description{
	Name: "no-reservation", Part: ReservePart, Status: "null",
	Source: "folklore: what YARN's backfill does",
	Idea:   "nobody has a claim on what comes free: whoever fits and ranks first takes it",
	Goal:   "throughput", Needs: "nothing", Live: "as simulated",
}

// EasyDescription describes one claim, for the best-ranked job that does not fit.
var EasyDescription = strategy.Description{
	Name: "easy", System: "EASY", Part: ReservePart, Status: "after",
	Source: "Lifka, The ANL/IBM SP scheduling system, JSSPP 1995; sticky claims and the bound on starvation are ours",
	Idea:   "the first job that does not fit has a place in the calendar; smaller work fills in where it does not put that off",
	Goal:   "throughput", Needs: "an estimate of the run time; without one the gang's nodes are drained", Live: "as simulated",
}

// ConservativeDescription describes claims for all that wait, up to a depth.
var ConservativeDescription = strategy.Description{
	Name: "conservative", System: "conservative backfilling", Part: ReservePart, Status: "after",
	Source: "Mu'alem and Feitelson, TPDS 12(6), 2001; bounded depth and sticky claims are ours",
	Idea:   "every job that does not fit has a place in the calendar, up to a depth; nothing that fills in puts one off",
	Goal:   "throughput", Needs: "an estimate of the run time", Live: "as simulated",
}

// Easy and Conservative are the default policies of their names.
func Easy() Policy {
	return Policy{Depth: 1, Patience: unit.Day, Slack: unit.Day, Repair: plan.UsualRepair}
}

// Conservative is the default policy of its name.
func Conservative() Policy {
	return Policy{Depth: 32, Patience: unit.Day, Slack: unit.Day, Repair: plan.UsualRepair}
}
