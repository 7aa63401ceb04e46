package scenario

import (
	"math"
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
)

// count is a second account of what devices kept busy, beside the one that the world
// keeps of its runs. It is kept from the devices' side, over the clock of whoever drives
// the simulation: at each instant, of the grants on every device and of the work that
// their runs are getting done, of which the day's own workload says how much device time
// it takes. Of the world it takes the rates alone.
type count struct {
	day  *Warm
	own  plan.JobID // the day's own jobs are those from here on
	at   unit.Time
	sum  pace
	now  pace
	runs []using // by slot
	last []using // scratch: what runs was before
	read int64   // as of which commit
}

// pace is what is kept busy: by device model, and by the day's own jobs over all of
// them; in devices, or added up in device seconds.
type pace struct {
	model [len(models)]float64
	own   float64
}

func (p *pace) all() float64 { return p.model[0] + p.model[1] + p.model[2] }

// using is what a run makes of one granted device, and on which model it counts.
type using struct {
	part  float64
	model int32
	own   bool
}

func newCount(w *Warm) *count {
	return &count{day: w, own: plan.JobID(w.state.View().Jobs()), at: w.at}
}

// until adds what was kept busy up to an instant, since which nothing has happened.
func (c *count) until(at unit.Time) {
	sec := at.Sub(c.at).Seconds()
	for m := range c.sum.model {
		c.sum.model[m] += c.now.model[m] * sec
	}
	c.sum.own += c.now.own * sec
	c.at = at
}

// advance lets the next thing happen.
func (c *count) advance(sim *simulated.Simulation) (more bool, err error) {
	if at := sim.Next(); at != unit.Never {
		c.until(at)
	}
	more, err = sim.Advance()
	c.readBusy(sim) // also where nobody was told anything: one who has paid for a start goes on
	return more, err
}

// readBusy sees what devices are kept busy from now on: the same as before where every run
// does what it did, and nothing was committed that grants something else.
func (c *count) readBusy(sim *simulated.Simulation) {
	v := sim.State().View()
	c.runs, c.last = c.last[:0], c.runs
	for id := range plan.RunID(v.RunSlots()) {
		c.runs = append(c.runs, c.using(v, id, sim.Rate(id)))
	}
	if c.read == sim.State().Commits && slices.Equal(c.runs, c.last) {
		return
	}
	c.read, c.now = sim.State().Commits, pace{}
	for d := range plan.DeviceID(v.Devices()) {
		var on pace
		v.GrantsOn(d, func(g plan.Grant) {
			u := c.runs[g.Run]
			busy := min(u.part*float64(max(g.Reserve, v.Shape(v.Run(g.Run).Job).Share)), float64(g.Ceiling)) / 1000 // no more than it may
			if on.model[u.model] += busy; u.own {
				on.own += busy
			}
		})
		whole := max(1, on.all()) // no device is more than busy
		for m := range on.model {
			c.now.model[m] += on.model[m] / whole
		}
		c.now.own += on.own / whole
	}
}

// using is the duty of a run's job times the part of its speed, on so many devices of
// its kind, that it gets: the work it does over what they would do each for itself.
func (c *count) using(v plan.View, id plan.RunID, rate float64) using {
	r := v.Run(id)
	if rate == 0 || r.Status != plan.Running {
		return using{}
	}
	it := c.day.items[v.Name(r.Job)]
	nodes, last, model, slowest := 0, plan.NodeID(plan.None), int32(0), math.Inf(1)
	v.GrantsOf(id, func(g plan.Grant) {
		if g.Node == last {
			return
		}
		nodes, last = nodes+1, g.Node
		if m := v.Cluster().Nodes[g.Node].Model; v.Cluster().Models[m].Speed < slowest {
			model, slowest = m, v.Cluster().Models[m].Speed
		}
	})
	return using{part: it.duty() * rate / float64(r.Workers) / it.each(c.day.cluster, model, r.Workers, nodes), model: model, own: r.Job >= c.own}
}

// each is the progress per second of one of several devices that does all it can: what
// it does alone, where that was measured, else its part of what they do together.
func (it *item) each(c *cluster.Cluster, model, workers int32, nodes int) float64 {
	if len(it.menu) > 0 {
		one, all := it.menu.Rate(c, model, 1, false), it.menu.Rate(c, model, workers, nodes > 1)
		return max(float64(one), float64(all)/float64(workers)) / plan.FullRate
	}
	each := c.Models[model].Speed / float64(it.job.Gang)
	if extra := nodes - (int(workers)+7)/8; extra > 0 {
		each /= 1 + it.truth.Sensitivity*math.Log2(1+float64(extra))
	}
	return each
}

// duty is the part of its devices that a job keeps busy at its own speed.
func (it *item) duty() float64 {
	if it.truth.Busy == 0 {
		return 1
	}
	return it.truth.Busy
}
