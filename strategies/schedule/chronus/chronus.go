// Package chronus promises deadlines: a job that has one is admitted only if a calendar
// of leases has room for all its work before it, and is otherwise refused with the
// earliest end that could be promised (Gao et al., Chronus, SoCC 2021).
//
// Time is cut in leases. An admitted job holds as many as it needs, as late as its
// deadline allows; if there is no room beside the others' all promises are packed anew,
// the widest and most pressed first. Whoever holds the lease that runs, runs; every few
// minutes the room that is left goes to those with the least left to do, jobs without
// deadlines and admitted ones before their time, who then give their last leases back.
//
// Read: the artefact's scheduler. Ours: the lease that runs and the one that a deadline
// cuts count for what remains of them, since the guarantee fails otherwise and short
// jobs fit better; jobs that outlive their estimates look for more leases; the integer
// program only packs what greedy packing could not, and is off by default (see
// Config.ExactJobs). Left out: soft deadlines with several values, trial runs that
// filter broken jobs, and the search over placements: devices are counted and taken for
// alike, so on unlike devices or in fragments a promise may fail.
package chronus

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/chronus/lease"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "chronus", System: "Chronus", Step: "schedule", Part: allocate.JointPart, Status: "after",
	Source: "Gao et al., SoCC 2021; ChronusArtifact read, partial leases are ours",
	Idea:   "deadlines are promised from a calendar of leases, or refused with the earliest end there could be; the rest goes by the shortest time left",
	Goal:   "deadline", KeepsDeadlines: true, Needs: "an estimate of the run time", Live: "preempts by checkpoint and restart",
}

// Chronus is the strategy: gate and joint decider in one, over one calendar.
type Chronus struct {
	selector
	jobs   []live
	chosen []plan.JobID
}

var (
	_ schedule.Gate        = (*Chronus)(nil)
	_ strategy.Remembering = (*Chronus)(nil)
	_ allocate.Joint       = (*Chronus)(nil)
)

// New returns the strategy; the configuration must be valid.
func New(c Config) *Chronus { return &Chronus{selector: *newSelector(c, 0)} }

// Admit promises a job with a deadline that it will be met, or refuses it.
func (c *Chronus) Admit(v plan.View, job plan.JobID) (bool, plan.Reason) {
	j := v.Job(job)
	if j.Deadline == 0 || j.Estimate == 0 {
		return true, plan.Reason{} // nothing to promise, or nothing to promise it by
	}
	c.survey(v)
	ok, earliest := c.admit(v.Now(), c.ask(of(v, job), j.Submit.Add(j.Deadline)), func(job plan.JobID) unit.Duration { return of(v, job).left })
	if ok || c.config.Unguaranteed || earliest == unit.Never {
		return true, plan.Reason{} // what could never be promised is not kept out for its deadline
	}
	return false, plan.Reason{Code: plan.NotFeasible, A: int64(earliest.Sub(j.Submit))}
}

// Wishes are the holders of the lease that runs, then the others by what is left. From
// one tick to the next nobody gives way but to a holder.
func (c *Chronus) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	if len(jobs) == 0 {
		return into, unit.Never
	}
	c.survey(v)
	c.jobs = c.jobs[:0]
	keep := v.Now() != c.config.tick(v.Now())
	for _, id := range jobs {
		l := of(v, id)
		l.stays = keep && v.Job(id).Run != plan.None
		c.jobs = append(c.jobs, l)
	}
	holders := 0
	c.chosen, holders = c.choose(v.Now(), c.jobs, c.chosen[:0])
	for i, id := range c.chosen {
		w := allocate.Wish{Job: id, Workers: v.Shape(id).Gang, Reason: plan.Reason{Code: plan.Fits}}
		if i < holders {
			w.Reason.Code = plan.LeaseBegins
		}
		into = append(into, w)
	}
	slices.Sort(c.chosen)
	runs := c.chosen
	for _, id := range jobs { // in order of id too
		if len(runs) > 0 && runs[0] == id {
			runs = runs[1:]
		} else {
			into = append(into, allocate.Wish{Job: id, Reason: plan.Reason{Code: plan.LeaseOver}})
		}
	}
	return into, c.config.tick(v.Now() + 1)
}

// survey takes in how many devices there are and which jobs are over.
func (c *Chronus) survey(v plan.View) {
	devices := int64(0)
	for id := range plan.NodeID(v.Nodes()) {
		if n := v.Node(id); n.Status == plan.Up {
			devices += int64(n.Count)
		}
	}
	c.cal.Resize(devices)
	c.cal.Pass(v.Now())
	for i := len(c.cal.Holdings()) - 1; i >= 0; i-- {
		if job := c.cal.Holdings()[i].Job; v.Job(job).Phase.Over() {
			c.cal.Drop(job)
		}
	}
}

// unknown is taken for the rest of jobs of which nobody knows how long they take: they
// come last.
const unknown = 365 * unit.Day

// of is what is believed of a job. One that has outlived its estimate is taken to need
// a tenth of it more. Part of a device counts as one.
func of(v plan.View, job plan.JobID) live {
	j, shape := v.Job(job), v.Shape(job)
	l := live{job: job, size: (shape.Milli(shape.Gang) + 999) / 1000, left: unknown}
	if j.Estimate > 0 {
		if l.left = j.Estimate - v.Work(job); l.left <= 0 {
			l.left = max(1, j.Estimate/10)
		}
	}
	return l
}

// Remember encodes the promises.
func (c *Chronus) Remember() []byte {
	b := figures.PutCount(nil, len(c.cal.Holdings()))
	for _, h := range c.cal.Holdings() {
		b = figures.PutCount(figures.Put(b, int64(h.Job), h.Size, int64(h.By)), len(h.Leases))
		b = figures.Put(b, h.Leases...)
	}
	return b
}

// Recall reads what Remember wrote.
func (c *Chronus) Recall(memory []byte) error {
	r := figures.Read(memory)
	var holdings []lease.Holding
	for range r.Counted {
		h := lease.Holding{Job: plan.JobID(r.Next()), Size: r.Next(), By: unit.Time(r.Next())}
		h.Leases = r.List(r.Count())
		holdings = append(holdings, h)
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of chronus: %w", err)
	}
	c.cal.Replace(holdings)
	return nil
}
