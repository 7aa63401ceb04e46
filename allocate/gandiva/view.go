package gandiva

import (
	"slices"

	"github.com/musterdl/muster/plan"
)

// read makes a planner of the State: nodes, who is resident, who is packed. Waiting jobs
// are given places in their order; left are those that take other than whole devices,
// one per worker.
func (g *Decider) read(v plan.View, jobs []plan.JobID) (p *planner, left []plan.JobID) {
	p = newPlanner(g.config)
	p.slice = g.m.Slice
	for id := range plan.NodeID(v.Nodes()) {
		n, memory := v.Node(id), int32(0)
		if n.Status == plan.Up && n.Count > 0 {
			memory = max(1, v.Device(n.First).Memory)
		}
		p.addNode(n.Count, memory)
	}
	for d := range p.closed {
		p.closed[d] = v.Device(plan.DeviceID(d)).Status.Out()
	}
	for _, t := range g.m.Tried {
		p.tried[t] = true
	}
	var wait []*task
	for _, id := range jobs {
		shape, run := v.Shape(id), v.Job(id).Run
		switch whole := shape.Devices == 1 && shape.Share == 1000; {
		case !whole:
			left = append(left, id)
			if run != plan.None {
				p.close(v, run)
			}
		case run == plan.None:
			wait = append(wait, g.task(v, id))
		default:
			g.resident(v, p, id, run)
		}
	}
	for _, o := range g.m.Pairs {
		if a, b := p.task(o.Jobs[0]), p.task(o.Jobs[1]); a != nil && b != nil {
			a.partner, b.partner = b, a
		}
	}
	for _, t := range wait {
		p.add(t)
	}
	return p, left
}

// close keeps tasks away from the devices of a run that is not planned here.
func (p *planner) close(v plan.View, run plan.RunID) {
	v.GrantsOf(run, func(h plan.Grant) {
		if h.Device != plan.None {
			p.closed[h.Device] = true
		}
	})
}

// resident takes in a job that has a run, on the devices it is to have: those it has
// grown to while it may keep them, else no more than its gang, so that what is wished
// agrees with itself.
func (g *Decider) resident(v plan.View, p *planner, id plan.JobID, run plan.RunID) {
	t := g.task(v, id)
	var devices []int32
	v.GrantsOf(run, func(h plan.Grant) { devices = append(devices, int32(h.Device)) })
	slices.Sort(devices)
	if grown, ok := g.m.Grown[id]; ok {
		t.gang, devices = int32(len(grown)), grown
	} else if int32(len(devices)) > t.gang {
		devices = devices[:t.gang]
	}
	p.settle(t, devices)
	p.tasks = append(p.tasks, t)
	t.active = v.Run(run).Status != plan.Suspended
	if v.Run(run).Terms.Guest != plan.None {
		t.keeps = t.memory // until it has a turn by itself
	}
}

func (g *Decider) task(v plan.View, id plan.JobID) *task {
	shape := v.Shape(id)
	t := &task{id: int32(id), gang: shape.Gang, memory: shape.Memory, keeps: min(v.ProfileOf(id).Persistent, shape.Memory), busy: 1000, last: g.m.Last[id]}
	if o := v.ProfileOf(id); o.Compute > 0 {
		t.busy = int32(int64(o.Compute) * 1000 / int64(o.Compute+o.Communicate))
	}
	t.allows = func(n int32) bool {
		node := v.Node(plan.NodeID(n))
		more := min(t.gang, node.Count)
		if !v.Allows(shape, plan.NodeID(n)) || shape.PerNode != 0 && shape.PerNode < more {
			return false
		}
		if run := v.Job(id).Run; run != plan.None {
			v.GrantsOf(run, func(h plan.Grant) {
				if h.Node == plan.NodeID(n) {
					more-- // it brings what it has there
				}
			})
		}
		// Those who take turns keep their cores, so only what nobody has counts.
		return more*shape.CPU <= max(0, node.FreeCPU) && more*shape.Host <= max(0, node.FreeHost)
	}
	return t
}

func (p *planner) task(id plan.JobID) *task {
	for _, t := range p.tasks {
		if t.id == int32(id) {
			return t
		}
	}
	return nil
}

// idle notes since when nodes have devices that nobody is resident on.
func (g *Decider) idle(v plan.View, p *planner) {
	for n := range p.nodes() {
		if p.free(n) == 0 {
			delete(g.m.Idle, n)
		} else if _, ok := g.m.Idle[n]; !ok {
			g.m.Idle[n] = v.Now()
		}
	}
}

// write remembers what the planner decided, of the jobs that there are.
func (g *Decider) write(p *planner, jobs []plan.JobID) {
	g.m.Slice = p.slice
	clear(g.m.Last)
	for _, t := range p.tasks {
		g.m.Last[plan.JobID(t.id)] = t.last
	}
	lives := func(id int32) bool { _, ok := slices.BinarySearch(jobs, plan.JobID(id)); return ok }
	g.m.Tried = g.m.Tried[:0]
	for t := range p.tried {
		if lives(t[0]) && lives(t[1]) {
			g.m.Tried = append(g.m.Tried, t)
		}
	}
	slices.SortFunc(g.m.Tried, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	g.m.Pairs = slices.DeleteFunc(g.m.Pairs, func(o pair) bool {
		a, b := p.task(o.Jobs[0]), p.task(o.Jobs[1])
		return a == nil || b == nil || a.partner != b
	})
	for id := range g.m.Grown {
		if t := p.task(id); t == nil || t.gang != int32(len(g.m.Grown[id])) {
			delete(g.m.Grown, id)
		}
	}
}
