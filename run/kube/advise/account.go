package advise

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// account adds up device time in both worlds, over the same stretch of time.
type account struct {
	from unit.Time
	at   unit.Time

	capacity int64 // of nodes that take work, in thousandths of a device
	others   int64 // that others hold of it
	real     sums
	ours     sums

	heldOn      unit.DeviceTime // by gangs whose end was not known in time
	lost        unit.DeviceTime // by starts and work that were done again
	preemptions int64
}

// sums are of one world.
type sums struct {
	held    int64 // now
	waiting int64 // jobs, now
	granted unit.DeviceTime
	room    unit.DeviceTime // that was there
	idle    unit.DeviceTime // while somebody waited
}

// episode is the time for which a gang is partial in reality.
type episode struct {
	since unit.Time
	on    bool
	at    unit.Time
	used  unit.DeviceTime // of this one
	seen  int64           // that lasted, and are over
	spent unit.DeviceTime // in those
}

// lasting is for how long a gang is partial at least where that is not only because its
// pods are bound one by one.
const lasting = 10 * unit.Second

func (c *account) begin(at unit.Time) { c.from, c.at = at, at }

// pass adds up until now.
func (c *account) pass(now unit.Time) {
	if d := now.Sub(c.at); d > 0 {
		for _, s := range [...]*sums{&c.real, &c.ours} {
			held := min(s.held+c.others, c.capacity)
			s.granted, s.room = s.granted.Plus(unit.Use(held, d)), s.room.Plus(unit.Use(c.capacity, d))
			if s.waiting > 0 {
				s.idle = s.idle.Plus(unit.Use(c.capacity-held, d))
			}
		}
		c.at = now
	}
}

// change changes how a job stands, at an instant up to which time was added up.
func (c *account) change(now unit.Time, j *job, how func()) {
	j.count(c, -1)
	if j.partial.on {
		j.partial.used = j.partial.used.Plus(unit.Use(j.real.held*j.worker, now.Sub(j.partial.at)))
	}
	how()
	j.count(c, 1)
	j.partial.at = now
	p := &j.partial
	switch is := j.real.partial && j.id != plan.None; {
	case is && !p.on:
		p.on, p.since, p.used = true, now, unit.DeviceTime{}
	case !is && p.on:
		p.on = false
		if now.Sub(p.since) >= lasting {
			p.seen, p.spent = p.seen+1, p.spent.Plus(p.used)
		}
	}
}

// count adds a job to what is held and how many wait, or takes it off.
func (j *job) count(c *account, sign int64) {
	if j.id == plan.None {
		return
	}
	c.real.held += sign * j.real.held * j.worker
	if !j.real.whole && !j.real.over {
		c.real.waiting += sign
	}
	switch {
	case j.holds:
		c.ours.held += sign * j.milli
	case j.over == unit.Never:
		c.ours.waiting += sign
	}
}

// wasted is what a gang held while it was partial for long, and how often that was.
func (j *job) wasted(now unit.Time) (seen int64, spent unit.DeviceTime) {
	if j.story.apart {
		return 0, unit.DeviceTime{}
	}
	p := &j.partial
	seen, spent = p.seen, p.spent
	if p.on && now.Sub(p.since) >= lasting {
		seen++
		spent = spent.Plus(p.used).Plus(unit.Use(j.real.held*j.worker, now.Sub(p.at)))
	}
	return seen, spent
}

// pass lets time pass in the other world.
func (a *Adviser) pass(now unit.Time) {
	a.account.pass(now)
	a.now = now
}

// aboutNodes reports whether an event changes what there is.
func aboutNodes(e engine.Event) bool {
	switch e.Kind {
	case engine.Joined, engine.Occupied, engine.Assembled, engine.Cordon, engine.Uncordon, engine.Drain, engine.NodeDown, engine.NodeUp:
		return true
	}
	return false
}

