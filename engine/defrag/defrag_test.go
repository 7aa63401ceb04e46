package defrag_test

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/defrag"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// scene is a state that is made by hand.
type scene struct {
	t *testing.T
	s *plan.State
}

const (
	save = 30 * unit.Second
	load = 60 * unit.Second
)

func newScene(t *testing.T, nodes, devices int) *scene {
	s := plan.NewState(cluster.Uniform("lab", nodes, devices, cluster.Model{Name: "gpu", Memory: 32 << 10}, 1))
	s.Tenants, s.Users = []string{"", "a", "b"}, []string{"u"}
	s.Now = unit.Time(unit.Hour)
	return &scene{t, s}
}

// admit adds a job that waits and saves when asked.
func (c *scene) admit(name string, workers, devices int32, change ...func(*plan.Asked, *plan.Shape)) plan.JobID {
	j := plan.Asked{Profile: plan.None, Checkpoint: plan.Checkpointing{OnRequest: true, Save: save, Load: load}}
	shape := plan.Shape{Gang: workers, Devices: devices, Share: 1000, Models: 1}
	for _, f := range change {
		f(&j, &shape)
	}
	c.s.Shapes = append(c.s.Shapes, shape)
	j.Shape = int32(len(c.s.Shapes) - 1)
	id := c.s.Admit(name, j)
	c.s.Jobs[id].Admitted = true
	c.s.Jobs[id].Reason = plan.Reason{Code: plan.Fragmented}
	return id
}

// on runs a job on so many devices of a node, for ten minutes already.
func (c *scene) on(name string, node plan.NodeID, devices int32, change ...func(*plan.Asked, *plan.Shape)) plan.JobID {
	c.t.Helper()
	id := c.admit(name, 1, devices, change...)
	d := c.s.Edit()
	run, why := d.Start(id, []plan.Slot{{Node: node, Device: plan.None, Workers: 1}}, plan.DefaultTerms(), plan.Reason{Code: plan.Fits})
	d.Commit()
	if why.Code != plan.NoReason {
		c.t.Fatalf("%s cannot be on node %d: %v", name, node, why)
	}
	c.s.Dispatch(run)
	c.s.Began(run)
	c.s.Runs[run].Began -= unit.Time(10 * unit.Minute)
	return id
}

// full fills a node with a run that cannot be moved.
func (c *scene) full(node plan.NodeID) { c.on("full", node, 4, onRequest(true)) }

func planner() *defrag.Planner {
	return &defrag.Planner{Placer: bestfit.New(bestfit.Default()), Budget: defrag.DefaultBudget()}
}

// words sums a plan up: "b:node1>node0 c:node2>node0; big@node1".
func words(v plan.View, s *defrag.Sequence) string {
	var parts []string
	for _, m := range s.Moves {
		parts = append(parts, v.Name(m.Job)+":"+strings.Join(defrag.Nodes(v, m.From), "+")+">"+strings.Join(defrag.Nodes(v, m.Places), "+"))
	}
	return strings.Join(parts, " ") + "; " + v.Name(s.Job) + "@" + strings.Join(defrag.Nodes(v, s.Start.Places), "+")
}

func onRequest(no bool) func(*plan.Asked, *plan.Shape) {
	return func(j *plan.Asked, _ *plan.Shape) { j.Checkpoint.OnRequest = !no }
}

func share(milli int32) func(*plan.Asked, *plan.Shape) {
	return func(_ *plan.Asked, s *plan.Shape) { s.Share = milli }
}

