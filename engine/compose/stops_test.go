package compose_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/internal/rightstest"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/moves"
	"github.com/musterdl/muster/schedule/victims"
)

// sharers are the deciders that share time by design, with the shortest of their rounds.
var sharers = map[string]unit.Duration{"las": unit.Minute, "tiresias": unit.Minute, "gavel": 360 * unit.Second}

// property is what must hold of every chronicle under a decider. It returns how near that is to
// be broken, and in words where it is.
type property struct {
	name, figure string
	holds        func(h *chronicle, decider string) (figure float64, broken string)
	plain        bool // its histories have whole devices, one queue or several side by side, and no other parts but who gives way
}

var properties = []property{
	{name: "few", figure: "most preemptions over (arrivals + ends)", holds: few},
	{name: "whole", figure: "fewest seconds from the decision to start a run to that to stop it", holds: whole},
	{name: "earned", figure: "least that a run had earned of what its start cost", holds: earned},
	{name: "circles", figure: "most circles of who displaced whom", holds: circles},
	{name: "least", figure: "most that was lost over the least that could be", holds: least, plain: true},
	{name: "idle", figure: "most seconds that a device was idle which a waiting job could have", holds: idles},
}

// few: there are at most two preemptions for each arrival and each end; who shares time stops a
// job at most once a round besides.
func few(h *chronicle, decider string) (float64, string) {
	ends, last := 0, map[plan.JobID]*life{}
	for k := range h.lives {
		if l := &h.lives[k]; l.end >= 0 && l.stop == nil {
			ends++
		}
	}
	preempted := h.preempted()
	round, shares := sharers[decider]
	n := 0
	for _, l := range preempted {
		if was := last[l.job]; shares && forQueue(l.stop) == plan.None {
			if was != nil && h.at(l.end).Sub(h.at(was.end)) < round {
				return math.Inf(1), fmt.Sprintf("job %d is stopped at %d s and at %d s: twice in a round of %s", l.job+1, h.at(was.end)/1e6, h.at(l.end)/1e6, round)
			}
			last[l.job] = l
		} else {
			n++
		}
	}
	figure := float64(n) / float64(len(h.jobs)+ends)
	if figure > 2 {
		return figure, fmt.Sprintf("%d preemptions with %d arrivals and %d ends", n, len(h.jobs), ends)
	}
	return figure, ""
}

// forQueue is the job that a run was stopped for by a claim of its queue or its priority.
func forQueue(c *plan.Change) plan.JobID {
	if c.Reason.Code == plan.MadeWayFor {
		return plan.None
	}
	return forJob(c)
}

// whole: no run is started and stopped in one instant, and nobody who is stopped for another has a
// third stopped for himself in it.
func whole(h *chronicle, _ string) (float64, string) {
	figure := math.Inf(1)
	for k := range h.lives {
		l := &h.lives[k]
		if l.stop == nil || !preempts(l.stop) {
			continue
		}
		after := h.at(l.end).Sub(h.at(l.start))
		figure = min(figure, after.Seconds())
		if after == 0 {
			return figure, fmt.Sprintf("job %d is started and stopped (%s) at %d s", l.job+1, l.stop.Reason.Code, h.at(l.end)/1e6)
		}
		for i := range h.lives {
			if o := &h.lives[i]; o.stop != nil && h.at(o.end) == h.at(l.end) && forJob(o.stop) == l.job && forJob(l.stop) != plan.None {
				return figure, fmt.Sprintf("at %d s job %d is stopped for job %d, and job %d for it", h.at(l.end)/1e6, l.job+1, forJob(l.stop)+1, o.job+1)
			}
		}
	}
	return figure, ""
}

