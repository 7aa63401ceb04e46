// Package byprice lets a run go on in the way that loses the fewest device-seconds: as it is, with its
// layers cut anew, on fewer devices, on spare ones, or after the repair of what broke. All ways are
// priced each time by package reaction, from simulated plans, and shown.
//
// Its null leaves a run whose stages drift as it is, and one that has lost a device to its queue.
package byprice

import (
	"slices"
	"strings"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "by-price", Part: reaction.Part, Status: "ours",
	Source: "pipeline/reaction; ReCycle, Oobleck, Varuna and just-in-time checkpointing have one way each",
	Idea:   "a run that drifts or loses devices goes on in the way that loses the fewest device-seconds, of eight that are priced",
	Goal:   "throughput", Needs: "jobs with a plan; stage times from the driver for drift, and probes of devices to tell slow ones from slow layers",
	Live: "a lost node: the job starts again at once on what is left, or waits for the repair. Cannot keep the processes that are left, because they save and leave; drift is told by the trainer, which times its stages and takes another plan up while it goes on. It times the same work on each device as well, so that a slow device is known from slow layers: layers leave it, and come back when it is well. Cannot leave it for a spare, because the local driver has one node, and it is nodes that are left",
}

// NoneDescription is that of the null.
var NoneDescription = strategy.Description{
	Name: "none", Part: reaction.Part, Status: "null",
	Source: "the usual restart",
	Idea:   "a drift changes no plan, and a run that lost a device is queued again",
	Goal:   "throughput", Needs: "nothing", Live: "as in simulation",
}

// Config is what nobody can know from the cluster.
type Config struct {
	// Skew is by which part a stage may differ from its plan before another plan is thought of.
	Skew float64 `yaml:"skew" above:"0"`
	// Change is what telling a run another plan takes, besides the copies, and Start what a restart
	// takes, besides reading the checkpoint.
	Change unit.Duration `yaml:"change" least:"0"`
	Start  unit.Duration `yaml:"start" least:"0"`
	// Repair is how long a lost node is believed to be away before any came back: it counts as the first of
	// those that did.
	Repair unit.Duration `yaml:"repair" above:"0"`
	// Always is the way that is tried first wherever it can be, whatever it costs, by the first word of its
	// name: the one remedy that most systems have, to compare with. The others follow by price.
	Always string `yaml:"always" of:"cheapest ride re-route reshape re-cut drop swap restart wait"`
}

// Cheapest is the value of Always by which no way is put before a cheaper one.
const Cheapest = "cheapest"

// Default returns the configuration used where none is given: a tenth is what stage times differ by
// from minute to minute without a cause, and half an hour is what a reboot with its checks takes.
func Default() Config {
	return Config{Skew: .1, Change: 100 * unit.Millisecond, Start: 30 * unit.Second, Repair: plan.UsualRepair, Always: Cheapest}
}

// Policy is the strategy.
type Policy struct{ config Config }

var _ reaction.Policy = Policy{}

// New makes it.
func New(c Config) Policy { return Policy{c} }

// Setting is what its configuration says.
func (p Policy) Setting() reaction.Setting {
	return reaction.Setting{Skew: p.config.Skew, Change: p.config.Change, Start: p.config.Start, Repair: p.config.Repair}
}

// Ways are all, the cheapest first, but for the one that is always tried before.
func (p Policy) Ways(r *reaction.Run) []reaction.Option {
	all := r.Options()
	slices.SortStableFunc(all, func(a, b reaction.Option) int { return p.before(&a) - p.before(&b) })
	return all
}

// before is less for the way that is always tried first, where it can be.
func (p Policy) before(o *reaction.Option) int {
	if o.Why == "" && strings.HasPrefix(o.Name, p.config.Always) {
		return -1
	}
	return 0
}

// None is the null.
type None struct{}

var _ reaction.Policy = None{}

// Setting says nothing, as nobody asks.
func (None) Setting() reaction.Setting { return reaction.Setting{} }

// Ways are none.
func (None) Ways(*reaction.Run) []reaction.Option { return nil }
