package gandiva

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// read makes a planner of the State: nodes, who is resident, who is packed. Waiting jobs
// are given places in their order; left are those that take other than whole devices,
// one per worker.
func (g *Decider) read(v plan.View, jobs []plan.JobID) (p *planner, left []plan.JobID) {
	if p = g.planner; p == nil {
		p = newPlanner(g.config)
		g.planner = p
	}
	p.reset()
	p.slice = g.m.slice
	p.allows = func(t *task, node int32) bool { return allows(v, t, plan.NodeID(node)) }
	for id := range plan.NodeID(v.Nodes()) {
		n, memory := v.Node(id), int32(0)
		if n.Status == plan.Up && n.Count > 0 {
			memory = max(1, v.Device(n.First).Memory)
		}
		p.addNode(n.Count, memory)
		if int(id) >= len(g.m.idle) {
			g.m.idle = append(g.m.idle, unit.Never)
		}
	}
	for d := range int32(len(p.closed)) {
		if v.Device(plan.DeviceID(d)).Status.Out() {
			p.close(d)
		}
	}
	for _, t := range g.m.tried {
		p.tried[t] = true
	}
	g.tasks, g.wait = slices.Grow(g.tasks[:0], len(jobs))[:len(jobs)], g.wait[:0]
	for i, id := range jobs {
		shape, run := v.Shape(id), v.RunOf(id)
		switch whole := shape.Devices == 1 && shape.Share == 1000; {
		case !whole:
			left = append(left, id)
			if run != plan.None {
				closeRun(v, p, run)
			}
		case run == plan.None:
			g.wait = append(g.wait, g.describe(&g.tasks[i], v, id))
		default:
			g.resident(v, p, g.describe(&g.tasks[i], v, id), run)
		}
	}
	for _, o := range g.m.pairs {
		if a, b := p.task(o.jobs[0]), p.task(o.jobs[1]); a != nil && b != nil {
			a.partner, b.partner = b, a
		}
	}
	for _, t := range p.tasks {
		// Who had no company at the end of a slice has had none for all of it, or has left
		// it long enough ago for its rate to be seen.
		if run := v.RunOf(plan.JobID(t.id)); v.Now() >= g.m.next && t.partner == nil && v.Run(run).Status == plan.Running {
			t.soloMicro = v.Run(run).RateMicro
		}
	}
	// Who finds no room on one node leaves none to others of its shape. Over several nodes the
	// order of those decides as well, and that changes.
	full := make([]bool, v.Shapes())
	for _, t := range g.wait {
		if shape, _ := v.Kind(plan.JobID(t.id)); !full[shape] {
			full[shape] = !p.add(t) && t.gang <= p.smallest
		}
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
	if grown, ok := g.m.grown[t.id]; ok {
		t.gang, devices = int32(len(grown)), grown
	} else {
		t.gang = min(t.gang, int32(len(devices)))
		devices = devices[:t.gang]
	}
	p.seat(t, devices)
	p.tasks, p.ids = append(p.tasks, t), append(p.ids, t.id)
	status, _ := v.Works(run)
	t.active = status != plan.Suspended
	if v.Run(run).Terms.Share.Guest != plan.None {
		t.keeps = t.memory // until it has a turn by itself
	}
}

// keeps is the memory per device that a job does not give up between its turns.
func (g *Decider) keeps(v plan.View, id plan.JobID) int32 {
	memory := v.Shape(id).Memory
	if !g.config.Swap {
		return memory
	}
	return min(v.ProfileOf(id).Persistent, memory)
}

// describe makes t the task of a job.
func (g *Decider) describe(t *task, v plan.View, id plan.JobID) *task {
	shape, profile, turn := v.Shape(id), v.ProfileOf(id), g.m.lastTurn(int32(id))
	kind, _ := v.Kind(id)
	*t = task{id: int32(id), kind: kind + 1, gang: shape.Gang, memory: shape.Memory, keeps: g.keeps(v, id), busy: 1000, last: turn.slice, soloMicro: turn.soloMicro}
	if profile.Compute > 0 {
		t.busy = int32(int64(profile.Compute) * 1000 / int64(profile.Compute+profile.Communicate))
	}
	return t
}

// allows reports whether a job may have devices of a node, and its host what they need.
func allows(v plan.View, t *task, id plan.NodeID) bool {
	shape, run, node := v.Shape(plan.JobID(t.id)), v.RunOf(plan.JobID(t.id)), v.Node(id)
	more := min(t.gang, node.Count)
	if !v.Allows(shape, id) || shape.PerNode != 0 && shape.PerNode < more {
		return false
	}
	if run != plan.None {
		v.GrantsOf(run, func(h plan.Grant) {
			if h.Node == id {
				more-- // it brings what it has there
			}
		})
	}
	// Those who take turns keep their cores, so only what nobody has counts.
	return more*shape.CPU <= max(0, node.FreeCPU) && more*shape.Host <= max(0, node.FreeHost)
}

func (p *planner) task(id plan.JobID) *task {
	at, found := slices.BinarySearch(p.ids, int32(id))
	if !found {
		return nil
	}
	return p.tasks[at]
}

// idle notes since when nodes have devices that nobody is resident on.
func (g *Decider) idle(v plan.View, p *planner) {
	for n := range p.nodes() {
		if p.free(n) == 0 {
			g.m.idle[n] = unit.Never
		} else if g.m.idle[n] == unit.Never {
			g.m.idle[n] = v.Now()
		}
	}
}

// write remembers what the planner decided, of the jobs that there are.
func (g *Decider) write(p *planner, jobs []plan.JobID) {
	g.m.slice, g.m.last = p.slice, g.m.last[:0]
	for _, t := range p.tasks {
		g.m.last = append(g.m.last, turned{t.id, t.last, t.soloMicro})
	}
	lives := func(id int32) bool { _, ok := slices.BinarySearch(jobs, plan.JobID(id)); return ok }
	g.m.tried = g.m.tried[:0]
	for t := range p.tried {
		if lives(t[0]) && lives(t[1]) {
			g.m.tried = append(g.m.tried, t)
		}
	}
	slices.SortFunc(g.m.tried, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	g.m.pairs = slices.DeleteFunc(g.m.pairs, func(o pair) bool {
		a, b := p.task(o.jobs[0]), p.task(o.jobs[1])
		return a == nil || b == nil || a.partner != b
	})
	for id, devices := range g.m.grown {
		if t := p.task(plan.JobID(id)); t == nil || t.gang != int32(len(devices)) {
			delete(g.m.grown, id)
		}
	}
}