// earned: no run is ended before it has computed for as long, on its devices, as its start cost
// everybody, unless something has happened since: the job for which it is ended came or lost its
// run, another run ended, or the cluster, the queues or the windows became others. A decider for
// all at once may have each arrival for a reason.
func earned(h *chronicle, _ string) (float64, string) {
	figure := math.Inf(1)
	for k := range h.lives {
		l := &h.lives[k]
		if l.stop == nil || !preempts(l.stop) || h.news(l) {
			continue
		}
		cost := h.cost(l)
		if cost == 0 || forQueue(l.stop) != plan.None && h.waited(forQueue(l.stop), l.end) >= unit.Hour {
			continue // whose claim has waited for so long waits no longer
		}
		has := float64(int64(h.ran(l))*l.milli/1000) / float64(cost)
		figure = min(figure, has)
		if has < 1 {
			return figure, fmt.Sprintf("job %d, started at %d s, is stopped at %d s (%s, for job %d) when it has earned %.2f of what its start cost, %.1f device-seconds, and nothing has happened since",
				l.job+1, h.at(l.start)/1e6, h.at(l.end)/1e6, l.stop.Reason.Code, forJob(l.stop)+1, has, float64(cost)/1e6)
		}
	}
	return figure, ""
}

// waited is for how long a job had waited at a moment, since it came or its last run had ended.
func (h *chronicle) waited(job plan.JobID, moment int) unit.Duration {
	since := h.at(h.jobs[job].came)
	for k := range h.lives {
		if l := &h.lives[k]; l.job == job && l.end >= 0 && l.end < moment {
			since = max(since, h.at(l.end))
		}
	}
	return h.at(moment).Sub(since)
}

// news reports whether something that its end may go by has happened since a run was started.
func (h *chronicle) news(l *life) bool {
	by := forJob(l.stop)
	for i := l.start + 1; i <= l.end; i++ {
		for k := range h.moments[i].events {
			switch ev := &h.moments[i].events[k]; ev.Kind {
			case engine.NodeDown, engine.NodeUp, engine.Shares:
				return true
			case engine.Exited:
				if k, lived := h.open[attempted{ev.Job, ev.Attempt}]; lived && h.lives[k].end == i {
					return true
				}
			case engine.Submit:
				if by == plan.None || h.jobs[by].came == i {
					return true
				}
			}
		}
	}
	return false
}

// circles: within six hours nobody displaces another for the second time where that one has
// displaced him too, by himself or through others who are still there; but for who shares time.
func circles(h *chronicle, decider string) (float64, string) {
	type displaced struct {
		by, victim plan.JobID
		at         unit.Time
	}
	var all []displaced
	round := 0
	for k := range h.lives {
		for _, x := range h.lives[k].stopped {
			v := &h.lives[x]
			if h.goesOn(v) || v.stop.Reason.Code == plan.Defragmented {
				continue
			}
			d := displaced{h.lives[k].job, v.job, h.at(v.end)}
			before := slices.DeleteFunc(slices.Clone(all), func(o displaced) bool {
				return d.at.Sub(o.at) >= 6*unit.Hour || h.over(o.by, d.at) || h.over(o.victim, d.at)
			})
			reach := []plan.JobID{d.victim}
			for i := 0; i < len(reach); i++ {
				for _, o := range before {
					if o.by == reach[i] && !slices.Contains(reach, o.victim) {
						reach = append(reach, o.victim)
					}
				}
			}
			if slices.Contains(reach, d.by) {
				round++
				again := slices.ContainsFunc(before, func(o displaced) bool { return o.by == d.by && o.victim == d.victim })
				if _, shares := sharers[decider]; again && !shares {
					return math.Inf(1), fmt.Sprintf("job %d displaces job %d again at %d s (%s), which displaced it in between", d.by+1, d.victim+1, d.at/1e6, v.stop.Reason.Code)
				}
			}
			all = append(all, d)
		}
	}
	return float64(round), ""
}

// over reports whether a job had ended by an instant.
func (h *chronicle) over(job plan.JobID, by unit.Time) bool {
	return slices.ContainsFunc(h.lives, func(l life) bool {
		return l.job == job && l.end >= 0 && h.at(l.end) <= by && slices.ContainsFunc(h.moments[l.end].events, func(ev engine.Event) bool {
			return ev.Kind == engine.Exited && ev.Job == job && ev.Attempt == l.attempt
		})
	})
}

