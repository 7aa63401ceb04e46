package compose_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/moves"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
	"github.com/musterdl/muster/strategies/allocate/equal"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/schedule/sjf"
)

// steps is how many steps the random histories of a test have in all.
func steps() int {
	if os.Getenv("MUSTER_LONG") != "" {
		return 100_000
	}
	return 8_000
}

// site is a random history: an engine, the runs that it started, and when they will
// do what.
type site struct {
	t         rapid.TB
	make      func() schedule.Scheduler
	made      schedule.Scheduler // that decides now
	e         *engine.Engine
	now, wake unit.Time
	due       []due
	names     int
	truth     map[plan.JobID]unit.Duration
	stopDelay unit.Duration
	atOnce    bool // starts take no time
	deaf      bool // nobody saves who is asked to
	down      map[plan.NodeID]bool
	// By preemptor: those it displaced, and the commit in which it did.
	displaced map[plan.JobID][]plan.JobID
	stops     map[int64]plan.JobID      // by change: whom it stops
	kept      int                       // promises
	promised  map[plan.JobID]plan.JobID // one of those who were stopped for its start, until it begins
	pairs     map[[2]plan.JobID][]unit.Time
	lost      map[plan.JobID]bool         // its promise was overtaken by people or failures
	hear      func(events []engine.Event) // before every step, where it is set
	look      func(c *plan.Commit)        // after every step, where it is set
}

type due struct {
	at unit.Time
	ev engine.Event
}

// composed makes a Scheduler of parts.
func composed(parts func() compose.Parts) func() schedule.Scheduler {
	return func() schedule.Scheduler { return compose.New(parts()) }
}

func newSite(t rapid.TB, c *cluster.Cluster, tree queue.Tree, make func() schedule.Scheduler) *site {
	s := &site{t: t, make: make, truth: map[plan.JobID]unit.Duration{}, down: map[plan.NodeID]bool{}, displaced: map[plan.JobID][]plan.JobID{},
		stops: map[int64]plan.JobID{}, promised: map[plan.JobID]plan.JobID{}, pairs: map[[2]plan.JobID][]unit.Time{}, lost: map[plan.JobID]bool{}}
	s.made = make()
	s.e = engine.New(c, s.made, engine.DefaultPolicy())
	s.step(engine.Event{Kind: engine.Shares, Queues: &tree})
	return s
}

// step feeds events at the present instant until nothing more happens at it.
func (s *site) step(events ...engine.Event) {
	for {
		for _, ev := range events {
			if err := s.e.Accept(&ev); err != nil {
				s.t.Fatalf("%s: %v", ev.Kind, err)
			}
		}
		for len(s.due) > 0 && s.due[0].at <= s.now {
			events = append(events, s.due[0].ev)
			s.due = s.due[1:]
		}
		if s.hear != nil {
			s.hear(events)
		}
		out := s.e.Step(s.now, events)
		events, s.wake = nil, out.Wake
		if err := s.e.State().Check(); err != nil {
			s.t.Fatalf("at %d: %v", s.now, err)
		}
		if out.Commit != nil {
			if err := s.e.View().Law(out.Commit); err != nil {
				s.t.Fatalf("%v: %s", err, out.Commit.AppendJSON(nil, s.e.View()))
			}
		}
		s.commit(out.Commit)
		if s.look != nil {
			s.look(out.Commit)
		}
		for _, c := range out.Ready {
			s.carryOut(c)
		}
		s.answer(out.Asks)
		if len(s.due) == 0 || s.due[0].at > s.now {
			return
		}
	}
}

// commit checks that nobody is stopped for a job that does not start.
func (s *site) commit(c *plan.Commit) {
	if c == nil {
		return
	}
	for _, stop := range c.Changes {
		if stop.Verb != plan.Stop || stop.Reason.Code != plan.Reclaimed && stop.Reason.Code != plan.Outranked {
			continue
		}
		by := plan.JobID(stop.Reason.A)
		i := slices.IndexFunc(c.Changes, func(o plan.Change) bool { return o.Verb == plan.Start && o.Job == by })
		if i < 0 {
			s.t.Fatalf("job %d is stopped for job %d, which does not start", stop.Job, by)
		}
		s.displaced[by] = append(s.displaced[by], stop.Job)
		s.pairs[[2]plan.JobID{by, stop.Job}] = append(s.pairs[[2]plan.JobID{by, stop.Job}], s.now)
		if n := min(s.lately(by, stop.Job), s.lately(stop.Job, by)); n > 1 {
			s.t.Fatalf("jobs %d and %d displace each other for the %d. time", by, stop.Job, n)
		}
	}
	s.keepsPromises(c)
	for _, w := range c.Changes {
		if w.Verb == plan.Withdraw && len(s.displaced[w.Job]) > 0 && (w.Reason.Code == plan.Reclaimed || w.Reason.Code == plan.Outranked) {
			s.t.Fatalf("job %d, for which %v were stopped, gives up its promise to job %d", w.Job, s.displaced[w.Job], w.Reason.A)
		}
	}
}

