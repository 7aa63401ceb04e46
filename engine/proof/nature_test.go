package proof

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/plan"
)

// What each thing that a change asks for takes.
const (
	startTakes   = 5 * unit.Second
	stopTakes    = 10 * unit.Second
	suspendTakes = 1 * unit.Second
	reshapeTakes = 3 * unit.Second
	answerTakes  = 2 * unit.Second
	observeEvery = 20 * unit.Second
)

// nature is the driver of a scenario: it carries out changes with delays, lets runs
// progress and end, and lets things go wrong as the scenario says. It decides nothing.
type nature struct {
	s      *scenario
	view   func() plan.View
	now    unit.Time
	bodies []*body
	left   []int64 // by job: work still to be done, thousandths of a microsecond
	later  []entry
	fails  map[string]int                          // starts that will still fail
	looked unit.Time                               // of the last observation
	wrong  error                                   // the first thing no real driver could have done
	alive  map[plan.JobID]map[plan.DeviceID]string // what processes hold that wait to be kept
}

// body is a live run as the machine sees it.
type body struct {
	job      plan.JobID
	attempt  int32
	run      plan.RunID
	status   plan.RunStatus
	began    unit.Time
	paused   unit.Duration
	since    unit.Time // of being suspended
	done     int64
	rate     int64
	workers  int32
	on       []plan.Grant
	computes bool // or may, as far as the engine was told
	maimed   bool // lost some of its members
	leavesAt unit.Time
}

type entry struct {
	at    unit.Time
	event engine.Event
	body  *body // whose event it is; void once the body is gone or told otherwise
	as    plan.RunStatus
}

func newNature(s *scenario, view func() plan.View) *nature {
	n := &nature{s: s, view: view, fails: map[string]int{}, alive: map[plan.JobID]map[plan.DeviceID]string{}}
	for name, times := range s.failStart {
		n.fails[name] = times
	}
	for _, j := range s.jobs {
		spec := j.spec
		n.after(unit.Duration(spec.Submit), engine.Event{Kind: engine.Submit, Spec: &spec})
		n.left = append(n.left, int64(j.work)*1000)
	}
	for _, at := range s.uncordon {
		for node := range plan.NodeID(len(s.cluster.Nodes)) {
			n.after(at, engine.Event{Kind: engine.Uncordon, Node: node})
		}
	}
	for _, l := range s.lose {
		if !l.whileStopping {
			n.lose(l.node, unit.Duration(l.at), l.lasts)
		}
	}
	return n
}

func (n *nature) after(d unit.Duration, e engine.Event) {
	n.later = append(n.later, entry{at: n.now.Add(d), event: e})
}

func (n *nature) lose(node plan.NodeID, in, lasts unit.Duration) {
	n.after(in, engine.Event{Kind: engine.NodeDown, Node: node})
	if lasts > 0 {
		n.after(in+lasts, engine.Event{Kind: engine.NodeUp, Node: node})
	}
}

// schedule lets a body report something, unless it is told otherwise before.
func (n *nature) schedule(b *body, d unit.Duration, e engine.Event) {
	e.Job, e.Attempt = b.job, b.attempt
	n.later = append(n.later, entry{at: n.now.Add(d), event: e, body: b, as: b.status})
}

// next is the next instant at which anything happens by itself.
func (n *nature) next() unit.Time {
	at := unit.Never
	for _, e := range n.later {
		at = min(at, e.at)
	}
	for _, b := range n.bodies {
		if b.status == plan.Running {
			at = min(at, n.end(b), n.looked.Add(observeEvery))
		}
	}
	return at
}

func (n *nature) end(b *body) unit.Time {
	if b.maimed {
		return unit.Never
	}
	return n.now.Add(unit.Duration((n.left[b.job] - b.done + b.rate - 1) / b.rate))
}