// least: no other set of runs that could have given way by the same claim would have lost less.
func least(h *chronicle, _ string) (float64, string) {
	figure := 1.
	for i := range h.moments {
		if slices.ContainsFunc(h.moments[i].changes, func(c plan.Change) bool { return c.Verb == plan.Suspend }) {
			return figure, "" // what is suspended has not run for as long as it was there
		}
	}
	for k := range h.lives {
		l := &h.lives[k]
		lost, ground := int64(0), plan.NoReason
		for _, x := range l.stopped {
			v := &h.lives[x]
			if ground = v.stop.Reason.Code; forQueue(v.stop) != l.job {
				lost = -1
				break
			}
			lost += h.price(v, l.start)
		}
		if len(l.stopped) == 0 || lost < 0 {
			continue
		}
		could := h.could(l, ground)
		if len(could) > 8 {
			continue
		}
		best, set := int64(math.MaxInt64), []int(nil)
		for mask := range 1 << len(could) {
			var these []int
			sum := int64(0)
			for i, x := range could {
				if mask&(1<<i) != 0 {
					these, sum = append(these, x), sum+h.price(&h.lives[x], l.start)
				}
			}
			if sum < best && h.enough(l, these) {
				best, set = sum, these
			}
		}
		if best < lost {
			var names []string
			for _, x := range set {
				names = append(names, fmt.Sprint("j", h.lives[x].job+1))
			}
			var gone []string
			for _, x := range l.stopped {
				gone = append(gone, fmt.Sprint("j", h.lives[x].job+1))
			}
			return float64(lost) / float64(max(1, best)), fmt.Sprintf("at %d s %v are stopped (%s) for job %d, which loses %.1f device-seconds; with %v it would be %.1f", h.at(l.start)/1e6, gone, ground, l.job+1, float64(lost)/1e6, names, float64(best)/1e6)
		}
	}
	return figure, ""
}

// price is what stopping a run at a moment loses, in device-microseconds.
func (h *chronicle) price(l *life, at int) int64 {
	stopped := *l
	stopped.end = at
	return int64(h.loses(&stopped)) * l.milli / 1000
}

// leaf is the queue in which a job is filed, in a tree of queues side by side.
func (h *chronicle) leaf(job plan.JobID) int {
	return max(0, slices.IndexFunc(h.tree.Queues, func(q queue.Queue) bool { return q.Name == h.jobs[job].spec.Tenant }))
}

// could lists the runs that go on at the start of another and could have given way to it by a
// ground, and those that did.
func (h *chronicle) could(l *life, ground plan.ReasonCode) (lives []int) {
	first := h.lives[l.stopped[0]]
	for k := range h.lives {
		o := &h.lives[k]
		if slices.Contains(l.stopped, k) {
			lives = append(lives, k)
			continue
		}
		if o.start >= l.start || o.end >= 0 && o.end <= l.start || o.job == l.job || o.began == unit.Never {
			continue
		}
		c := h.jobs[o.job].spec.Checkpoint
		protected := h.tree.Protect
		if !c.OnRequest {
			protected = max(protected, c.Every)
		}
		if h.at(l.start).Sub(o.began) < protected+10*unit.Second || h.took(k, l.job) {
			continue
		}
		switch ground {
		case plan.Outranked:
			if h.jobs[o.job].spec.Priority >= h.jobs[l.job].spec.Priority || h.leaf(o.job) != h.leaf(first.job) {
				continue
			}
		case plan.Reclaimed:
			if h.leaf(o.job) == h.leaf(l.job) {
				continue
			}
		}
		lives = append(lives, k)
	}
	return lives
}

// took reports whether a run's job took room from others not long ago, or a job displaced it: then
// who remembers circles may spare it.
func (h *chronicle) took(k int, by plan.JobID) bool {
	for i := range h.lives {
		for _, x := range h.lives[i].stopped {
			if h.lives[x].job == h.lives[k].job && h.lives[i].job == by || h.lives[i].job == h.lives[k].job {
				return true
			}
		}
	}
	return false
}