// keepsPromises checks that a run in whose place others were stopped begins: no strategy takes it back
// before.
func (s *site) keepsPromises(c *plan.Commit) {
	v := s.e.View()
	for i := range c.Changes {
		x := &c.Changes[i]
		victim, promised := s.promised[x.Job]
		switch {
		case x.Ends() && promised && v.Run(x.Run).Began == unit.Never && x.Reason.Code != plan.ByUser && x.Reason.Code != plan.NodeLost:
			s.t.Fatalf("at %d s the start of job %d, for which job %d was stopped, is taken back: %s", s.now/1e6, x.Job, victim, x.Reason.Words(v))
		case x.Ends():
			delete(s.promised, x.Job)
		case x.Verb == plan.Start:
			delete(s.promised, x.Job)
			for _, a := range x.After {
				if of, stops := s.stops[a]; stops && of != x.Job && v.Run(x.Run).Terms.Share.Guest == plan.None {
					s.promised[x.Job] = of
				}
			}
		}
		if x.Verb == plan.Stop {
			s.stops[x.ID] = x.Job
		}
	}
	for job := range s.promised {
		if run := v.Job(job).Run; run == plan.None {
			delete(s.promised, job) // by people or failures
		} else if v.Run(run).Began != unit.Never {
			delete(s.promised, job)
			s.kept++
		}
	}
}

// lately is how often a job displaced another within the window of a loop.
func (s *site) lately(by, victim plan.JobID) (n int) {
	for _, at := range s.pairs[[2]plan.JobID{by, victim}] {
		if s.now.Sub(at) < 6*unit.Hour {
			n++
		}
	}
	return n
}

func (s *site) carryOut(c plan.Change) {
	report := func(kind engine.Kind, after unit.Duration, kept unit.Duration) {
		s.at(s.now.Add(after), engine.Event{Kind: kind, Job: c.Job, Attempt: c.Attempt, Ending: engine.Ending{Kept: kept}})
	}
	switch c.Verb {
	case plan.Start:
		delete(s.displaced, c.Job)
		start := unit.Second
		if s.atOnce {
			start = 0
		}
		report(engine.Started, start, 0)
		left := max(unit.Second, s.truth[c.Job]-s.e.View().Executed(c.Job))
		report(engine.Exited, start+left, left)
	case plan.Stop:
		s.due = slices.DeleteFunc(s.due, func(d due) bool { return d.ev.Job == c.Job && d.ev.Attempt == c.Attempt })
		ending, v := engine.Ending{}, s.e.View()
		if run := s.e.State().RunOf(c.Job, c.Attempt); run != plan.None {
			ran, saves := v.Executed(c.Job)-v.Job(c.Job).Executed, v.Job(c.Job).Checkpoint
			switch {
			case saves.Asked():
				if ending.Unsaved = s.deaf && v.Run(run).Began != unit.Never; !s.deaf {
					ending.Kept = ran
				}
			case saves.Every > 0:
				ending.Kept = ran - ran%saves.Every
			}
		}
		s.at(s.now.Add(s.stopDelay), engine.Event{Kind: engine.Stopped, Job: c.Job, Attempt: c.Attempt, Ending: ending})
	case plan.Suspend:
		s.due = slices.DeleteFunc(s.due, func(d due) bool { return d.ev.Job == c.Job && d.ev.Attempt == c.Attempt })
		report(engine.Suspended, unit.Second, 0)
	case plan.Resume:
		report(engine.Resumed, unit.Second, 0)
		left := max(unit.Second, s.truth[c.Job]-s.e.View().Executed(c.Job))
		report(engine.Exited, unit.Second+left, left)
	case plan.Reshape:
		s.at(s.now.Add(unit.Second), engine.Event{Kind: engine.Reshaped, Device: c.Device, Change: c.ID})
	}
}

