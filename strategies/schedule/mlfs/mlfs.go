// Package mlfs ranks jobs by what their training gains and by what they ask of the
// cluster, and under overload ends those that have reached their goal: MLFS (Wang, Liu
// and Shen, CoNEXT 2020). MLF-H weighs the loss that the next iterations bring down
// against deadline, remaining time and waiting; MLF-RL learns to rank, from MLF-H first
// and then by its own results in simulation; MLF-C is the load control.
//
// Recalled, and after it where ours: P = a P_ml + (1-a) P_comp. P_ml is the last
// percent's part of the whole fall of the loss over the percent reached, P_comp is
// 1/deadline + 1/remaining + wait, all in hours. What remains is in device-hours, so
// that size counts; it is known from reported progress, else from the estimate, and
// else what was attained stands in for it. Urgency is the job's priority and goes first.
// Ranks are of the last full Period, so that they hold until the next.
//
// Left out: tasks of one job with ranks of their own, and the iteration's dependencies
// between them (a gang starts whole here), migration off loaded servers, and policy
// gradients (MLF-RL is searched by the cross-entropy method instead).
package mlfs

import (
	"math"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Description is what MLF-H says about itself.
var Description = strategy.Description{
	Name: "mlfs", System: "MLFS", Part: schedule.OrderPart, Status: "after",
	Source: "Wang, Liu and Shen, CoNEXT 2020; hiddenlayer2020/ML-Job-Scheduler-MLFS (not runnable as it is)",
	Idea:   "jobs whose loss still falls and that are soon done go first; under overload those at their target loss are ended",
	Goal:   "throughput", Needs: "reports of progress and loss; without them estimates, or else attained service",
	Live: "preempts by checkpoint and restart; ends a job at its target loss with the reason shed, where jobs report it: not on Kubernetes",
}

// Config tunes MLF-H and MLF-C.
type Config struct {
	// Period is how often jobs are ranked anew and the load is looked at, and how long a
	// run is left alone.
	Period unit.Duration `yaml:"period" above:"0"`
	// Learning is the weight of what the training gains against what it asks for: a.
	Learning float64 `yaml:"learning" least:"0" most:"1"`
	// Deadline, Remaining and Waiting weigh an hour of each.
	Deadline  float64 `yaml:"deadline" least:"0"`
	Remaining float64 `yaml:"remaining" least:"0"`
	Waiting   float64 `yaml:"waiting" least:"0"`
	// Stay is by how much more a running job counts, so that near equals do not displace
	// each other.
	Stay float64 `yaml:"stay" least:"0"`
	// Overload is when jobs are ended: what waits asks for so much of all devices; 0 is
	// never.
	Overload unit.Milli `yaml:"overload" least:"0"`
	// Negligible ends, under overload, a job without a target whose loss can fall by no
	// more than this part of its whole fall; 0 is never.
	Negligible float64 `yaml:"negligible" least:"0" below:"1"`
}

// Default returns the configuration used where none is given: all weights alike but that
// of waiting, which only keeps jobs from starving.
func Default() Config {
	return Config{Period: 5 * unit.Minute, Learning: .5, Deadline: 1, Remaining: 1, Waiting: .01, Stay: .25, Overload: 500, Negligible: .005}
}

// Order ranks by a score of what was so when the present period began.
type Order struct {
	config Config
	score  func(f *facts) float64
}

var _ schedule.Order = (*Order)(nil)

// New returns MLF-H; the configuration must be valid.
func New(c Config) *Order { return &Order{config: c, score: c.heuristic} }

// Rules let better ranks displace worse ones, once those have run for a period.
func (o *Order) Rules() schedule.Rules {
	return schedule.Rules{Preempt: true, MinimumRun: o.config.Period}
}

// scale turns scores into ranks; scores beyond best are alike.
const (
	scale = 1e9
	best  = 1e9
)

// Key is the priority, then the score; both hold until the period ends, or the job
// reports.
func (o *Order) Key(v plan.View, id plan.JobID) (schedule.Key, unit.Time) {
	f := factsOf(v, id, o.config.Period)
	score := o.score(&f)
	return schedule.Key{-int64(v.Job(id).Priority), -int64(math.Round(scale * max(-best, min(best, score))))}, f.at.Add(o.config.Period)
}

// heuristic is MLF-H's score, in jobs per hour.
func (c Config) heuristic(f *facts) float64 {
	learning := f.falling / (1 + 100*f.progress)
	asks := c.Remaining/max(f.left, minute) + c.Waiting*f.waited
	if f.slack > 0 { // past its deadline it is late, whatever is done
		asks += c.Deadline / max(f.slack, minute)
	}
	score := c.Learning*learning + (1-c.Learning)*asks
	if f.running {
		score *= 1 + c.Stay
	}
	return score
}

// minute keeps what is nearly nothing from counting more than everything else.
const minute = 1. / 60

// facts are what is known of a job as of the beginning of the present period; times are
// in hours, attained and left in device-hours.
type facts struct {
	at                                  unit.Time
	devices, executed, attained, waited float64
	left                                float64 // attained stands in for it where it is unknown
	known                               bool    // that it is not
	progress                            float64 // 0..1
	falling                             float64 // part of the whole fall of the loss that came with the last percent; 1 at first
	slack                               float64 // to the deadline; 0 without
	running                             bool
}

// factsOf reads the facts of a job.
func factsOf(v plan.View, id plan.JobID, period unit.Duration) facts {
	j, shape, now := v.Job(id), v.Shape(id), v.Now()
	into := now.Sub(0) % period
	f := facts{at: now.Add(-into), falling: 1, progress: float64(j.Progress) / 1e6}
	executed, served, milli := v.Executed(id), v.Service(id), shape.Milli(shape.Gang)
	waited := j.Waited
	if j.Run != plan.None && v.Run(j.Run).Status == plan.Running {
		f.running = true
		since := min(into, executed-j.Executed)
		executed -= since
		served -= int64(since) * shape.Milli(v.Run(j.Run).Workers)
	} else if j.Phase.Waits() {
		waited += max(0, f.at.Sub(j.Since))
	}
	f.devices, f.executed, f.waited = float64(max(1, milli))/1000, hours(executed), hours(waited)
	f.attained = float64(served) / 1000 / float64(unit.Hour)
	f.left = f.attained
	if total := whole(&j); total > 0 {
		for total <= executed { // it was overrun, and is not about to end
			total *= 2
		}
		f.left, f.known = hours(total-executed)*f.devices, true
	}
	if j.Deadline > 0 {
		f.slack = hours(j.Submit.Add(j.Deadline).Sub(f.at))
	}
	if j.Fallen > 0 {
		f.falling = max(0, min(1, j.Pace*1e4/j.Fallen))
	}
	return f
}

func hours(d unit.Duration) float64 { return d.Seconds() / 3600 }

// whole is the running time that a job is believed to take in all: what it has reported
// says more than anybody's estimate.
func whole(j *plan.Job) unit.Duration {
	if j.Loss > 0 && j.Progress > 0 {
		return unit.Duration(float64(j.SeenAt) / (float64(j.Progress) / 1e6))
	}
	return j.Estimate
}