// enough reports whether a job could have started in what is free and what these hold, and all who
// started in that moment, and each of them could be taken from by its queue's claim whatever the order in which they go.
func (h *chronicle) enough(l *life, these []int) bool {
	free := h.devices * 1000
	held := make([]int64, max(1, len(h.tree.Queues)))
	for k := range h.lives {
		o := &h.lives[k]
		if leaving := o.stop != nil && o.end < l.start && !h.gone(o, l.start); o.start < l.start && (o.end < 0 || o.end >= l.start || leaving) {
			if slices.Contains(these, k) {
				continue
			}
			if free -= o.milli; !leaving {
				held[h.leaf(o.job)] += o.milli
			}
		}
	}
	needs := l.milli
	for k := range h.lives { // with others that were started in the same moment: one stop may do for several
		if o := &h.lives[k]; o.start == l.start && o != l {
			needs += o.milli
		}
	}
	for _, x := range these {
		o := &h.lives[x]
		if q := h.leaf(o.job); q != h.leaf(l.job) && h.jobs[o.job].spec.Priority >= h.jobs[l.job].spec.Priority {
			guarantee := int64(0)
			if g := h.tree.Queues[q].Guarantee; g != nil {
				guarantee = g[0].Milli
			}
			if held[q]+o.milli <= guarantee {
				return false
			}
		}
	}
	return free >= needs
}

// gone reports whether a stop had been confirmed before a moment.
func (h *chronicle) gone(l *life, before int) bool {
	for i := l.end; i <= before; i++ {
		for k := range h.moments[i].events {
			if ev := &h.moments[i].events[k]; ev.Kind == engine.Stopped && ev.Job == l.job && ev.Attempt == l.attempt {
				return true
			}
		}
	}
	return false
}

// idles: a device that a waiting job may have is not left idle for longer than a round of the
// decider takes, and for no time where an order decides.
func idles(h *chronicle, decider string) (float64, string) {
	switch decider {
	case "fifo-strict", "salus":
		return 0, "" // they hold back by design: salus leaves empty devices to a gang that waits
	}
	patience := unit.Duration(0)
	if e, _ := catalogue.Find(decider); e.Part == allocate.JointPart {
		patience = 10*unit.Minute + 5*unit.Second
	}
	worst, since := unit.Duration(0), map[plan.JobID]unit.Time{}
	for i := range h.moments {
		m := &h.moments[i]
		for job := range since {
			if job != m.idles {
				delete(since, job)
			}
		}
		if m.idles == plan.None {
			continue
		}
		if _, was := since[m.idles]; !was {
			since[m.idles] = m.at
		}
		waits := m.at.Sub(since[m.idles])
		if worst = max(worst, waits); waits > patience || patience == 0 {
			return waits.Seconds(), fmt.Sprintf("at %d s job %d has waited for %s while a device is idle that it may have", m.at/1e6, m.idles+1, waits)
		}
	}
	return worst.Seconds(), ""
}

// stand is a site whose history is written down.
type stand struct {
	*site
	h     *chronicle
	ref   string
	joint bool // one decides for all jobs at once
}

// standFor draws a site for a decider, with two more parts.
func standFor(t *rapid.T, name string, plain bool) *stand {
	nodes, devices := rapid.IntRange(1, 8).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "devices")
	if nodes*devices == 1 {
		devices = 2
	}
	ref, tree := name, drawTree(t, int64(nodes*devices))
	switch kind := rapid.IntRange(0, 3).Draw(t, "tree"); {
	case plain || kind == 0:
		tree = queue.Flat("q0", "q1")
		tree.Queues[0].Preempt = rapid.Bool().Draw(t, "preempt")
		tree.Protect = unit.Duration(rapid.IntRange(0, 3).Draw(t, "protect")) * unit.Minute
		for i := 1; i < 3 && plain; i++ {
			tree.Queues[i].Guarantee = []queue.Amount{{Milli: int64(rapid.IntRange(0, nodes*devices/2).Draw(t, "guarantee")) * 1000}}
		}
	case kind == 1:
		tree = queue.Tree{Queues: []queue.Queue{queue.Root()}}
	}
	if plain {
		nodes, devices = 1, nodes*devices
	} else {
		for range 2 {
			part := rapid.SampledFrom(beside()).Draw(t, "part")
			if c, err := catalogue.Parse("test", ref+part); err == nil {
				if _, err := c.Build(catalogue.Env{Seed: 1}, false); err == nil {
					ref += part
				}
			}
		}
	}
	s := newSite(t, cluster.Uniform("site", nodes, devices, cluster.Model{Name: "gpu", Speed: 1, Memory: 16 << 10}, 2), tree, build(t, ref))
	s.stopDelay = unit.Duration(rapid.SampledFrom([]int{0, 1, 30}).Draw(t, "stop delay")) * unit.Second
	s.atOnce = rapid.Bool().Draw(t, "starts at once")
	e, _ := catalogue.Find(name)
	x := &stand{site: s, ref: ref, joint: e.Part == allocate.JointPart}
	x.h = record(s, tree, x.idle)
	return x
}

