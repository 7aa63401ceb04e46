package gandiva

import (
	"cmp"
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
	for d := range int32(len(p.closed)) {
		if v.Device(plan.DeviceID(d)).Status.Out() {
			p.close(d)
		}
	}
	for _, t := range g.m.Tried {
		p.tried[t] = true
	}
	tasks, wait := make([]task, len(jobs)), []*task(nil)
	for i, id := range jobs {
		shape, run := v.Shape(id), v.Job(id).Run
		switch whole := shape.Devices == 1 && shape.Share == 1000; {
		case !whole:
			left = append(left, id)
			if run != plan.None {
				closeRun(v, p, run)
			}
		case run == plan.None:
			wait = append(wait, g.describe(&tasks[i], v, id))
		default:
			g.resident(v, p, g.describe(&tasks[i], v, id), run)
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

// closeRun keeps tasks away from the devices of a run that is not planned here.
func closeRun(v plan.View, p *planner, run plan.RunID) {
	v.GrantsOf(run, func(h plan.Grant) {
		if h.Device != plan.None {
			p.close(int32(h.Device))
		}
	})
}

// resident takes in a job that has a run, on the devices it is to have: those it has
// grown to while it may keep them, else no more than its gang, so that what is wished
// agrees with itself.
func (g *Decider) resident(v plan.View, p *planner, t *task, run plan.RunID) {
	first := len(p.held)
	v.GrantsOf(run, func(h plan.Grant) { p.held = append(p.held, int32(h.Device)) })
	devices := p.held[first:len(p.held):len(p.held)]
	slices.Sort(devices)
	if grown, ok := g.m.Grown[plan.JobID(t.id)]; ok {
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

// describe makes t the task of a job.
func (g *Decider) describe(t *task, v plan.View, id plan.JobID) *task {
	shape, run, profile := v.Shape(id), v.Job(id).Run, v.ProfileOf(id)
	*t = task{id: int32(id), gang: shape.Gang, memory: shape.Memory, keeps: min(profile.Persistent, shape.Memory), busy: 1000, last: g.m.Last[id]}
	if profile.Compute > 0 {
		t.busy = int32(int64(profile.Compute) * 1000 / int64(profile.Compute+profile.Communicate))
	}
	t.allows = func(n int32) bool {
		if !v.Allows(shape, plan.NodeID(n)) {
			return false
		}
		node := v.Node(plan.NodeID(n))
		more := min(t.gang, node.Count)
		if shape.PerNode != 0 && shape.PerNode < more {
			return false
		}
		if run != plan.None {
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
	at, found := slices.BinarySearchFunc(p.tasks, int32(id), func(t *task, id int32) int { return cmp.Compare(t.id, id) })
	if !found {
		return nil
	}
	return p.tasks[at]
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
