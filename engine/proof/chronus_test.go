package proof

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// chronus admits a job with a deadline only if a calendar of leases has room for it in
// time, and refuses it with the earliest deadline it could keep; the others run on
// leases that the calendar may cut short (after Gao et al., SoCC 2021; one
// kind of device, no placement cost). It pulls at: refusal, leases and their instants,
// claims on the future as memory.
type chronus struct{ calendar []claim }

// claim is a stretch of devices that a job was promised.
type claim struct {
	Job      plan.JobID
	From, To unit.Time
	Milli    int64
}

const (
	lease = 120 * unit.Second
	slack = 30 * unit.Second // for starting, and for those who have to leave first
)

func (c *chronus) Remember() []byte { return remember(c.calendar) }

func (c *chronus) Recall(memory []byte) error { return recall(memory, &c.calendar) }

func (c *chronus) Decide(d *plan.Draft, why schedule.Trigger) unit.Time {
	c.calendar = slices.DeleteFunc(c.calendar, func(x claim) bool { return d.Job(x.Job).Phase.Over() })
	for _, job := range why.Jobs {
		if j := d.Job(job); j.Phase == plan.Waiting && !j.Admitted && j.Deadline > 0 && j.Declared > 0 {
			c.admit(d, job, &j)
		}
	}
	for _, x := range c.calendar {
		if x.From <= d.Now() && d.Job(x.Job).Phase == plan.Waiting {
			c.claim(d, x)
		}
	}
	c.expire(d)
	for _, job := range waiting(d.View) {
		c.start(d, job, plan.Fits)
	}
	wake := unit.Never
	for _, x := range c.calendar {
		if x.From > d.Now() {
			wake = min(wake, x.From)
		}
	}
	for _, run := range running(d.View) {
		wake = min(wake, max(d.Run(run).Until, d.Now()+1))
	}
	return wake
}

func (c *chronus) promised(job plan.JobID) bool {
	return slices.ContainsFunc(c.calendar, func(x claim) bool { return x.Job == job })
}

// admit finds the earliest stretch that the calendar has room for.
func (c *chronus) admit(d *plan.Draft, job plan.JobID, j *plan.Job) {
	need := claim{Job: job, From: d.Now(), Milli: d.Shape(job).Milli(d.Shape(job).Gang)}
	ends := []unit.Time{d.Now()}
	for _, x := range c.calendar {
		ends = append(ends, x.To)
	}
	slices.Sort(ends)
	for _, need.From = range ends {
		if need.To = need.From.Add(j.Declared + slack); c.most(need)+need.Milli <= int64(d.Devices())*1000 {
			break
		}
	}
	if need.To > j.Submit.Add(j.Deadline) {
		d.Refuse(job, plan.Reason{Code: plan.NotFeasible, A: int64(need.To.Sub(j.Submit))})
		return
	}
	c.calendar = append(c.calendar, need)
	slices.SortStableFunc(c.calendar, func(a, b claim) int { return cmp.Compare(a.From, b.From) })
}

// most is what is claimed at once, at most, during a stretch.
func (c *chronus) most(during claim) (most int64) {
	for _, at := range append(slices.Clone(c.calendar), during) {
		if at.From < during.From || at.From >= during.To {
			at.From = during.From
		}
		sum := int64(0)
		for _, x := range c.calendar {
			if x.From <= at.From && at.From < x.To {
				sum += x.Milli
			}
		}
		most = max(most, sum)
	}
	return most
}

// claim starts a job whose stretch has begun, in room that unpromised runs give up.
func (c *chronus) claim(d *plan.Draft, x claim) {
	mark := d.Mark()
	if c.start(d, x.Job, plan.LeaseBegins) {
		return
	}
	for _, run := range slices.Backward(running(d.View)) {
		if !c.promised(d.Run(run).Job) && d.Stop(run, plan.Reason{Code: plan.LeaseOver}, 0) && c.start(d, x.Job, plan.LeaseBegins) {
			return
		}
	}
	d.Rollback(mark) // lost nodes: it will be late
}

func (c *chronus) start(d *plan.Draft, job plan.JobID, why plan.ReasonCode) bool {
	if !place(d, job, d.Shape(job).Gang, plan.DefaultTerms(), plan.Reason{Code: why}) {
		return false
	}
	if !c.promised(job) {
		d.Lease(d.Job(job).Run, d.Now().Add(lease))
	}
	return true
}

// expire renews the leases that have ended.
func (c *chronus) expire(d *plan.Draft) {
	for _, run := range running(d.View) {
		if d.Run(run).Until <= d.Now() {
			d.Lease(run, d.Now().Add(lease))
		}
	}
}
