// Package express is a fast lane before any order: a small job whose owner says that it
// takes a few minutes, a debugging run for instance, goes before everything else and
// takes the room of whatever runs. One that runs longer than it was to is demoted: from
// then on it is ranked like any other job, and may have to make way.
//
// The lane gives nobody else a better place than the order behind it does: where that
// one does not preempt, batch jobs still do not displace each other.
//
// Production practice rather than a paper (a debug partition with a time limit). Ours is
// that the lane has no devices of its own: an order ranks jobs and cannot keep room free,
// nor see how much of it the lane has taken. A guarantee of the lane's queue does that.
package express

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "express", Part: schedule.OrderPart, Status: "after",
	Source: "production practice: debug partitions with a time limit",
	Idea:   "small jobs that are declared short go first and displace others, and are demoted when they run longer",
	Goal:   "latency", Needs: "the owner's estimate", Live: "preempts by checkpoint and restart",
}

// Config says who may use the lane.
type Config struct {
	// Cap is what a job may declare at most, and for how long it runs before it is
	// demoted.
	Cap unit.Duration `yaml:"cap" above:"0"`
	// Devices is what a job may take at most: one node.
	Devices int32 `yaml:"devices" least:"1"`
}

// Default lets ten minutes on a node of eight devices in.
func Default() Config { return Config{Cap: 10 * unit.Minute, Devices: 8} }

// Order is the strategy.
type Order struct {
	strategy.Around[schedule.Order] // the order behind the lane
	config                          Config
	rules                           schedule.Rules
}

var _ schedule.Order = (*Order)(nil)

// New puts the lane before an order.
func New(c Config, behind schedule.Order) *Order {
	return &Order{strategy.Around[schedule.Order]{Inner: behind}, c, behind.Rules()}
}

// Rules let the lane displace; the others displace each other only if they did before.
func (o *Order) Rules() schedule.Rules {
	r := o.rules
	r.Preempt = true
	return r
}

// The groups in which jobs are ranked. The one of those that run is used where the order
// behind does not preempt.
const (
	lane = iota
	running
	batch
)

// step is what a group adds to the first word of a rank: the words of the orders there
// are, priorities, queues and levels, are far smaller.
const step = 1 << 40

// Key is the group and in it the submission, or the rank of the order behind.
func (o *Order) Key(v plan.View, job plan.JobID) (schedule.Key, unit.Time) {
	j := v.Job(job)
	ran := v.Executed(job)
	computes := j.Run != plan.None && v.Run(j.Run).Status == plan.Running
	if o.admits(v, job) && ran < o.config.Cap {
		until := unit.Never
		if computes {
			until = v.Now().Add(o.config.Cap - ran)
		}
		return schedule.Key{lane, int64(j.Submit)}, until
	}
	key, until := o.Inner.Key(v, job)
	group := int64(batch)
	if !o.rules.Preempt && j.Run != plan.None && !o.admits(v, job) {
		group = running // nobody behind the lane displaces it
	}
	key[0] += group * step
	return key, until
}

// admits reports whether a job was declared short and small enough for the lane.
func (o *Order) admits(v plan.View, job plan.JobID) bool {
	shape, declared := v.Shape(job), v.Job(job).Declared
	return declared > 0 && declared <= o.config.Cap && shape.Milli(shape.Most()) <= int64(o.config.Devices)*1000
}