// beside are the parts that stand beside a decider, none among them.
func beside() []string {
	names := []string{"", ""}
	for _, e := range catalogue.All {
		switch e.Part {
		case calendar.ReservePart, victims.VictimsPart, moves.Part, allocate.SizePart:
			names = append(names, "+"+e.Name)
		}
	}
	return append(names, "+history", "+best-fit", "+consolidate", "+colocate")
}

// idle finds a job of one device that waits and could have one: its queues let it, and the device
// is nobody's. Not every joint decider starts a job with fewer workers than it asks for.
func (x *stand) idle() plan.JobID {
	v := x.e.View()
	if len(v.Claims()) > 0 || slices.ContainsFunc(x.h.tree.Queues, func(q queue.Queue) bool { return q.Keep != nil }) {
		return plan.None
	}
	w := &watch{site: x.site, tree: x.h.tree}
	for id := range plan.JobID(v.Jobs()) {
		j, shape := v.Job(id), v.Shape(id)
		if j.Phase != plan.Waiting || shape.Devices != 1 || shape.Share < 1000 || !shape.MayHave(1) || x.joint && shape.Gang > 1 || w.room(v, id) < 1000 {
			continue
		}
		for n := range plan.NodeID(v.Nodes()) {
			if at := v.Node(n); at.Status == plan.Up && at.FreeDevices > 0 && at.FreeCPU >= shape.CPU && at.FreeHost >= shape.Host {
				return id
			}
		}
	}
	return plan.None
}

// act is what happens at a site: a job comes, a node is lost or comes back, and time passes.
type act struct {
	job    workload.Job
	takes  unit.Duration
	passes unit.Duration
	node   int // -1 for none
}

// play runs a random history to its end, or as far as it may go.
func (x *stand) play(t *rapid.T, plain bool) {
	acts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act { return drawAct(t, x.e.View(), plain) }), 2, 40).Draw(t, "acts")
	var come []engine.Event // at one instant: nobody knows of one before the other
	for _, a := range acts {
		a.job.Name = fmt.Sprint("j", len(x.truth)+1)
		x.truth[plan.JobID(len(x.truth))] = a.takes
		if come = append(come, engine.Event{Kind: engine.Submit, Spec: &a.job}); a.passes == 0 && a.node < 0 {
			continue
		}
		x.step(come...)
		come = nil
		for until := x.now.Add(a.passes); x.now < until; {
			x.pass(until.Sub(x.now))
		}
		if node := plan.NodeID(a.node); a.node >= 0 {
			kind := engine.NodeDown
			if x.down[node] {
				kind = engine.NodeUp
			}
			x.down[node] = !x.down[node]
			x.step(engine.Event{Kind: kind, Node: node})
		}
	}
	x.step(come...)
	for range 200 {
		if len(x.due) == 0 && x.wake <= x.now {
			break
		}
		x.pass(6 * unit.Hour)
	}
}