// answer has questions answered a second later.
func (s *site) answer(asks []strategy.Ask) {
	for _, ask := range asks {
		reply, err := s.e.Answerer().Answer(ask.Question)
		if err != nil {
			s.t.Fatal(err)
		}
		s.at(s.now.Add(unit.Second), engine.Event{Kind: engine.Answered, Answer: strategy.Answer{Asker: ask.Asker, Reply: reply}})
	}
}

func (s *site) at(at unit.Time, ev engine.Event) {
	i := slices.IndexFunc(s.due, func(d due) bool { return d.at > at })
	if i < 0 {
		i = len(s.due)
	}
	s.due = slices.Insert(s.due, i, due{at, ev})
}

// pass lets time go on to the next thing that happens, but no further than d.
func (s *site) pass(d unit.Duration) {
	next := s.now.Add(d)
	if len(s.due) > 0 {
		next = min(next, s.due[0].at)
	}
	if s.wake > s.now {
		next = min(next, s.wake)
	}
	s.now = max(s.now, next)
	s.step()
}

func (s *site) submit(j workload.Job, takes unit.Duration) plan.JobID {
	id := plan.JobID(s.e.View().Jobs())
	s.names++
	j.Name = fmt.Sprint("j", s.names)
	s.truth[id] = takes
	s.step(engine.Event{Kind: engine.Submit, Spec: &j})
	return id
}

// restart saves, loads and rebuilds, as after a crash: nothing may change.
func (s *site) restart() {
	state, err := s.e.State().Clone()
	if err != nil {
		s.t.Fatal(err)
	}
	s.made = s.make()
	s.e = engine.Restore(state, s.made, engine.DefaultPolicy())
	out := s.e.Step(s.now, []engine.Event{{Kind: engine.Rebuilt}})
	if out.Commit != nil {
		s.t.Fatalf("a restart decides anew: %s", out.Commit.AppendJSON(nil, s.e.View()))
	}
	s.wake = out.Wake
}

func drawTree(t *rapid.T, devices int64) queue.Tree {
	tree := queue.Tree{Queues: []queue.Queue{queue.Root()}, HalfLife: unit.Duration(rapid.IntRange(0, 2).Draw(t, "half-life")) * unit.Hour,
		Protect: unit.Duration(rapid.IntRange(0, 3).Draw(t, "protect")) * unit.Minute, Disruptions: int32(rapid.IntRange(0, 2).Draw(t, "disruptions"))}
	tree.Queues[0].Preempt = rapid.Bool().Draw(t, "preempt")
	amount := func(what string, chance int) []queue.Amount {
		if rapid.IntRange(0, chance).Draw(t, what+"?") > 0 {
			return nil
		}
		return []queue.Amount{{Milli: int64(rapid.IntRange(0, int(devices)).Draw(t, what)) * 1000}}
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "queues") {
		q := queue.Queue{Name: fmt.Sprint("q", i), Weight: int32(rapid.IntRange(1, 4).Draw(t, "weight")) * 500,
			Priority: int32(rapid.IntRange(0, 8).Draw(t, "priority") / 8), Guarantee: amount("guarantee", 1), Limit: amount("limit", 5),
			Borrow: amount("borrow", 5), UserLimit: amount("user limit", 5), Preempt: rapid.IntRange(0, 3).Draw(t, "own preempt") == 0}
		if q.Guarantee != nil && rapid.IntRange(0, 3).Draw(t, "keeps") == 0 {
			q.Keep = []queue.Amount{{Milli: min(1000, q.Guarantee[0].Milli)}}
		}
		if i > 0 && rapid.IntRange(0, 2).Draw(t, "below") == 0 {
			q.Parent = int32(i)
			q.Name = tree.Queues[i].Name + "/" + q.Name
		}
		tree.Queues = append(tree.Queues, q)
	}
	return tree
}