// until moves the clock and returns what is reported at that instant.
func (n *nature) until(at unit.Time) (events []engine.Event) {
	for _, b := range n.bodies {
		if b.status == plan.Running && !b.maimed {
			b.done += int64(at.Sub(n.now)) * b.rate
		}
	}
	n.now = at
	due := n.later
	n.later = nil
	for _, e := range due {
		switch {
		case e.at > at:
			n.later = append(n.later, e)
		case e.body == nil:
			events = append(events, n.happens(e.event)...)
		case slices.Contains(n.bodies, e.body) && e.body.status == e.as:
			events = append(events, n.reports(e.body, e.event))
		}
	}
	for _, b := range slices.Clone(n.bodies) {
		if b.status == plan.Running && n.end(b) <= at {
			events = append(events, n.reports(b, engine.Event{Kind: engine.Exited, Job: b.job, Attempt: b.attempt}))
		}
	}
	if at >= n.looked.Add(observeEvery) {
		n.looked = at
		for _, b := range n.bodies {
			if b.status == plan.Running {
				work := int64(n.s.jobs[b.job].work) * 1000
				events = append(events, engine.Event{Kind: engine.Observed, Job: b.job, Attempt: b.attempt,
					Observation: engine.Observation{Progress: int32((work - n.left[b.job] + b.done) / (work / 1e6)), Timed: n.timed(b)}})
			}
		}
	}
	n.rerate()
	return events
}

// timed is how long the stages of a body take that goes by a plan, and how slow its devices are.
func (n *nature) timed(b *body) (t engine.Timed) {
	v := n.view()
	var by pipeline.Plan
	layers := v.ProfileOf(b.job).Layers
	if id := v.Run(b.run).Terms.Plan.ID; len(layers) == 0 || id == plan.None || json.Unmarshal(v.Pipeline(id).JSON, &by) != nil {
		return t
	}
	slow := func(match func(s *stray) bool) (times float64) {
		times = 1
		for i := range n.s.strays {
			if s := &n.s.strays[i]; s.at <= n.now && n.now < s.until && match(s) {
				times *= s.times
			}
		}
		return times
	}
	for _, g := range b.on {
		t.Slow = append(t.Slow, slow(func(s *stray) bool { return s.device == g.Device }))
	}
	first := int32(0)
	for stage, end := range append(slices.Clone(by.Cuts), int32(len(layers))) {
		took := 0.
		for l := first; l < end; l++ {
			took += float64(layers[l].Forward+layers[l].Backward) * slow(func(s *stray) bool { return s.device == plan.None && s.layer == l })
		}
		each := len(t.Slow) / (len(by.Cuts) + 1)
		t.Stages = append(t.Stages, unit.Duration(took*slices.Max(t.Slow[stage*each:(stage+1)*each])))
		first = end
	}
	return t
}

// reports changes a body as its report says.
func (n *nature) reports(b *body, e engine.Event) engine.Event {
	switch e.Kind {
	case engine.Started:
		b.status, b.began = plan.Running, n.now
	case engine.Suspended:
		b.computes = false
	case engine.Resumed:
		b.status = plan.Running
		b.paused += n.now.Sub(b.since)
	case engine.Stopped, engine.Exited:
		e.Kept = n.ran(b)
		n.left[b.job] -= b.done
		if e.Kind == engine.Exited && e.Class == plan.NoFailure {
			n.left[b.job] = 0
		}
		n.remove(b)
	case engine.NotStarted:
		n.remove(b)
	}
	return e
}

// ran is the running time of a body whose work is kept.
func (n *nature) ran(b *body) unit.Duration {
	if b.began == unit.Never || b.maimed {
		return 0
	}
	return min(n.now, b.leavesAt).Sub(b.began) - b.paused
}

func (n *nature) remove(b *body) {
	n.bodies = slices.DeleteFunc(n.bodies, func(o *body) bool { return o == b })
}

