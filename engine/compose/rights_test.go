package compose_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/rightstest"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
)

// waits are those that may leave room idle for a reason of their own: what they are asked
// is answered outside once in a round, jobs gather for a batch, or the order is strict.
var waits = []string{"pollux", "liquid-batch", "fifo-strict"}

func build(t interface{ Fatal(...any) }, ref string) func() schedule.Scheduler {
	c, err := catalogue.Parse("test", ref)
	if err != nil {
		t.Fatal(err)
	}
	return func() schedule.Scheduler {
		b, err := c.Build(catalogue.Env{Seed: 1}, false)
		if err != nil {
			t.Fatal(err)
		}
		return b.Scheduler
	}
}

// TestRightsUnderEveryDecider: under every order and every joint strategy, through random
// trees of queues, limits, guarantees, priorities, reservations and windows, no limit is
// passed, nothing is started that would run into a window, nobody's run is ended in vain
// (site.step asks plan.View.Law after every commit), who gives way is whom the victims part
// chose, whoever waits is told what keeps him, and no device lies idle that a waiting job
// could use.
func TestRightsUnderEveryDecider(t *testing.T) {
	chosen, least := 0, 10
	if os.Getenv("MUSTER_LONG") != "" {
		least = 100
	}
	for _, name := range rightstest.Deciders() {
		t.Run(name, func(t *testing.T) {
			for taken, round := 0, 0; taken < steps()*3/2/len(rightstest.Deciders()); round++ {
				draws.Cases{Round: round, Few: 20}.Check(t, func(t *rapid.T) {
					w := anywhere(t, name)
					taken += w.run(t)
					chosen += w.chosen
				})
			}
		})
	}
	if chosen < least && !t.Failed() {
		t.Errorf("only %d runs gave way by choice: that tests too little", chosen)
	}
}

// watch is a site whose every step is checked.
type watch struct {
	*site
	name  string
	tree  queue.Tree
	idles bool // devices may be idle by the strategy's own will
	named bool // the victims part is, and ranks ask it too
	// By job: who was chosen to give way to it in this step; and how many were so in all.
	chose  map[plan.JobID][]plan.JobID
	chosen int
	parts  compose.Parts // another copy of its parts, to ask for ranks
}