func drawParts(t *rapid.T) func() compose.Parts {
	order := rapid.SampledFrom([]schedule.Order{fifo.New(fifo.Default()), fifo.New(fifo.Config{}), sjf.Order{}}).Draw(t, "order")
	placer := rapid.SampledFrom([]func() allocate.Placer{
		func() allocate.Placer { return firstfit.Placer{} }, func() allocate.Placer { return bestfit.New(bestfit.Default()) }}).Draw(t, "placer")
	reserve := calendar.Policy{Depth: rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "depth"),
		Patience: unit.Duration(rapid.IntRange(0, 2).Draw(t, "patience")) * unit.Hour}
	moved := rapid.SampledFrom([]moves.Policy{{}, {Most: 3, Part: 1}}).Draw(t, "moves")
	return func() compose.Parts {
		return compose.Parts{Reserve: reserve, Estimator: declared.Estimator{}, Order: order, Sizer: equal.Sizer{}, Placer: placer(), Flow: maxmin.Policy{}, Moves: moved}
	}
}

// TestHistories: through random submissions, ends, cancellations, losses of nodes,
// other trees and restarts nothing is over-committed, the books balance, nobody is
// displaced for a job that does not start, and no two jobs displace each other again
// and again. Limits hold whenever the tree has not just changed.
func TestHistories(t *testing.T) {
	taken := 0
	for taken < steps() {
		draws.Cases{Round: taken}.Check(t, func(t *rapid.T) { taken += history(t) })
	}
}

func history(t *rapid.T) int {
	nodes, devices := rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "devices")
	s := newSite(t, cluster.Uniform("site", nodes, devices, cluster.Model{Name: "gpu", Speed: 1}, 2), drawTree(t, int64(nodes*devices)), composed(drawParts(t)))
	s.stopDelay = unit.Duration(rapid.IntRange(0, 30).Draw(t, "stop delay")) * unit.Second
	n := rapid.IntRange(10, 60).Draw(t, "steps")
	for range n {
		switch rapid.IntRange(0, 19).Draw(t, "what") {
		case 0, 1, 2, 3, 4, 5, 6:
			s.submit(drawJob(t, s), unit.Duration(rapid.IntRange(1, 3000).Draw(t, "takes"))*unit.Second)
		case 7:
			if id := plan.JobID(rapid.IntRange(0, max(0, s.e.View().Jobs()-1)).Draw(t, "job")); int(id) < s.e.View().Jobs() && !s.e.View().Job(id).Phase.Over() {
				s.step(engine.Event{Kind: engine.Cancel, Job: id})
			}
		case 8:
			node := plan.NodeID(rapid.IntRange(0, nodes-1).Draw(t, "node"))
			kind := engine.NodeDown
			if s.down[node] {
				kind = engine.NodeUp
			}
			s.down[node] = !s.down[node]
			s.step(engine.Event{Kind: kind, Node: node})
		case 9:
			s.restart()
		case 10:
			tree := drawTree(t, int64(nodes*devices))
			s.step(engine.Event{Kind: engine.Shares, Queues: &tree})
		case 11:
			from := s.now.Add(unit.Duration(rapid.IntRange(0, 1000).Draw(t, "from")) * unit.Second)
			ev := engine.Event{Kind: engine.Close, Node: plan.NodeID(rapid.IntRange(0, nodes-1).Draw(t, "closed")), Bounds: engine.Bounds{From: from, To: from.Add(unit.Hour)}}
			if s.e.Accept(&ev) == nil { // it may have one already
				s.step(ev)
			}
		default:
			s.pass(unit.Duration(rapid.IntRange(1, 1000).Draw(t, "seconds")) * unit.Second)
		}
	}
	return n
}

func drawJob(t *rapid.T, s *site) workload.Job {
	tenants := []string{"", "q0", "q1", "q2", "q0/q1", "elsewhere"}
	j := workload.Job{Tenant: rapid.SampledFrom(tenants).Draw(t, "tenant"), User: fmt.Sprint("u", rapid.IntRange(0, 2).Draw(t, "user")),
		Priority:  int32(rapid.IntRange(0, 3).Draw(t, "priority") / 3),
		Resources: workload.Resources{Gang: int32(rapid.IntRange(1, 4).Draw(t, "gang")), Devices: 1, Share: 1000},
		Estimate:  unit.Duration(rapid.IntRange(0, 3000).Draw(t, "estimate")) * unit.Second}
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 6:
		j.Devices, j.CPU = 0, 4000
	case 0:
		j.Gang, j.Share = 1, unit.Milli(rapid.SampledFrom([]int{200, 500, 700}).Draw(t, "share"))
	case 1:
		j.Sizes = []int32{1, 2, 4}
	}
	switch rapid.IntRange(0, 2).Draw(t, "checkpoint") {
	case 0:
		j.Checkpoint = workload.Checkpoint{OnRequest: true, Load: unit.Duration(rapid.IntRange(0, 1).Draw(t, "load")) * 5 * unit.Second}
	case 1:
		j.Checkpoint = workload.Checkpoint{Every: 100 * unit.Second, Load: 5 * unit.Second}
	}
	return j
}