// happens returns an event from outside, and for a lost node takes what is on it.
func (n *nature) happens(e engine.Event) []engine.Event {
	if e.Kind != engine.NodeDown {
		return []engine.Event{e}
	}
	var events []engine.Event
	for _, b := range slices.Clone(n.bodies) {
		here, elsewhere := false, false
		for _, g := range b.on {
			here, elsewhere = here || g.Node == e.Node, elsewhere || g.Node != e.Node
		}
		switch {
		case here && elsewhere && n.lives(b, e.Node):
			events = append(events, n.reports(b, engine.Event{Kind: engine.Exited, Job: b.job, Attempt: b.attempt, Ending: engine.Ending{Class: plan.NodeFailure, Alive: true}}))
		case here && elsewhere:
			b.maimed, b.done = true, 0
		case here:
			n.remove(b)
			// Its supervisor comes back with the node and tells an old story.
			n.after(30*unit.Second, engine.Event{Kind: engine.Stopped, Job: b.job, Attempt: b.attempt, Ending: engine.Ending{Kept: unit.Second}})
		}
	}
	return append(events, e)
}

// lives reports whether the processes of a body that are not on a lost node hold all that it has done, and has
// them wait.
func (n *nature) lives(b *body, lost plan.NodeID) bool {
	held := n.held(b.job, b.run, b.on)
	var gone []bool
	for _, g := range b.on {
		gone = append(gone, g.Node == lost)
	}
	if b.status != plan.Running || b.maimed || !held.Whole(gone) {
		return false
	}
	n.alive[b.job] = map[plan.DeviceID]string{}
	for i, piece := range held.Pieces() {
		if !gone[i] {
			n.alive[b.job][b.on[i].Device] = piece
		}
	}
	return true
}

// held is what the processes of a run hold by its plan.
func (n *nature) held(job plan.JobID, run plan.RunID, on []plan.Grant) parallel.Held {
	v := n.view()
	id := v.Run(run).Terms.Plan.ID
	if id == plan.None {
		return parallel.Held{}
	}
	return parallel.HeldBy(v.Pipeline(id).JSON, v.ProfileOf(job).Stages > 0, len(on), int(max(1, v.Shape(job).Devices)), false)
}

// keeps has a body go on in processes that wait: each has to be there, and to hold what it is to.
func (n *nature) keeps(b *body) {
	held := n.held(b.job, b.run, b.on)
	pieces := held.Pieces()
	for i, g := range b.on {
		if i >= len(pieces) || n.alive[b.job][g.Device] != pieces[i] {
			n.fail("%s.%d keeps a process on device %d that holds %q", n.view().Name(b.job), b.attempt, g.Device, n.alive[b.job][g.Device])
		}
	}
}

// carryOut does what a change says.
func (n *nature) carryOut(c *plan.Change) {
	i := slices.IndexFunc(n.bodies, func(b *body) bool { return b.job == c.Job && b.attempt == c.Attempt })
	if c.Verb != plan.Start && c.Verb != plan.Reshape && i < 0 {
		n.fail("%s of %s.%d, which is not alive", c.Verb, n.view().Name(c.Job), c.Attempt)
		return
	}
	switch c.Verb {
	case plan.Start:
		n.start(c)
	case plan.Stop:
		n.stop(n.bodies[i])
	case plan.Suspend:
		b := n.bodies[i]
		b.status, b.since = plan.Suspended, n.now
		n.schedule(b, suspendTakes, engine.Event{Kind: engine.Suspended})
	case plan.Resume:
		n.bodies[i].computes = true
		n.schedule(n.bodies[i], suspendTakes, engine.Event{Kind: engine.Resumed})
	case plan.Reshape:
		n.after(reshapeTakes, engine.Event{Kind: engine.Reshaped, Device: c.Device, Change: c.ID})
	}
}

func (n *nature) start(c *plan.Change) {
	b := &body{computes: true, job: c.Job, attempt: c.Attempt, run: c.Run, status: plan.Starting, began: unit.Never, leavesAt: unit.Never, workers: n.view().Run(c.Run).Workers}
	n.view().GrantsOf(c.Run, func(g plan.Grant) { b.on = append(b.on, g) })
	if len(b.on) == 0 {
		n.fail("start of %s.%d on nothing", n.view().Name(c.Job), c.Attempt)
	}
	for _, o := range n.bodies {
		if o.run == b.run || o.job == b.job {
			n.fail("start of %s.%d beside %s.%d", n.view().Name(c.Job), c.Attempt, n.view().Name(o.job), o.attempt)
		}
	}
	n.bodies = append(n.bodies, b)
	if n.view().Run(c.Run).Terms.Plan.Keeps > 0 {
		n.keeps(b)
	}
	delete(n.alive, b.job)
	if name := n.view().Name(b.job); n.fails[name] > 0 {
		n.fails[name]--
		n.schedule(b, startTakes, engine.Event{Kind: engine.NotStarted})
		return
	}
	n.schedule(b, startTakes, engine.Event{Kind: engine.Started})
}