func drawAct(t *rapid.T, v plan.View, plain bool) act {
	a := act{node: -1}
	gang := 1 << rapid.IntRange(0, 2).Draw(t, "size")
	if rapid.IntRange(0, 2).Draw(t, "large") == 2 {
		gang = rapid.IntRange(1, v.Devices()).Draw(t, "gang")
	}
	a.takes = unit.Duration(rapid.SampledFrom([]int{5, 60, 600, 3600, 20000}).Draw(t, "takes")*rapid.IntRange(5, 15).Draw(t, "times")/10) * unit.Second
	a.passes = unit.Duration(rapid.SampledFrom([]int{0, 0, 1, 5, 30, 120, 600, 3600}).Draw(t, "seconds")) * unit.Second
	a.job = workload.Job{Tenant: rapid.SampledFrom([]string{"q0", "q1", "q0/q1", ""}).Draw(t, "tenant"), User: fmt.Sprint("u", rapid.IntRange(0, 2).Draw(t, "user")),
		Priority: int32(rapid.IntRange(0, 4).Draw(t, "priority") / 3), Resources: workload.Resources{Gang: int32(min(gang, v.Devices())), Devices: 1, Share: 1000, Memory: 4 << 10}}
	switch rapid.IntRange(0, 3).Draw(t, "estimate") {
	case 0, 1:
		a.job.Estimate = a.takes
	case 2:
		a.job.Estimate = a.takes * unit.Duration(rapid.IntRange(5, 30).Draw(t, "off")) / 10
	}
	switch rapid.IntRange(0, 3).Draw(t, "checkpoint") {
	case 0, 1:
		a.job.Checkpoint = workload.Checkpoint{OnRequest: true, Save: 2 * unit.Second, Load: unit.Duration(rapid.SampledFrom([]int{0, 5, 60}).Draw(t, "load")) * unit.Second}
	case 2:
		a.job.Checkpoint = workload.Checkpoint{Every: 100 * unit.Second, Load: 5 * unit.Second}
	}
	if plain {
		if a.job.Tenant != "q0" {
			a.job.Tenant = "q1"
		}
		return a
	}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 9:
		a.job.Gang, a.job.Share = 1, unit.Milli(rapid.SampledFrom([]int{200, 500, 700}).Draw(t, "share"))
	case 8:
		a.job.Sizes = []int32{1, 2, 4}
	}
	if rapid.IntRange(0, 29).Draw(t, "lost") == 29 {
		a.node = rapid.IntRange(0, v.Nodes()-1).Draw(t, "node")
	}
	return a
}

// TestStops: whatever decides, what it ends it ends for something. Every property is looked for in
// the same histories; those of the plain ones have theirs besides.
func TestStops(t *testing.T) {
	worst, where := map[string]float64{}, map[string]string{}
	taken := 0
	for _, name := range rightstest.Deciders() {
		t.Run(name, func(t *testing.T) {
			for _, plain := range []bool{false, true} {
				draws.Cases{Few: 3, All: 30}.Check(t, func(t *rapid.T) {
					x := standFor(t, name, plain)
					x.play(t, plain)
					taken += len(x.h.moments)
					for _, p := range properties {
						if p.plain != plain {
							continue
						}
						figure, broken := p.holds(x.h, name)
						if broken != "" {
							t.Fatalf("%s/%s: %s: %s\n%s", p.name, name, x.ref, broken, x.h)
						}
						if was, any := worst[p.name]; !any || figure != was && figure > was != (p.name == "whole" || p.name == "earned") {
							worst[p.name], where[p.name] = figure, x.ref
						}
					}
				})
			}
		})
	}
	t.Logf("%d steps", taken)
	for _, p := range properties {
		t.Logf("%s: %.2f under %s", p.figure, worst[p.name], where[p.name])
	}
}

// starts is how often a job was started.
func (h *chronicle) starts(job plan.JobID) (n int) {
	for k := range h.lives {
		if h.lives[k].job == job {
			n++
		}
	}
	return n
}

// oneNode is a site of one node, on which starts take no time as in simulation, and its chronicle.
func oneNode(t *rapid.T, ref string, devices int, tree queue.Tree) (*site, *chronicle) {
	s := newSite(t, cluster.Uniform("site", 1, devices, cluster.Model{Name: "gpu", Speed: 1}, 1), tree, build(t, ref))
	s.atOnce = true
	return s, record(s, tree, func() plan.JobID { return plan.None })
}