// TestPlans: small scenes in which a person sees what has to be moved.
func TestPlans(t *testing.T) {
	never := onRequest(true)
	for _, c := range []struct {
		name  string
		setup func(c *scene) plan.JobID
		want  string // of the plan, or a part of why there is none
		price unit.Duration
		plan  func(p *defrag.Planner)
	}{
		{name: "the smaller of two goes", want: "b:node1>node0; big@node1", price: 1 * (save + load), setup: func(c *scene) plan.JobID {
			c.full(2)
			c.on("a", 0, 2)
			c.on("b", 1, 1)
			return c.admit("big", 1, 4)
		}},
		{name: "one that saves by itself alone stays", want: "a:node0>node1; big@node0", price: 2 * (save + load), setup: func(c *scene) plan.JobID {
			c.full(2)
			c.on("a", 0, 2)
			c.on("b", 1, 1, never, func(j *plan.Asked, _ *plan.Shape) { j.Checkpoint.Every = unit.Minute })
			return c.admit("big", 1, 4)
		}},
		{name: "nobody can go", want: "no run can be moved", setup: func(c *scene) plan.JobID {
			c.full(2)
			c.on("a", 0, 2, never)
			c.on("b", 1, 1, never)
			return c.admit("big", 1, 4)
		}},
		{name: "a chain: one makes room for the next", want: "c:node2>node0 b:node1>node2; big@node1", price: 3 * (save + load), setup: func(c *scene) plan.JobID {
			c.on("a", 0, 3, never)
			c.on("b", 1, 2)
			c.on("c", 2, 1)
			c.on("d", 2, 2, never)
			return c.admit("big", 1, 4)
		}},
		{name: "two shares on one device", want: "y:node0>node0; big@node0", price: 500 * (save + load) / 1000, setup: func(c *scene) plan.JobID {
			c.on("x", 0, 1, share(500))
			c.on("z", 0, 1)
			c.on("y", 0, 1, share(500))
			c.moveTo("y", 0, 3)
			c.full(1)
			c.full(2)
			return c.admit("big", 1, 2)
		}},
		{name: "who would change places stays", want: "no plan", plan: func(p *defrag.Planner) { p.Placer = firstfit.Placer{} }, setup: func(c *scene) plan.JobID {
			c.full(2)
			c.on("x", 0, 3)
			c.on("y", 1, 2)
			c.on("z", 1, 1, never)
			return c.admit("big", 1, 2)
		}},
		{name: "it fits as it is", want: "nothing has to be moved", setup: func(c *scene) plan.JobID {
			c.on("a", 0, 2)
			return c.admit("big", 1, 4)
		}},
		{name: "too little is free", want: "moving makes no more", setup: func(c *scene) plan.JobID {
			c.on("a", 0, 4)
			c.on("b", 1, 4)
			c.on("c", 2, 1)
			return c.admit("big", 1, 4)
		}},
		{name: "it runs already", want: "a is running", setup: func(c *scene) plan.JobID { return c.on("a", 0, 2) }},
		{name: "too few moves", want: "at most 1 moves", plan: func(p *defrag.Planner) { p.Budget.Moves = 1 }, setup: apart},
		{name: "two moves are enough", want: "a:node0>node2 b:node1>node2; big@node0+node1", price: 2 * (save + load), setup: apart},
		{name: "too dear", want: "and 0.05 device-hours was found", setup: apart, plan: func(p *defrag.Planner) { p.Budget.Price = int64(2*(save+load)) - 1; p.Budget.Moves = 9 }},
		{name: "just not too dear", want: "a:node0>node2 b:node1>node2; big@node0+node1", price: 2 * (save + load), setup: apart,
			plan: func(p *defrag.Planner) { p.Budget.Price = int64(2 * (save + load)) }},
		{name: "a cordoned node takes nobody", want: "b:node1>node0; big@node1", price: save + load, setup: func(c *scene) plan.JobID {
			c.on("a", 0, 1)
			c.on("b", 1, 1)
			c.s.SetNode(2, plan.Cordoned)
			return c.admit("big", 1, 4)
		}},
		{name: "nor one that is closed before it would end", want: "no plan", setup: func(c *scene) plan.JobID {
			job := apart(c)
			c.s.Close(plan.Window{Node: 2, From: c.s.Now.Add(unit.Hour), To: c.s.Now.Add(2 * unit.Hour)})
			return job
		}},
		{name: "one closed after it would end does", want: "a:node0>node2 b:node1>node2; big@node0+node1", price: 2 * (save + load), setup: func(c *scene) plan.JobID {
			job := apart(c)
			for i := range c.s.Jobs {
				c.s.Jobs[i].Estimate = 20 * unit.Minute
			}
			c.s.Close(plan.Window{Node: 2, From: c.s.Now.Add(unit.Hour), To: c.s.Now.Add(2 * unit.Hour)})
			return job
		}},
		{name: "the time that the move takes counts", want: "no plan", setup: func(c *scene) plan.JobID {
			job := apart(c)
			for i := range c.s.Jobs {
				c.s.Jobs[i].Estimate = 20 * unit.Minute // ten are left
			}
			c.s.Close(plan.Window{Node: 2, From: c.s.Now.Add(11 * unit.Minute), To: c.s.Now.Add(2 * unit.Hour)})
			return job
		}},
		{name: "what is claimed is left free", want: "no plan", setup: func(c *scene) plan.JobID {
			job := apart(c)
			other := c.admit("claimant", 1, 2)
			c.s.Claims = []plan.Claim{{Job: other, Workers: 1, At: c.s.Now.Add(unit.Minute), Due: c.s.Now.Add(unit.Minute), Length: unit.Forever,
				Parts: []plan.Part{{Node: 2, Devices: 2}}}}
			return job
		}},
		{name: "its own claim is not in its way", want: "a:node0>node2 b:node1>node2; big@node0+node1", price: 2 * (save + load), setup: func(c *scene) plan.JobID {
			job := apart(c)
			c.s.Claims = []plan.Claim{{Job: job, Workers: 2, At: unit.Never, Due: c.s.Now, Length: unit.Forever,
				Parts: []plan.Part{{Node: 2, Devices: 2}}}} // which it does not take
			return job
		}},
		{name: "who has just begun is protected", want: "no run can be moved", setup: func(c *scene) plan.JobID {
			c.s.SetQueues(queue.Tree{Queues: []queue.Queue{queue.Root()}, Protect: 11 * unit.Minute})
			return apart(c)
		}},
		{name: "who was disrupted enough today stays", want: "no run can be moved", setup: func(c *scene) plan.JobID {
			c.s.SetQueues(queue.Tree{Queues: []queue.Queue{queue.Root()}, Disruptions: 2})
			job := apart(c)
			for i := range c.s.Jobs {
				c.s.Jobs[i].Preemptions = 2
			}
			return job
		}},
		{name: "a queue at its limit gets no room", want: "queue a is at its limit: 7 devices are left of it", setup: limited(queue.Queue{Limit: []queue.Amount{{Milli: 9000}}})},
		{name: "nor one that has borrowed enough", want: "queue a borrows as much as it may: 3 devices", setup: limited(queue.Queue{Guarantee: []queue.Amount{{Milli: 1000}}, Borrow: []queue.Amount{{Milli: 4000}}})},
		{name: "nor a user", want: "limit for one user in queue a: 6 devices", setup: limited(queue.Queue{UserLimit: []queue.Amount{{Model: "gpu", Milli: 8000}}})},
	} {
		t.Run(c.name, func(t *testing.T) {
			scene := newScene(t, 3, 4)
			job := c.setup(scene)
			p := planner()
			if c.plan != nil {
				c.plan(p)
			}
			before := saved(t, scene.s)
			got, ok := p.Plan(scene.s, job)
			if saved(t, scene.s) != before {
				t.Error("the plan changed the state")
			}
			if !ok || len(got.Moves) == 0 {
				if !strings.Contains(got.Why, c.want) {
					t.Fatalf("no plan: %s; want %s", got.Why, c.want)
				}
				return
			}
			if w := words(scene.s.View(), &got); w != c.want || unit.Duration(got.Price) != c.price {
				t.Errorf("%s for %s; want %s for %s", w, unit.Duration(got.Price), c.want, c.price)
			}
			follow(t, scene.s, &got)
		})
	}
}

