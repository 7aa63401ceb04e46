package defrag_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/engine/defrag"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/victims"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
	"github.com/musterdl/muster/strategies/allocate/equal"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/allocate/spread"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/schedule/srtf"
)

// site is a random history: an engine, another that folds what the first one records,
// and what the runs will do and when.
type site struct {
	t         *rapid.T
	dice      *rand.Rand
	parts     func() compose.Parts
	e, folded *engine.Engine
	now, wake unit.Time
	due       []due
	truth     map[plan.JobID]unit.Duration
	stopDelay unit.Duration
	down      map[plan.NodeID]bool
	applied   int
	late      int // plans that came too late
}

type due struct {
	at unit.Time
	ev engine.Event
}

// n draws a number; the numbers of a history come from one seed, evenly, since those
// that rapid draws are mostly small.
func (s *site) n(low, high int) int { return low + s.dice.IntN(high-low+1) }

func oneOf[T any](s *site, list []T) T { return list[s.n(0, len(list)-1)] }

func newSite(t *rapid.T) *site {
	s := &site{t: t, truth: map[plan.JobID]unit.Duration{}, down: map[plan.NodeID]bool{}, wake: unit.Never,
		dice: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
	s.stopDelay = unit.Duration(s.n(0, 20)) * unit.Second
	nodes, devices := s.n(2, 5), s.n(2, 4)
	c := cluster.Uniform("site", nodes, devices, cluster.Model{Name: "gpu", Memory: 16 << 10, Speed: 1}, 2)
	order := oneOf(s, []schedule.Order{fifo.New(fifo.Default()), fifo.New(fifo.Config{}), srtf.Order{}})
	placer := oneOf(s, []func() allocate.Placer{func() allocate.Placer { return firstfit.Placer{} },
		func() allocate.Placer { return bestfit.New(bestfit.Default()) }, func() allocate.Placer { return spread.New(spread.Default()) }})
	reserve := calendar.Policy{Depth: oneOf(s, []int{0, 0, 1, 3})}
	s.parts = func() compose.Parts {
		return compose.Parts{Reserve: reserve, Estimator: declared.Estimator{}, Order: order, Sizer: equal.Sizer{}, Placer: placer(), Flow: maxmin.Policy{}}
	}
	s.e = engine.New(c, compose.New(s.parts()), engine.DefaultPolicy())
	s.folded = engine.New(c, compose.New(s.parts()), engine.DefaultPolicy())
	tree := s.tree(int64(nodes * devices))
	s.step(engine.Event{Kind: engine.Shares, Queues: &tree})
	return s
}

func (s *site) tree(devices int64) queue.Tree {
	t := queue.Tree{Queues: []queue.Queue{queue.Root()}, Protect: unit.Duration(s.n(0, 2)) * unit.Minute,
		Disruptions: int32(s.n(0, 2))}
	for i := range s.n(0, 3) {
		q := queue.Queue{Name: fmt.Sprint("q", i), Weight: 1000}
		amount := []queue.Amount{{Milli: int64(s.n(0, int(devices))) * 1000}}
		switch s.n(0, 9) {
		case 6:
			q.Limit = amount
		case 7:
			q.UserLimit = amount
		case 8:
			q.Guarantee, q.Borrow = amount, []queue.Amount{{Milli: 2000}}
		case 9:
			q.Guarantee, q.Keep = amount, []queue.Amount{{Milli: 1000}}
		}
		t.Queues = append(t.Queues, q)
	}
	return t
}

// step feeds events at the present instant until nothing more happens at it, and returns
// the first commit.
func (s *site) step(events ...engine.Event) (first *plan.Commit) {
	for turn := 0; ; turn++ {
		out := s.e.Step(s.now, events)
		var line []byte
		if out.Commit != nil {
			line = out.Commit.AppendJSON(nil, s.e.View())
			if turn == 0 {
				c := *out.Commit
				c.Changes = slices.Clone(c.Changes)
				first = &c
			}
		}
		s.fold(events, line, out.Asides)
		s.wake, events = out.Wake, nil
		if err := s.e.State().Check(); err != nil {
			s.t.Fatalf("at %d: %v", s.now, err)
		}
		for _, c := range out.Ready {
			s.carryOut(c)
		}
		if len(s.due) == 0 || s.due[0].at > s.now {
			return first
		}
		events = append(events, s.due[0].ev)
		s.due = s.due[1:]
	}
}

// fold applies to the second engine what a journal would hold of a step.
func (s *site) fold(events []engine.Event, line []byte, asides []plan.Aside) {
	var read []engine.Event
	for _, ev := range events {
		text, err := json.Marshal(ev)
		if err != nil {
			s.t.Fatal(err)
		}
		var again engine.Event
		if err := json.Unmarshal(text, &again); err != nil {
			s.t.Fatal(err)
		}
		read = append(read, again)
	}
	if _, err := s.folded.Fold(s.now, read, line, slices.Clone(asides)); err != nil {
		s.t.Fatal(err)
	}
	var x, y bytes.Buffer
	if err := s.e.State().Save(&x); err != nil {
		s.t.Fatal(err)
	}
	if err := s.folded.State().Save(&y); err != nil {
		s.t.Fatal(err)
	}
	if !bytes.Equal(x.Bytes(), y.Bytes()) {
		s.t.Fatalf("at %d the folded state is another after %s", s.now, line)
	}
}

func (s *site) carryOut(c plan.Change) {
	report := func(kind engine.Kind, after unit.Duration, kept unit.Duration) {
		s.at(s.now.Add(after), engine.Event{Kind: kind, Job: c.Job, Attempt: c.Attempt, Ending: engine.Ending{Kept: kept}})
	}
	switch c.Verb {
	case plan.Start:
		report(engine.Started, unit.Second, 0)
		left := max(unit.Second, s.truth[c.Job]-s.e.View().Executed(c.Job))
		report(engine.Exited, unit.Second+left, left)
	case plan.Stop:
		s.due = slices.DeleteFunc(s.due, func(d due) bool { return d.ev.Job == c.Job && d.ev.Attempt == c.Attempt })
		v := s.e.View()
		report(engine.Stopped, s.stopDelay, v.Executed(c.Job)-v.Job(c.Job).Executed)
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

func (s *site) submit(kind int) {
	perNode := s.e.View().Node(0).Count
	j := workload.Job{Tenant: oneOf(s, []string{"", "q0", "q1", "q2"}), User: fmt.Sprint("u", s.n(0, 1)),
		Name: fmt.Sprint("j", s.e.View().Jobs()), Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000},
		Estimate:   unit.Duration(s.n(0, 3000)) * unit.Second,
		Checkpoint: workload.Checkpoint{OnRequest: s.n(0, 4) > 0, Save: 3 * unit.Second, Load: unit.Duration(s.n(0, 9)) * unit.Second}}
	switch kind {
	case 0, 1, 2:
	case 3:
		j.Gang, j.Devices = int32(s.n(1, 3)), int32(s.n(1, 2))
	case 4:
		j.Devices = perNode
	case 5:
		j.Share = unit.Milli(oneOf(s, []int{500, 300, 700}))
	case 6:
		j.Gang, j.Sizes = 2, []int32{2, 4}
	case 7:
		j.CPU = 1000
	}
	s.truth[plan.JobID(s.e.View().Jobs())] = unit.Duration(s.n(200, 9000)) * unit.Second
	s.step(engine.Event{Kind: engine.Submit, Spec: &j})
}

// restart saves, loads and rebuilds, as after a crash: nothing may change, or the
// scheduler's caches were not what the state says.
func (s *site) restart() {
	for _, e := range []**engine.Engine{&s.e, &s.folded} {
		state, err := (*e).State().Clone()
		if err != nil {
			s.t.Fatal(err)
		}
		*e = engine.Restore(state, compose.New(s.parts()), engine.DefaultPolicy())
	}
	c := s.step(engine.Event{Kind: engine.Rebuilt})
	// Where runs are displaced, what they left may be more than was needed, and somebody's
	// who was passed over a moment ago.
	tree := s.e.View().Queues()
	gives := slices.ContainsFunc(tree.Queues, func(q queue.Queue) bool { return q.Guarantee != nil })
	if c != nil && !gives && !s.parts().Order.Rules().Preempt {
		s.t.Fatalf("a restart decides anew: %s", c.AppendJSON(nil, s.e.View()))
	}
}

// defrag plans for some job, and carries the plan out at once or later.
func (s *site) defrag() {
	for node := range plan.NodeID(s.e.View().Nodes()) { // no node is left wholly free
		if n := s.e.View().Node(node); n.FreeDevices == n.Count {
			s.submit(0)
		}
	}
	s.submit(oneOf(s, []int{4, 3, 4}))
	s.pass(unit.Duration(oneOf(s, []int{120, 10, 1})) * unit.Second)
	p := defrag.Planner{Placer: s.parts().Placer, Budget: defrag.Budget{Moves: 6 - s.n(1, 5),
		Price: int64(s.n(0, 3)) * 30 * int64(unit.Second)}}
	fork := s.e.State().Copy()
	got, ok := p.Any(fork, s.parts().Order)
	if !ok {
		return
	}
	follow(s.t, fork, &got)
	if len(got.Moves) > p.Budget.Moves || p.Budget.Price > 0 && got.Price > p.Budget.Price {
		s.t.Fatalf("over the budget %+v: %s", p.Budget, got.Why)
	}
	ev := got.Event()
	switch s.n(0, 5) {
	case 3:
		s.pass(unit.Duration(s.n(1, 100)) * unit.Second)
		if s.e.Accept(&ev) != nil {
			s.late++
			return
		}
		s.partly(&got, s.step(ev))
	case 4: // something else happens in the same instant, before it and behind it
		other := s.accident()
		if s.e.Accept(&ev) == nil {
			s.partly(&got, s.step(other, ev))
		}
	case 5:
		if s.e.Accept(&ev) == nil {
			s.partly(&got, s.step(ev, s.accident()))
		}
	default:
		s.whole(&got, ev)
	}
}

func (s *site) accident() engine.Event {
	v := s.e.View()
	job, node := plan.JobID(s.n(0, v.Jobs()-1)), plan.NodeID(s.n(0, v.Nodes()-1))
	ev := oneOf(s, []engine.Event{{Kind: engine.Cancel, Job: job}, {Kind: engine.Requeue, Job: job}, {Kind: engine.Cordon, Node: node},
		{Kind: engine.Drain, Node: node}, {Kind: engine.NodeDown, Node: node}})
	s.down[node] = s.down[node] || ev.Kind == engine.NodeDown
	if ev.Kind == engine.NodeDown {
		s.due = slices.DeleteFunc(s.due, func(d due) bool { // what was there is silent
			run := s.e.State().RunOf(d.ev.Job, d.ev.Attempt)
			gone := false
			if run != plan.None {
				v.GrantsOf(run, func(g plan.Grant) { gone = gone || g.Node == node })
			}
			return gone && d.ev.Kind != engine.Stopped
		})
	}
	return ev
}

// stopped counts what a plan stopped.
func stopped(c *plan.Commit, job plan.JobID) (n int) {
	if c != nil {
		for _, ch := range c.Changes {
			if ch.Verb == plan.Stop && ch.Reason == (plan.Reason{Code: plan.Defragmented, A: int64(job)}) {
				n++
			}
		}
	}
	return n
}

// partly checks that a plan that met something else was carried out wholly or not at
// all.
func (s *site) partly(q *defrag.Sequence, c *plan.Commit) {
	switch n := stopped(c, q.Job); n {
	case len(q.Moves):
		s.applied++
	case 0:
		s.late++
	default:
		s.t.Fatalf("%d of %d moves were made: %s", n, len(q.Moves), q.Why)
	}
}

// whole carries a plan out at once, and checks all that it promised.
func (s *site) whole(q *defrag.Sequence, ev engine.Event) {
	v := s.e.View()
	price := int64(0)
	for _, m := range q.Moves {
		j := v.Job(m.Job)
		r := v.Run(j.Run)
		if tree := v.Queues(); !j.Checkpoint.OnRequest || r.Began.Add(tree.Protect) > v.Now() || tree.Disruptions > 0 && j.Preemptions >= tree.Disruptions*int32(1+v.Now().Sub(j.Submit)/unit.Day) {
			s.t.Fatalf("job %d is protected and to be moved: %+v", m.Job, j)
		}
		lost, restart, p := victims.Price(v, j.Run)
		if p != m.Price || lost+restart != m.Move.Price {
			s.t.Fatalf("job %d is said to cost %d, it costs %d", m.Job, m.Price, p)
		}
		price += p
	}
	if price != q.Price {
		s.t.Fatalf("the plan is said to cost %d, it costs %d", q.Price, price)
	}
	before := s.held()
	if err := s.e.Accept(&ev); err != nil {
		s.t.Fatalf("%s: %v", q.Why, err)
	}
	c := s.step(ev)
	if stopped(c, q.Job) != len(q.Moves) {
		s.t.Fatalf("%s: not all were moved: %+v", q.Why, c)
	}
	s.applied++
	for _, m := range append([]engine.Move{q.Start}, ev.Moves...) {
		i := slices.IndexFunc(c.Changes, func(ch plan.Change) bool { return ch.Verb == plan.Start && ch.Job == m.Job && ch.Attempt == m.Attempt })
		if i < 0 {
			s.t.Fatalf("%s: job %d has no run in the same commit", q.Why, m.Job)
		}
		run := c.Changes[i].Run
		if s.e.View().Run(run).Job != m.Job {
			continue // it ended at the same instant
		}
		if at := engine.PlacesOf(s.e.View(), run); fmt.Sprint(at) != fmt.Sprint(m.Places) {
			s.t.Fatalf("job %d is on %v, was to be on %v", m.Job, at, m.Places)
		}
	}
	for _, ch := range c.Changes {
		i := slices.IndexFunc(q.Moves, func(m defrag.Move) bool { return m.Job == ch.Job })
		if ch.Verb == plan.Stop && i >= 0 && ch.Price != q.Moves[i].Move.Price {
			s.t.Fatalf("the stop of job %d says %d", ch.Job, ch.Price)
		}
	}
	s.limits(before, c)
}

// held is what each queue holds, and each of its users.
func (s *site) held() map[string]int64 {
	v, held := s.e.View(), map[string]int64{}
	for id := range plan.RunID(v.RunSlots()) {
		r := v.Run(id)
		if r.Status == plan.Gone || r.Status == plan.Stopping {
			continue
		}
		j := v.Job(r.Job)
		v.GrantsOf(id, func(g plan.Grant) {
			if g.Device != plan.None {
				q := fmt.Sprint(v.QueueOf(j.Tenant))
				held[q] += int64(g.Reserve)
				held[q+" of "+v.User(j.User)] += int64(g.Reserve)
			}
		})
	}
	return held
}

// limits checks that no queue, and no user in one, holds more than it may that did not
// before.
func (s *site) limits(before map[string]int64, c *plan.Commit) {
	after := s.held()
	for i, q := range s.e.View().Queues().Queues {
		check := func(who string, bound []queue.Amount, more int64) {
			if bound != nil && after[who] > bound[0].Milli+more && after[who] > before[who] {
				s.t.Fatalf("%s holds %d, before the moves %d, and may hold %d: %+v", who, after[who], before[who], bound[0].Milli+more, c)
			}
		}
		check(fmt.Sprint(i), q.Limit, 0)
		if q.Borrow != nil {
			check(fmt.Sprint(i), q.Borrow, q.Guarantee[0].Milli)
		}
		for u := range 2 {
			check(fmt.Sprintf("%d of u%d", i, u), q.UserLimit, 0)
		}
	}
}

func steps() int {
	switch {
	case os.Getenv("MUSTER_FULL") != "":
		return 100_000
	case os.Getenv("MUSTER_LONG") != "":
		return 25_000
	}
	return 1_000
}

// TestHistories: through random histories in which plans are carried out at any moment,
// at once, too late, and together with losses and cancellations, nothing is
// over-committed, a plan is carried out wholly or not at all, every job that is moved
// has a run again in the same commit and so has the gang, budgets, protections and
// limits hold, the price is what was said, the folded state is the same to the byte, and
// the scheduler's caches stay those of the state.
func TestHistories(t *testing.T) {
	taken, applied, late := 0, 0, 0
	for taken < steps() {
		draws.Cases{Round: taken}.Check(t, func(t *rapid.T) {
			s := newSite(t)
			s.fill()
			n := rapid.IntRange(1, 40).Draw(t, "steps")
			for range n {
				s.random()
			}
			taken, applied, late = taken+n, applied+s.applied, late+s.late
		})
	}
	t.Logf("%d steps, %d plans carried out, %d came too late", taken, applied, late)
	if applied < taken/500 {
		t.Errorf("only %d plans were carried out in %d steps", applied, taken)
	}
}

// fill gives every device a small job, and ends some of them.
func (s *site) fill() {
	for range s.e.View().Devices() {
		j := workload.Job{Name: fmt.Sprint("j", s.e.View().Jobs()), Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000}, Checkpoint: workload.Checkpoint{OnRequest: true, Save: unit.Second, Load: unit.Second}}
		s.truth[plan.JobID(s.e.View().Jobs())] = unit.Duration(s.n(500, 9000)) * unit.Second
		s.step(engine.Event{Kind: engine.Submit, Spec: &j})
	}
	s.pass(unit.Second)
	for id := range plan.JobID(s.e.View().Jobs()) {
		if s.n(0, 1) == 0 {
			s.step(engine.Event{Kind: engine.Cancel, Job: id})
		}
	}
	s.pass(s.stopDelay)
}

func (s *site) random() {
	v := s.e.View()
	node := plan.NodeID(s.n(0, v.Nodes()-1))
	switch s.n(0, 9) {
	case 0, 1:
		s.submit(s.n(0, 7))
	case 2, 3, 4:
		s.defrag()
	case 5, 6:
		s.pass(unit.Duration(s.n(1, 1000)) * unit.Second)
	case 7:
		if id := plan.JobID(s.n(0, v.Jobs()-1)); !v.Job(id).Phase.Over() {
			s.step(engine.Event{Kind: engine.Cancel, Job: id})
		}
	case 8:
		kind := engine.Uncordon
		if s.down[node] {
			kind = engine.NodeUp
			s.down[node] = false
		}
		s.step(engine.Event{Kind: kind, Node: node})
	case 9:
		if s.n(0, 1) == 0 {
			s.restart()
			return
		}
		from := s.now.Add(unit.Duration(s.n(0, 1000)) * unit.Second)
		s.step(engine.Event{Kind: engine.Close, Node: node, Bounds: engine.Bounds{From: from, To: from.Add(unit.Hour)}})
	}
}