// anywhere draws a site for a decider.
func anywhere(t *rapid.T, name string) *watch {
	nodes, devices := rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "devices")
	tree := drawTree(t, int64(nodes*devices))
	switch rapid.IntRange(0, 3).Draw(t, "tree") {
	case 0, 1:
		tree = queue.Tree{Queues: []queue.Queue{queue.Root()}}
		tree.Queues[0].Limit = []queue.Amount{{Milli: int64(rapid.IntRange(0, nodes*devices).Draw(t, "limit")) * 1000}}
	case 2:
		tree = queue.Tree{Queues: []queue.Queue{queue.Root()}}
	}
	ref := name
	reserved := rapid.IntRange(0, 3).Draw(t, "reserve") == 0
	if reserved {
		ref += "+easy"
	}
	victims := rapid.SampledFrom([]string{"", "newest", "cheapest"}).Draw(t, "victims")
	if victims != "" {
		ref += "+" + victims
	}
	// Where no claim bounds what may run, who is passed over is a joint decider's to say.
	e, _ := catalogue.Find(name)
	free := e.Part == allocate.JointPart && len(tree.Queues) == 1 && tree.Queues[0].Limit == nil
	w := &watch{name: name, tree: tree, named: victims != "", idles: reserved || free || slices.Contains(waits, name), chose: map[plan.JobID][]plan.JobID{}}
	c, err := catalogue.Parse("test", ref)
	if err == nil {
		w.parts, err = c.Parts(catalogue.Env{Seed: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	made := build(t, ref)
	w.site = newSite(t, cluster.Uniform("site", nodes, devices, cluster.Model{Name: "gpu", Speed: 1, Memory: 16 << 10}, 2), tree, func() schedule.Scheduler {
		s := made()
		if c, ok := s.(*compose.Scheduler); ok {
			c.WatchChooser(func(by plan.JobID, victims []plan.JobID) { w.chose[by] = victims })
		}
		return s
	})
	w.stopDelay = unit.Duration(rapid.IntRange(0, 30).Draw(t, "stop delay")) * unit.Second
	w.site.look = w.look
	return w
}

// run runs a random history and returns its steps.
func (w *watch) run(t *rapid.T) int {
	n := rapid.IntRange(10, 40).Draw(t, "steps")
	for range n {
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0, 1, 2, 3:
			w.submit(drawJob(t, w.site), unit.Duration(rapid.IntRange(1, 3000).Draw(t, "takes"))*unit.Second)
		case 4:
			from := w.now.Add(unit.Duration(rapid.IntRange(0, 1000).Draw(t, "from")) * unit.Second)
			ev := engine.Event{Kind: engine.Close, Node: plan.NodeID(rapid.IntRange(0, w.e.View().Nodes()-1).Draw(t, "closed")), Bounds: engine.Bounds{From: from, To: from.Add(unit.Hour)}}
			if w.e.Accept(&ev) == nil {
				w.step(ev)
			}
		case 5:
			w.restart()
		default:
			w.pass(unit.Duration(rapid.IntRange(1, 1000).Draw(t, "seconds")) * unit.Second)
		}
	}
	return n
}

func (w *watch) look(c *plan.Commit) {
	v := w.e.View()
	w.limits(v)
	if c != nil {
		w.windows(v, c)
		w.victims(v, c)
	}
	clear(w.chose)
	if !w.idles {
		w.idle(v)
	}
	for id := range plan.JobID(v.Jobs()) {
		w.told(v, id)
	}
}

// held is what the runs of a queue and below it hold that are not on their way out; of
// one user, where one is named.
func held(v plan.View, tree *queue.Tree, q int, user int32) int64 {
	return rightstest.Held(v, func(job plan.JobID) bool {
		in := v.QueueOf(v.Job(job).Tenant)
		for in >= 0 && int(in) != q {
			in = tree.Queues[in].Parent
		}
		return in >= 0 && (user == plan.None || v.Job(job).User == user)
	})
}

// room is how much more a job may hold by the limits of its queues; what others keep is
// not counted.
func (w *watch) room(v plan.View, job plan.JobID) int64 {
	left := int64(1) << 40
	for q := v.QueueOf(v.Job(job).Tenant); q >= 0; q = w.tree.Queues[q].Parent {
		x, has := &w.tree.Queues[q], held(v, &w.tree, int(q), plan.None)
		if x.Limit != nil {
			left = min(left, x.Limit[0].Milli-has)
		}
		if x.Borrow != nil {
			guarantee := int64(0)
			if x.Guarantee != nil {
				guarantee = x.Guarantee[0].Milli
			}
			left = min(left, x.Borrow[0].Milli+guarantee-has)
		}
		if x.UserLimit != nil {
			left = min(left, x.UserLimit[0].Milli-held(v, &w.tree, int(q), v.Job(job).User))
		}
	}
	return left
}

func (w *watch) limits(v plan.View) {
	for id := range plan.JobID(v.Jobs()) {
		if j := v.Job(id); j.Phase == plan.Active && w.room(v, id) < 0 {
			w.t.Fatalf("at %d: a queue or the user of job %d holds more than it may", w.now/1e6, id)
		}
	}
}

// windows checks that nothing is started that would run into one, but for who saves or is tried again, and has a minute until then.
func (w *watch) windows(v plan.View, c *plan.Commit) {
	for i := range c.Changes {
		x := &c.Changes[i]
		if x.Verb != plan.Start || v.Job(x.Job).Phase != plan.Active || v.Run(x.Run).Since != w.now {
			continue
		}
		length := calendar.Length(v, x.Job, v.Run(x.Run).Workers)
		if j := v.Job(x.Job); j.Retries > 0 || j.Checkpoint.OnRequest || j.Checkpoint.Every > 0 {
			length = min(length, max(unit.Minute, j.Checkpoint.Load+j.Checkpoint.Save))
		}
		v.GrantsOf(x.Run, func(g plan.Grant) {
			for _, closed := range v.Windows() {
				if closed.Node == g.Node && closed.From < w.now.Add(length) && w.now < closed.To {
					w.t.Fatalf("at %d: job %d is started on node %d, closed from %d, and takes %d s", w.now/1e6, x.Job, g.Node, closed.From/1e6, length/1e6)
				}
			}
		})
	}
}

// victims checks that who gave way was chosen: by the victims part, or, for a better rank
// where none is named, as the one ranked last of those that are like him and beside him.
func (w *watch) victims(v plan.View, c *plan.Commit) {
	if _, ok := w.made.(*compose.Scheduler); !ok {
		return // it stands around the one that chooses
	}
	for i := range c.Changes {
		x := &c.Changes[i]
		by := plan.JobID(x.Reason.A)
		switch code := x.Reason.Code; {
		case x.Verb != plan.Stop || v.Run(x.Run).Terms.Share.Guest != plan.None:
		case code == plan.Reclaimed || code == plan.Outranked || code == plan.MadeWayFor && w.named:
			if w.chosen++; !slices.Contains(w.chose[by], x.Job) {
				w.t.Fatalf("at %d: job %d gives way to job %d (%s), for which %v were chosen", w.now/1e6, x.Job, by, code, w.chose[by])
			}
		case code == plan.MadeWayFor:
			w.lowest(v, c, x)
		}
	}
}

// lowest checks that nobody like a victim who ranks behind it and could have gone in its
// place was spared.
func (w *watch) lowest(v plan.View, c *plan.Commit, x *plan.Change) {
	gave := v.Job(x.Job)
	key, _ := w.parts.Order.Key(v, x.Job)
	for id := range plan.RunID(v.RunSlots()) {
		r := v.Run(id)
		j := v.Job(max(0, r.Job))
		if r.Status != plan.Running || r.Began >= w.now || j.Shape != gave.Shape || j.Tenant != gave.Tenant || !j.Checkpoint.OnRequest || w.parts.Order.Rules().MinimumRun > 0 ||
			!slices.Equal(on(v, id), on(v, x.Run)) {
			continue
		}
		if other, _ := w.parts.Order.Key(v, r.Job); key.Compare(x.Job, other, r.Job) < 0 {
			w.t.Fatalf("at %d: job %d (%v) gives way and job %d (%v), which ranks behind it, goes on: %s", w.now/1e6, x.Job, key, r.Job, other, c.AppendJSON(nil, v))
		}
	}
}

// on lists the node of every device of a run.
func on(v plan.View, run plan.RunID) (nodes []plan.NodeID) {
	v.GrantsOf(run, func(g plan.Grant) { nodes = append(nodes, g.Node) })
	slices.Sort(nodes)
	return nodes
}

// told checks that a job that waits is told what keeps it, and that it does.
func (w *watch) told(v plan.View, id plan.JobID) {
	j, shape := v.Job(id), v.Shape(id)
	if j.Phase != plan.Waiting {
		return
	}
	a, wants := explain.Of(v, nil).Why(id), int64(0)
	if shape.Devices > 0 {
		wants = shape.Milli(shape.Least())
	}
	holds := true
	switch a.Reason {
	case plan.NoReason, plan.New:
		holds = false
	case plan.NoRoom:
		holds = w.holds(v, shape) < int64(shape.Least())
	case plan.QueueLimit, plan.BorrowLimit, plan.UserLimit:
		holds = w.room(v, id) < wants
	case plan.KeptBack:
		holds = slices.ContainsFunc(w.tree.Queues, func(q queue.Queue) bool { return q.Keep != nil })
	case plan.Maintenance:
		holds = len(v.Windows()) > 0
	case plan.Reserved:
		holds = slices.ContainsFunc(v.Claims(), func(c plan.Claim) bool { return c.Job != id })
	case plan.Behind:
		holds = w.name == "fifo-strict"
	}
	if !holds || a.Words == "" {
		w.t.Fatalf("at %d: job %d waits for %d and is told %s, %q, which is not so", w.now/1e6, id, wants, a.Reason, a.Words)
	}
}

// holds is how many workers of a shape the nodes could take.
func (w *watch) holds(v plan.View, shape *plan.Shape) (workers int64) {
	for n := range plan.NodeID(v.Nodes()) {
		workers += int64(v.Holds(n, shape))
	}
	return workers
}

// idle looks for a waiting job of one device that could be on one: its queues let it, no
// window is in the way, and the device is nobody's.
func (w *watch) idle(v plan.View) {
	for id := range plan.JobID(v.Jobs()) {
		j, shape := v.Job(id), v.Shape(id)
		if j.Phase != plan.Waiting || shape.Devices != 1 || shape.Share < 1000 || !shape.MayHave(1) || w.room(v, id) < 1000 {
			continue
		}
		if slices.ContainsFunc(w.tree.Queues, func(q queue.Queue) bool { return q.Keep != nil }) {
			continue
		}
		until := w.now.Add(calendar.Length(v, id, 1))
		for n := range plan.NodeID(v.Nodes()) {
			at := v.Node(n)
			if at.Status != plan.Up || at.FreeDevices == 0 || at.FreeCPU < shape.CPU || at.FreeHost < shape.Host ||
				slices.ContainsFunc(v.Windows(), func(c plan.Window) bool { return c.Node == n && c.From < until && w.now < c.To }) {
				continue
			}
			w.t.Fatalf("at %d: job %d waits (%s) while node %d has %d free devices that it may use", w.now/1e6, id, fmt.Sprint(j.Reason.Words(v)), n, at.FreeDevices)
		}
	}
}

// TestGuaranteesUnderEveryDecider: with jobs of one device, a queue that asks for what it
// is guaranteed has it, whoever decides, once those who hold it have had their protected
// time and were stopped.
func TestGuaranteesUnderEveryDecider(t *testing.T) {
	for _, name := range rightstest.Deciders() {
		t.Run(name, func(t *testing.T) {
			draws.Cases{Few: 25}.Check(t, func(t *rapid.T) { guarantees(t, name) })
		})
	}
}

func guarantees(t *rapid.T, name string) {
	devices := rapid.IntRange(2, 8).Draw(t, "devices")
	tree := queue.Flat("a", "b")
	tree.Protect = unit.Duration(rapid.IntRange(0, 3).Draw(t, "protect")) * unit.Minute
	left := int64(devices)
	for i := 1; i < 3; i++ {
		g := rapid.Int64Range(0, left).Draw(t, "guarantee")
		left -= g
		tree.Queues[i].Guarantee = []queue.Amount{{Milli: g * 1000}}
	}
	s := newSite(t, cluster.Uniform("site", 1, devices, cluster.Model{Name: "gpu", Speed: 1, Memory: 16 << 10}, 1), tree, build(t, name))
	s.stopDelay = unit.Duration(rapid.IntRange(0, 30).Draw(t, "stop delay")) * unit.Second
	for range 6 {
		tenant := rapid.IntRange(1, 2).Draw(t, "tenant")
		for range rapid.IntRange(1, 6).Draw(t, "jobs") {
			s.submit(workload.Job{Tenant: tree.Queues[tenant].Name, Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000, Memory: 12 << 10}, Checkpoint: workload.Checkpoint{OnRequest: true}},
				unit.Duration(rapid.IntRange(1, 5000).Draw(t, "takes"))*unit.Second)
		}
		for until := s.now.Add(tree.Protect + 2*s.stopDelay + 75*unit.Second); s.now < until; {
			s.pass(until.Sub(s.now))
		}
		has, waiting := count(s.e.View(), 3)
		for q := 1; q < 3; q++ {
			if g := tree.Queues[q].Guarantee[0].Milli; waiting[q] > 0 && has[q] < g {
				for id := range plan.JobID(s.e.View().Jobs()) {
					j := s.e.View().Job(id)
					t.Logf("now %d job %d %d %s since %d reason %s preempted %d", s.now/1e6, id, j.Tenant, j.Phase, j.Since/1e6, j.Reason.Words(s.e.View()), j.Preemptions)
				}
				t.Fatalf("queue %s holds %d of %d guaranteed and %d of its jobs wait; held %v", tree.Queues[q].Name, has[q], g, waiting[q], has)
			}
		}
	}
}