// apart is a gang of two nodes and two runs that are each alone on one.
func apart(c *scene) plan.JobID {
	c.on("a", 0, 1)
	c.on("b", 1, 1)
	c.on("c", 2, 2, onRequest(true))
	return c.admit("big", 2, 4)
}

func limited(q queue.Queue) func(c *scene) plan.JobID {
	return func(c *scene) plan.JobID {
		job := apart(c)
		q.Name, q.Parent, q.Weight = "a", 0, 1000
		c.s.SetQueues(queue.Tree{Queues: []queue.Queue{queue.Root(), q}})
		for i := range c.s.Jobs {
			c.s.Jobs[i].Tenant = 1
		}
		c.s.Jobs[2].Tenant = 2 // two devices of somebody else's
		return job
	}
}

// moveTo puts a running job on one device of a node, by hand.
func (c *scene) moveTo(name string, node plan.NodeID, device plan.DeviceID) {
	for id := range c.s.Jobs {
		if c.s.Names[id] != name {
			continue
		}
		c.s.EndRun(c.s.Jobs[id].Run, 0)
		c.s.SetPhase(plan.JobID(id), plan.Waiting, plan.Reason{})
		d := c.s.Edit()
		run, _ := d.Start(plan.JobID(id), []plan.Slot{{Node: node, Device: device, Workers: 1}}, plan.DefaultTerms(), plan.Reason{})
		d.Commit()
		c.s.Dispatch(run)
		c.s.Began(run)
	}
}