// TestGuarantees: with jobs of one device, a queue that asks for what it is guaranteed
// has it when those who hold it have had their protected time and were stopped: what
// is lent returns.
func TestGuarantees(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		devices := rapid.IntRange(2, 8).Draw(t, "devices")
		tree := queue.Flat("a", "b", "c")
		tree.Protect = unit.Duration(rapid.IntRange(0, 10).Draw(t, "protect")) * unit.Minute
		tree.HalfLife = unit.Duration(rapid.IntRange(0, 2).Draw(t, "half-life")) * unit.Day
		left := int64(devices)
		for i := 1; i < 4; i++ {
			g := rapid.Int64Range(0, left).Draw(t, "guarantee")
			left -= g
			tree.Queues[i].Guarantee = []queue.Amount{{Milli: g * 1000}}
		}
		s := newSite(t, cluster.Uniform("site", 1, devices, cluster.Model{Name: "gpu", Speed: 1}, 1), tree, composed(drawParts(t)))
		s.stopDelay = unit.Duration(rapid.IntRange(0, 60).Draw(t, "stop delay")) * unit.Second
		for range 30 {
			tenant := rapid.IntRange(1, 3).Draw(t, "tenant")
			for range rapid.IntRange(1, 4).Draw(t, "jobs") {
				s.submit(workload.Job{Tenant: tree.Queues[tenant].Name, Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000}, Checkpoint: workload.Checkpoint{OnRequest: true}},
					unit.Duration(rapid.IntRange(1, 5000).Draw(t, "takes"))*unit.Second)
			}
			// A start that was made a moment ago is protected from when it computes, and who
			// loses his protection within ten seconds is looked at together.
			for until := s.now.Add(tree.Protect + 2*s.stopDelay + 15*unit.Second); s.now < until; {
				s.pass(until.Sub(s.now))
			}
			held, waits := count(s.e.View(), 4)
			for q := 1; q < 4; q++ {
				if g := tree.Queues[q].Guarantee[0].Milli; waits[q] > 0 && held[q] < g {
					t.Fatalf("queue %s holds %d of %d guaranteed and %d of its jobs wait; held %v", tree.Queues[q].Name, held[q], g, waits[q], held)
				}
			}
			if slices.Max(waits) > 0 && held[1]+held[2]+held[3] < int64(devices)*1000 {
				t.Fatalf("jobs wait (%v) while devices are free (%v of %d held)", waits, held, devices)
			}
		}
	})
}

func count(v plan.View, queues int) (held []int64, waits []int) {
	held, waits = make([]int64, queues), make([]int, queues)
	for id := range plan.JobID(v.Jobs()) {
		j := v.Job(id)
		q := v.QueueOf(j.Tenant)
		switch j.Phase {
		case plan.Active:
			v.GrantsOf(j.Run, func(g plan.Grant) { held[q] += int64(g.Reserve) })
		case plan.Waiting:
			waits[q]++
		}
	}
	return held, waits
}

// TestSameBytes: two engines fed the same history decide the same.
func TestSameBytes(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		tree, parts := drawTree(t, 4), composed(drawParts(t))
		c := cluster.Uniform("site", 2, 2, cluster.Model{Name: "gpu", Speed: 1}, 2)
		a, b := newSite(t, c, tree, parts), newSite(t, c, tree, parts)
		for range 20 {
			j, takes := drawJob(t, a), unit.Duration(rapid.IntRange(1, 900).Draw(t, "takes"))*unit.Second
			a.submit(j, takes)
			b.submit(j, takes)
			d := unit.Duration(rapid.IntRange(1, 300).Draw(t, "seconds")) * unit.Second
			a.pass(d)
			b.pass(d)
		}
		var x, y bytes.Buffer
		if err := a.e.State().Save(&x); err != nil {
			t.Fatal(err)
		}
		if err := b.e.State().Save(&y); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x.Bytes(), y.Bytes()) {
			t.Fatal("the same history leads to two states")
		}
	})
}