// TestShorterBeforeAWindow: whom a window keeps from starting does not keep one of the same
// shape waiting that ends before it, whichever came first.
func TestShorterBeforeAWindow(t *testing.T) {
	for _, name := range []string{"fifo", "sjf", "edf", "las", "tiresias"} {
		t.Run(name, func(t *testing.T) {
			draws.Check(t, func(t *rapid.T) {
				s := newSite(t, cluster.Uniform("site", 1, 1, cluster.Model{Name: "gpu", Speed: 1}, 1), queue.Tree{}, build(t, name))
				s.step(engine.Event{Kind: engine.Close, Node: 0, Bounds: engine.Bounds{From: s.now.Add(100 * unit.Second), To: s.now.Add(unit.Hour)}})
				for i, minutes := range rapid.Permutation([]int{1, 20, 30, 40}).Draw(t, "minutes") {
					s.submit(workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000}, Estimate: unit.Duration(minutes) * unit.Minute}, unit.Duration(minutes)*unit.Minute)
					if phase := s.e.View().Job(plan.JobID(i)).Phase; (phase == plan.Active) != (minutes == 1) {
						t.Fatalf("a job of %d minutes is %s", minutes, phase)
					}
				}
			})
		})
	}
}

// TestTermsOfAClaim: a job that was started for its queue's guarantee goes on on the terms
// that the decider wishes for it, as soon as they may be given, with nothing else happening.
func TestTermsOfAClaim(t *testing.T) {
	draws.Once.Check(t, func(t *rapid.T) {
		tree := queue.Flat("a", "b")
		tree.Queues[1].Guarantee = []queue.Amount{{Milli: 1000}}
		s := newSite(t, cluster.Uniform("site", 2, 1, cluster.Model{Name: "gpu", Speed: 1, Memory: 16 << 10}, 1), tree, build(t, "gandiva"))
		s.step(engine.Event{Kind: engine.Close, Node: 0, Bounds: engine.Bounds{From: s.now.Add(unit.Second), To: s.now.Add(unit.Hour)}})
		// When the first ends the decider has both nodes for the last two, whose turn it is.
		for i, tenant := range []string{"b", "a", "b", "b"} {
			s.submit(workload.Job{Tenant: tenant, Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000}, Checkpoint: workload.Checkpoint{OnRequest: true}}, unit.Duration(5+1000*i)*unit.Second)
		}
		for until := s.now.Add(30 * unit.Second); s.now < until; {
			s.pass(until.Sub(s.now))
		}
		v := s.e.View()
		if j := v.Job(1); j.Phase != plan.Active || v.Run(j.Run).Terms.Share.Turn != 1 {
			t.Fatalf("the job of the guarantee is %s on the terms %+v", j.Phase, v.Run(max(0, j.Run)).Terms)
		}
	})
}
