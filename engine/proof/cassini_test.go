package proof

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// cassini shifts the communication phases of running jobs that share a node's uplink,
// so that their bursts pass between each other (after Rajasekaran et al., NSDI 2024;
// every period is 100 ms and the circle is divided evenly). It pulls at: new terms of a
// run that goes on, decided from its neighbours.
type cassini struct{}

const period = 100 * unit.Millisecond

func (c cassini) Decide(d *plan.Draft, _ schedule.Trigger) unit.Time {
	for _, job := range waiting(d.View) {
		place(d, job, d.Shape(job).Gang, plan.DefaultTerms(), plan.Reason{Code: plan.Fits})
	}
	for _, run := range running(d.View) {
		r := d.Run(run)
		if r.Status != plan.Running || d.Job(r.Job).Traffic == 0 {
			continue
		}
		position, sharers := c.rank(d.View, run)
		terms := r.Terms
		terms.Traffic.Shift = unit.Duration(position) * period / unit.Duration(sharers)
		if terms.Traffic.Shift != r.Terms.Traffic.Shift {
			d.Regrant(run, terms, plan.Reason{Code: plan.Interleaved, A: int64(terms.Traffic.Shift)})
		}
	}
	return unit.Never
}

// rank is the position of a run among the running ones that send over an uplink that
// it sends over, and their number.
func (c cassini) rank(v plan.View, run plan.RunID) (position, sharers int) {
	mine := uplinks(v, run)
	for _, other := range running(v) {
		if v.Run(other).Status != plan.Running || v.Job(v.Run(other).Job).Traffic == 0 || uplinks(v, other)&mine == 0 {
			continue
		}
		if sharers++; v.Run(other).Job < v.Run(run).Job {
			position++
		}
	}
	return position, max(1, sharers)
}

// uplinks is the set of nodes of a run, if there are several: its traffic leaves them.
func uplinks(v plan.View, run plan.RunID) (nodes uint64) {
	v.GrantsOf(run, func(g plan.Grant) { nodes |= 1 << g.Node })
	if nodes&(nodes-1) == 0 {
		return 0
	}
	return nodes
}
