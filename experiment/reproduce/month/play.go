package month

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/pipeline/spread"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
)

// Month is what became of a run.
type Month struct {
	// Goodput is the work that counts over what sound devices would do in that time.
	Goodput float64 `json:"goodput"`
	Faults  int     `json:"faults"`
	// Took counts what was done.
	Took map[string]int `json:"took"`
}

// policy is a composition's part `reaction`, by the name under which it is told.
type policy struct{ name, reaction, always string }

// policies are the one that goes by price, and the fixed remedies: the same part that always takes one way where
// that can be, and its null, which queues the job again for its sizer to start on what is free.
var policies = []policy{
	{"by price", "by-price", "cheapest"},
	{reaction.Ride, "by-price", "ride"},
	{reaction.Swap, "by-price", "swap"},
	{reaction.Restart, "by-price", "restart"},
	{reaction.Wait, "by-price", "wait"},
	{"queue again", "none", ""},
}

// Play plays a regime under a policy: the engine runs the job for so many days, and the simulated world loses the
// nodes and gives them back.
func (g *Ground) Play(regime *Regime, p *policy, days int, seed uint64) (m Month, err error) {
	end := unit.Time(unit.Duration(days) * unit.Day)
	stops, repair := regime.stops(g.Nodes)
	text := fmt.Sprintf("order: fifo\nplace: fastest-kind\nreaction: %s\n", p.reaction)
	if p.always != "" {
		text += fmt.Sprintf("options:\n  by-price: {start: %dus, repair: %dus, always: %s}\n", start, repair, p.always)
	}
	of, err := catalogue.Parse(p.name, text)
	if err != nil {
		return m, err
	}
	built, err := of.Build(catalogue.Env{Seed: seed}, false)
	if err != nil {
		return m, err
	}
	job, truth := g.drawn(reaction.Interval(g.save, stops), end, seed)
	faults := regime.draw(g.Nodes+g.Spares, end, seed)
	m.Faults, m.Took = len(faults), map[string]int{}
	config := simulated.Config{Cluster: g.cluster, Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(), Prices: simulated.Prices{Start: start},
		Jobs: &one{job: &job, truth: truth}, Later: events(faults), Until: end, World: world.Config{Slices: true, Slow: g.slow(faults)}}
	config.Commit = func(v plan.View, c *plan.Commit) {
		for i := range c.Asides {
			if r := c.Asides[i].Reaction; r != nil {
				m.Took[cmp.Or(r.Chosen, "queue again")]++
			}
		}
	}
	s, err := simulated.New(config)
	for more := true; more && err == nil; {
		more, err = s.Advance()
	}
	if err != nil {
		return m, err
	}
	left := s.Left(0).Seconds()
	if is := s.State(); len(is.Jobs) > 0 && is.Jobs[0].Run != plan.None {
		left -= s.Rate(is.Jobs[0].Run) * end.Sub(is.Now).Seconds() // since the last event
	}
	m.Goodput = (truth.Duration.Seconds() - left) / unit.Duration(end).Seconds()
	return m, nil
}

// drawn is the job with a checkpoint after so much work, and the truth about it: it is longer than the month, its plans are
// as far off as measured steps were, and checkpoints hold up all that it does.
func (g *Ground) drawn(every unit.Duration, end unit.Time, seed uint64) (workload.Job, workload.Truth) {
	job := g.job
	job.Checkpoint.Every, job.Checkpoint.Save, job.Checkpoint.Load = every+g.save, g.save, g.load
	truth := workload.Truth{Duration: 2 * unit.Duration(end), Menu: spread.Doubt(job.Menu, seed, true)}
	job.Estimate = truth.Duration
	for i := range truth.Menu {
		truth.Menu[i].Rate *= float64(every) / float64(every+g.save)
	}
	return job, truth
}

// events are what happens to nodes: one that several faults have taken away is back after the last.
func events(faults []fault) (all []simulated.Later) {
	away := map[int32]int{}
	type change struct {
		at   unit.Time
		node int32
		by   int
	}
	var changes []change
	for i := range faults {
		f := &faults[i]
		if f.left > 0 {
			continue // it is slow
		}
		for _, n := range f.nodes {
			changes = append(changes, change{f.at, n, 1}, change{f.until, n, -1})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.by, a.by)) })
	for _, c := range changes {
		before := away[c.node]
		away[c.node] += c.by
		switch {
		case before == 0:
			all = append(all, simulated.Later{At: c.at, Event: engine.Event{Kind: engine.NodeDown, Node: plan.NodeID(c.node)}})
		case before+c.by == 0:
			all = append(all, simulated.Later{At: c.at, Event: engine.Event{Kind: engine.NodeUp, Node: plan.NodeID(c.node)}})
		}
	}
	return all
}

// slow are the devices and links that take longer for a time.
func (g *Ground) slow(faults []fault) (all []world.Slow) {
	for i := range faults {
		f := &faults[i]
		if f.left == 0 {
			continue
		}
		is := world.Slow{From: f.at, Until: f.until, Times: 1 / f.left}
		if node := f.nodes[0]; f.cause.link {
			is.Device, is.Link = plan.None, g.cluster.NodeLink(node)
		} else {
			is.Device = plan.DeviceID(g.cluster.Nodes[node].First + f.device)
		}
		all = append(all, is)
	}
	return all
}

// one is the source of a single job.
type one struct {
	job   *workload.Job
	truth workload.Truth
}

// Next is the job, once.
func (o *one) Next() (job workload.Job, truth workload.Truth, err error) {
	if o.job == nil {
		return job, truth, io.EOF
	}
	job, o.job = *o.job, nil
	return job, o.truth, nil
}
