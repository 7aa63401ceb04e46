package driver

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
)

// rounds is the round realiser of Gavel (Narayanan et al., OSDI 2020) for equal
// fractions of time: every round goes to the jobs that have received the fewest. What
// they received is memory beside the State, which has to survive a restart.
type rounds struct {
	Next     unit.Time
	Received []int64 // rounds, by job
	placer   allocate.Placer
}

const roundLength = 360 * unit.Second

func newRounds() schedule.Scheduler { return &rounds{placer: firstfit.Placer{}} }

func (g *rounds) Remember() []byte {
	b, err := json.Marshal(g)
	if err != nil {
		panic(err)
	}
	return b
}

func (g *rounds) Recall(memory []byte) error { return json.Unmarshal(memory, g) }

func (g *rounds) Decide(d *plan.Draft, _ schedule.Trigger) unit.Time {
	for len(g.Received) < d.Jobs() {
		g.Received = append(g.Received, 0)
	}
	jobs := g.ranked(d.View)
	if len(jobs) == 0 {
		return unit.Never
	}
	if d.Now() >= g.Next {
		g.Next = d.Now() - d.Now()%unit.Time(roundLength) + unit.Time(roundLength)
		g.turn(d, jobs)
	}
	for _, id := range g.ranked(d.View) {
		g.start(d, id, plan.Fits)
	}
	return g.Next
}

func (g *rounds) ranked(v plan.View) (jobs []plan.JobID) {
	for id := range plan.JobID(v.Jobs()) {
		if p := v.Job(id).Phase; p == plan.Waiting || p == plan.Active {
			jobs = append(jobs, id)
		}
	}
	slices.SortStableFunc(jobs, func(a, b plan.JobID) int { return cmp.Compare(g.Received[a], g.Received[b]) })
	return jobs
}

// turn gives the next round to those who are due.
func (g *rounds) turn(d *plan.Draft, jobs []plan.JobID) {
	left, in := int64(0), map[plan.JobID]bool{}
	for id := range plan.NodeID(d.Nodes()) {
		if d.Node(id).Status == plan.Up {
			left += int64(d.Node(id).Count) * 1000
		}
	}
	for _, id := range jobs {
		if cost := d.Shape(id).Milli(d.Shape(id).Gang); cost <= left {
			left -= cost
			in[id] = true
			g.Received[id]++
		}
	}
	for _, id := range jobs {
		if run := d.Job(id).Run; run != plan.None && !in[id] && d.Run(run).Status == plan.Running {
			d.Stop(run, plan.Reason{Code: plan.RoundPlan}, 0)
		}
	}
	for _, id := range jobs {
		if in[id] {
			g.start(d, id, plan.RoundPlan)
		}
	}
}

func (g *rounds) start(d *plan.Draft, id plan.JobID, why plan.ReasonCode) {
	j := d.Job(id)
	if j.Phase != plan.Waiting {
		return
	}
	shape := d.Shape(id)
	found := g.placer.Place(d.View, allocate.Need{Job: id, Attempt: j.Attempt, Workers: shape.Gang, Shape: shape}, 1, nil)
	if len(found) > 0 {
		d.Start(id, found[0].Slots, plan.DefaultTerms(), plan.Reason{Code: why})
	}
}