// measure finds out what there is, and what others hold of it. Nodes that take no work
// count for nothing.
func (a *Adviser) measure() {
	v := a.engine.View()
	a.account.capacity, a.account.others = 0, 0
	for id := range plan.NodeID(v.Nodes()) {
		n := v.Node(id)
		if n.Status != plan.Up {
			continue
		}
		a.account.capacity += int64(n.Count) * int64(unit.Whole)
		for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
			if v.Device(d).Status == plan.Elsewhere {
				a.account.others += int64(unit.Whole)
			}
		}
	}
}

// outcome is a job that has ended well, or by its own fault, in both worlds.
type outcome struct {
	submit            unit.Time
	realEnd, ourEnd   unit.Time
	realWait, ourWait unit.Duration
}

// compare takes in that a job is over in both worlds.
func (a *Adviser) compare(j *job) {
	delete(a.specs, j.id)
	delete(a.byID, j.id)
	delete(a.of, j.story)
	j.story.made = nil
	if j.dropped || j.id == plan.None || j.refused || j.story.ending == withdrawn {
		return
	}
	s := j.story
	ran := s.total
	if s.apart {
		ran, _ = s.length(s.ended)
	}
	o := outcome{submit: j.submit, realEnd: s.ended, ourEnd: j.over}
	o.realWait = max(s.ended.Sub(j.submit)-ran, 0)
	o.ourWait = max(j.over.Sub(j.submit)-j.ran, 0)
	a.done = append(a.done, o)
	a.log.Info("compared", "job", s.name, "waited", o.realWait.String(), "would_have_waited", o.ourWait.String(),
		"took", s.ended.Sub(j.submit).String(), "would_have_taken", j.over.Sub(j.submit).String(), "jobs", len(a.done))
}

// Decision is a start or a stop that Muster would have decided on.
type Decision struct {
	AtUs  int64    `json:"at_us"`
	Verb  string   `json:"verb"`
	Job   string   `json:"job"`
	Nodes []string `json:"nodes,omitempty"`
	Why   string   `json:"why,omitempty"`
	// Really is what becomes of the job in reality, as it is known when this is decided.
	Really string `json:"really"`
}

// mostDecisions are kept to be shown.
const mostDecisions = 100

// tell tells of a decision.
func (a *Adviser) tell(c *plan.Change) {
	j := a.byID[c.Job]
	if j == nil || c.Verb != plan.Start && c.Verb != plan.Stop && c.Verb != plan.Refuse {
		return
	}
	v := a.engine.View()
	d := Decision{AtUs: int64(a.now), Verb: c.Verb.String(), Job: j.story.name, Why: c.Reason.Words(v), Really: j.story.words(a.known)}
	if c.Verb == plan.Start {
		for _, p := range engine.PlacesOf(v, c.Run) {
			if name := v.Cluster().Nodes[p.Node].Name; !slices.Contains(d.Nodes, name) {
				d.Nodes = append(d.Nodes, name)
			}
		}
	}
	if c.Verb == plan.Refuse {
		j.refused = true
	}
	a.decided++
	if len(a.decisions) == mostDecisions {
		a.decisions = slices.Delete(a.decisions, 0, 1)
	}
	a.decisions = append(a.decisions, d)
	a.log.Info("would "+d.Verb, slog.String("job", d.Job), slog.Int64("decided_at_us", d.AtUs), slog.String("nodes", strings.Join(d.Nodes, ",")),
		slog.String("why", d.Why), slog.String("really", d.Really))
}

// words say how a gang stands in reality.
func (s *story) words(now unit.Time) string {
	switch {
	case s.turn.over && s.started == unit.Never:
		return "it has ended, and never ran as a whole"
	case s.turn.over:
		return fmt.Sprintf("it started %s ago and ended %s ago", now.Sub(s.started), now.Sub(s.ended))
	case s.turn.whole:
		return fmt.Sprintf("it runs, since %s", now.Sub(s.started))
	case s.turn.held > 0:
		return fmt.Sprintf("it is partial: %d of %d pods have a node", s.turn.held, s.size)
	}
	return "it waits"
}