func saved(t *testing.T, s *plan.State) string {
	t.Helper()
	var b strings.Builder
	if err := s.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// follow does the moves one after the other, each to its end, and then the start: that
// is what the order promises.
func follow(t interface{ Fatalf(string, ...any) }, s *plan.State, q *defrag.Sequence) {
	s = s.Copy()
	for id := range s.Runs { // what is on its way out already
		if r := s.Runs[id]; r.Status == plan.Stopping {
			s.EndRun(plan.RunID(id), 0)
			s.Confirm(r.Change)
		}
	}
	do := func(m engine.Move) {
		var slots []plan.Slot
		for _, p := range m.Places {
			slots = append(slots, plan.Slot{Node: p.Node, Device: plan.None, Workers: p.Workers, On: p.On})
		}
		if run := s.Jobs[m.Job].Run; run != plan.None {
			d := s.Edit()
			d.Stop(run, plan.Reason{}, 0)
			d.Commit()
			s.EndRun(run, 0)
		}
		d := s.Edit()
		run, why := d.Start(m.Job, slots, plan.DefaultTerms(), plan.Reason{})
		changes, _ := d.Commit()
		if why.Code != plan.NoReason || len(changes[0].After) > 0 {
			t.Fatalf("%s: job %d cannot start in its turn: %v, after %v", q.Why, m.Job, why.Words(s.View()), changes)
		}
		s.Dispatch(run)
		if err := s.Check(); err != nil {
			t.Fatalf("%v", err)
		}
	}
	for _, m := range q.Moves {
		do(m.Move)
	}
	do(q.Start)
}

// TestModels: nobody is moved to another device model, even one that may be there, and
// the gang is given room of a model that its queue has left.
func TestModels(t *testing.T) {
	make := func(models ...int32) *scene {
		c := &cluster.Cluster{}
		c.AddRack(cluster.Rack{})
		for _, name := range []string{"a", "b"} {
			c.AddModel(cluster.Model{Name: name, Memory: 32 << 10})
		}
		for _, m := range models {
			c.AddNode(cluster.Node{Model: m, Rack: 0}, 4)
		}
		s := plan.NewState(c)
		s.Tenants, s.Users, s.Now = []string{"", "q"}, []string{"u"}, unit.Time(unit.Hour)
		return &scene{t, s}
	}
	any, never := func(_ *plan.Asked, s *plan.Shape) { s.Models = 3 }, onRequest(true)
	b := func(_ *plan.Asked, s *plan.Shape) { s.Models = 2 }

	c := make(0, 0, 1, 0)
	c.on("x", 0, 2, any)
	c.on("y", 1, 3, never)
	c.on("z", 3, 3, never)
	if got, ok := planner().Plan(c.s, c.admit("big", 1, 4)); ok {
		t.Errorf("to another model: %s", got.Why)
	}

	c = make(0, 0, 1, 1)
	c.on("x", 0, 1)
	c.on("y", 1, 3, never)
	c.on("z", 2, 2, b)
	c.on("w", 3, 2, b, never)
	big := c.admit("big", 1, 4, any, func(j *plan.Asked, _ *plan.Shape) { j.Tenant = 1 })
	for limit, want := range map[string]int{"b": 0, "a": 2} {
		c.s.SetQueues(queue.Tree{Queues: []queue.Queue{queue.Root(), {Name: "q", Weight: 1000, Limit: []queue.Amount{{Model: limit, Milli: 3000}}}}})
		got, ok := planner().Plan(c.s, big)
		if !ok || len(got.Moves) != 1 || got.Start.Places[0].Node != plan.NodeID(want) {
			t.Errorf("with a limit on %s: %s", limit, got.Why)
		}
		follow(t, c.s, &got)
	}
}

// TestAny: the best-ranked job that fragmentation keeps goes first, and one that no
// moves help is passed over.
func TestAny(t *testing.T) {
	c := newScene(t, 3, 4)
	apart(c)
	c.s.Jobs[3].Reason = plan.Reason{Code: plan.NoRoom}
	c.admit("hopeless", 3, 4)
	first := c.admit("first", 1, 4)
	c.admit("second", 1, 4)
	p := planner()
	got, ok := p.Any(c.s, fifo.New(fifo.Default()))
	if !ok || got.Job != first {
		t.Errorf("planned for %s (%v)", got.Why, ok)
	}
	for id := range c.s.Jobs {
		c.s.Jobs[id].Checkpoint.OnRequest = false
	}
	if got, ok = p.Any(c.s, fifo.New(fifo.Default())); ok || got.Why == "" || got.Job != plan.None {
		t.Errorf("planned %+v", got)
	}
	if shown := got.Show(c.s.View()); shown.Moves == nil || shown.Before == nil || shown.Digest != "" || shown.Words == "" {
		t.Errorf("no plan is shown as %+v", shown)
	}
}

// TestDigest: it is the same for the same plan, and another for another place, attempt
// or price.
func TestDigest(t *testing.T) {
	c := newScene(t, 3, 4)
	job := apart(c)
	p := planner()
	first, _ := p.Plan(c.s, job)
	c.s.Now = c.s.Now.Add(unit.Second)
	again, _ := (&defrag.Planner{Placer: bestfit.New(bestfit.Default()), Budget: p.Budget}).Plan(c.s.Copy(), job)
	if first.Digest() != again.Digest() {
		t.Error("the same plan has two digests")
	}
	c.s.Jobs[0].Checkpoint.Load++
	other, _ := p.Plan(c.s, job)
	c.s.Jobs[0].Checkpoint.Load--
	c.s.Jobs[1].Attempt++
	third, _ := p.Plan(c.s, job)
	if first.Digest() == other.Digest() || first.Digest() == third.Digest() || other.Digest() == third.Digest() {
		t.Error("other plans have the same digest")
	}
}

// TestFirstFitToo: a planner goes by its placer.
func TestFirstFitToo(t *testing.T) {
	c := newScene(t, 3, 4)
	job := apart(c)
	p := &defrag.Planner{Placer: firstfit.Placer{}, Budget: defrag.DefaultBudget()}
	got, ok := p.Plan(c.s, job)
	if !ok || len(got.Moves) != 2 {
		t.Errorf("%s", got.Why)
	}
	follow(t, c.s, &got)
	s := got.Show(c.s.View())
	if s.Starts == nil || s.Starts.Workers != 2 || s.Starts.Devices != 8 || len(s.Before) != 3 || s.Moves[0].PriceSec != 90 || s.PriceDeviceHours != 0.05 {
		t.Errorf("%+v", s)
	}
}