// stop ends a body as told: it saves, which may take long, or finishes meanwhile.
func (n *nature) stop(b *body) {
	name := n.view().Name(b.job)
	finishes := n.s.finishAnyway[name] && b.status == plan.Running && !b.maimed
	b.status = plan.Stopping
	b.leavesAt = n.now
	e := engine.Event{Kind: engine.Stopped}
	if finishes {
		e.Kind = engine.Exited
	}
	n.schedule(b, stopTakes+n.s.lateStop[name], e)
	for i, l := range n.s.lose {
		if l.whileStopping && b.on[0].Node == l.node {
			n.lose(l.node, unit.Second, l.lasts)
			n.s.lose = slices.Delete(slices.Clone(n.s.lose), i, i+1)
			break
		}
	}
}

// rerate gives every running body its speed, in thousandths: in proportion to its
// workers, and less beside another on its devices. Nobody may be promised what
// another still occupies.
func (n *nature) rerate() {
	v := n.view()
	used := map[plan.DeviceID]int32{}
	for _, b := range n.bodies {
		b.on = b.on[:0]
		v.GrantsOf(b.run, func(g plan.Grant) { b.on = append(b.on, g) })
		for _, g := range b.on {
			if b.computes {
				used[g.Device] += g.Reserve
			}
			if used[g.Device] > 1000 {
				n.fail("device %d is used %d thousandths", g.Device, used[g.Device])
			}
			if b.status == plan.Starting && v.Node(g.Node).Status == plan.Down {
				n.fail("%s.%d is starting on a lost node", v.Name(b.job), b.attempt)
			}
		}
	}
	for _, b := range n.bodies {
		b.rate = max(1, 1000*int64(b.workers)/int64(v.Shape(b.job).Gang))
		beside := slices.ContainsFunc(n.bodies, func(o *body) bool {
			return o != b && o.status == plan.Running && slices.ContainsFunc(o.on, func(g plan.Grant) bool {
				return slices.ContainsFunc(b.on, func(h plan.Grant) bool { return h.Device == g.Device })
			})
		})
		if beside && v.Shape(b.job).Share == 1000 {
			b.rate = b.rate * n.s.packed / 1000
		}
	}
}

func (n *nature) fail(format string, args ...any) {
	if n.wrong == nil {
		n.wrong = fmt.Errorf(format, args...)
	}
}

// stray is a device, or a layer of all jobs where it is none, that takes so many times as long for a time.
type stray struct {
	at, until unit.Time
	device    plan.DeviceID
	layer     int32
	times     float64
}

// scenario is what a file describes.
type scenario struct {
	cluster      *cluster.Cluster
	jobs         []job // in order of submission
	strategy     string
	until        unit.Time
	packed       int64 // speed beside another, thousandths
	strays       []stray
	lose         []loss
	failStart    map[string]int
	lateStop     map[string]unit.Duration
	finishAnyway map[string]bool
	uncordon     []unit.Duration // when a person puts quarantined nodes back
	switches     []change
	answer       func(question []byte) []byte
}

type job struct {
	spec workload.Job
	work unit.Duration
}

type loss struct {
	node          plan.NodeID
	at            unit.Time
	whileStopping bool
	lasts         unit.Duration
}

type change struct {
	at unit.Time
	to string
}

// sorted returns the jobs in the order in which they are submitted, which is that of
// their ids.
func sorted(jobs []job) []job {
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(a.spec.Submit, b.spec.Submit) })
	return jobs
}