// TestWishesAndPriority: what priority will take back at once no joint decider takes.
func TestWishesAndPriority(t *testing.T) {
	for _, name := range rightstest.Deciders() {
		if e, _ := catalogue.Find(name); e.Part != allocate.JointPart {
			continue
		}
		t.Run(name, func(t *testing.T) {
			draws.Once.Check(t, func(t *rapid.T) {
				tree := queue.Flat("a", "b")
				tree.Queues[0].Preempt = true
				s, h := oneNode(t, name, 4, tree)
				job := workload.Job{Tenant: "b", Priority: 1, Resources: workload.Resources{Gang: 3, Devices: 1, Share: 1000}, Checkpoint: workload.Checkpoint{OnRequest: true}}
				s.submit(job, 100_000*unit.Second)
				s.until(unit.Time(10 * unit.Second))
				job.Tenant, job.Priority, job.Gang = "a", 0, 2
				s.submit(job, 100_000*unit.Second)
				s.until(unit.Time(250_000 * unit.Second))
				if n := len(h.preempted()); n > 2 || h.starts(0) == 0 || h.starts(1) == 0 {
					t.Fatalf("%d preemptions of two jobs", n)
				}
			})
		})
	}
}

// TestGangAgainstSmall: a gang of the whole machine among small jobs is not started again and
// again, and nobody is stopped for nothing.
func TestGangAgainstSmall(t *testing.T) {
	for _, ref := range []string{"muster", "muster+easy"} {
		t.Run(ref, func(t *testing.T) {
			draws.Once.Check(t, func(t *rapid.T) {
				s, h := oneNode(t, ref, 8, queue.Tree{Queues: []queue.Queue{queue.Root()}})
				come := func(at, takes unit.Duration, gang int32) plan.JobID {
					s.until(unit.Time(at * unit.Second))
					return s.submit(workload.Job{Resources: workload.Resources{Gang: gang, Devices: 1, Share: 1000}, Checkpoint: workload.Checkpoint{OnRequest: true}}, takes*unit.Second)
				}
				come(0, 3600, 4)
				big := come(10, 3600, 8)
				come(20, 1500, 2)
				come(30, 1500, 2)
				s.until(unit.Time(12 * unit.Hour))
				if n := h.starts(big); n == 0 || n > 2 {
					t.Fatalf("the gang is started %d times\n%s", n, h)
				}
				for _, holds := range []func(*chronicle, string) (float64, string){whole, earned, few} {
					if _, broken := holds(h, "muster"); broken != "" {
						t.Fatalf("%s\n%s", broken, h)
					}
				}
			})
		})
	}
}

// TestPriorityStopsTheSmall: for one device the job of one device gives way, and not the gang,
// whatever its rank, and nobody gives way for that one.
func TestPriorityStopsTheSmall(t *testing.T) {
	for _, name := range rightstest.Deciders() {
		if e, _ := catalogue.Find(name); e.Part == allocate.JointPart {
			continue
		}
		for _, ref := range []string{name, name + "+cheapest"} {
			for _, saves := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/saves=%v", ref, saves), func(t *testing.T) {
					draws.Once.Check(t, func(t *rapid.T) {
						tree := queue.Flat("a")
						tree.Queues[1].Preempt = true
						s, h := oneNode(t, ref, 8, tree)
						come := func(gang int32, takes unit.Duration, priority int32) {
							s.submit(workload.Job{Tenant: "a", Priority: priority, Estimate: takes, Resources: workload.Resources{Gang: gang, Devices: 1, Share: 1000},
								Checkpoint: workload.Checkpoint{OnRequest: saves}}, takes)
						}
						come(7, 50_000*unit.Second, 0)
						come(1, 50_000*unit.Second, 0)
						s.until(unit.Time(unit.Hour))
						come(1, 1000*unit.Second, 10)
						s.until(unit.Time(unit.Hour + 500*unit.Second))
						v := s.e.View()
						gaveWay := func(l *life) bool { return l.job == 1 && forJob(l.stop) == 2 }
						if _, shares := sharers[name]; shares && v.Job(2).Phase == plan.Active && slices.ContainsFunc(h.preempted(), gaveWay) {
							return // what comes of ranks after that are turns
						}
						if v.Job(0).Phase != plan.Active || v.Job(1).Phase != plan.Waiting || v.Job(2).Phase != plan.Active || len(h.preempted()) != 1 {
							t.Fatalf("the gang is %s, the small job %s and the urgent one %s\n%s", v.Job(0).Phase, v.Job(1).Phase, v.Job(2).Phase, h)
						}
					})
				})
			}
		}
	}
}
