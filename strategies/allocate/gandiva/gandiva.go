// Package gandiva shares devices in time, packs jobs on trial and moves them (Gandiva,
// Xiao et al., OSDI 2018). Every job gets devices soon: on a node of its size class
// where there is room, else it takes turns with others, a quantum each, those who do
// not run suspended in place. Of jobs that take turns on the same devices two are tried
// side by side for a quantum, the least busy first, and stay together if the sum of
// their rates, each over its rate at the end of a slice by itself, is at least one. Who would wait for a turn
// moves to devices that stand empty, and elastic jobs grow into those of their node that
// stay empty.
//
// Recalled: Algorithm 1 and the introspection; the rule of one is read in Gavel's
// Gandiva policy. Ours: whose turn it is where gangs of different sizes share a node
// (who has waited longest, on devices that nobody has taken before), and the limit of
// residents per device. Left out: moves that make room for a gang, which takes turns
// instead; moves away from interference, of which packing on trial is the other half;
// shares of a device, which the placer places as asked and nobody else is sent to.
package gandiva

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "gandiva", System: "Gandiva", Step: "allocate", Part: allocate.JointPart, Status: "recalled",
	Source: "Xiao et al., OSDI 2018; the packing rule as in stanford-futuredata/gavel",
	Idea:   "time slices for all, packing on trial, moves to idle devices, growth into them",
	Acts:   []strategy.Act{strategy.Time, strategy.Equal},
	Goal:   "latency", Needs: "nothing; it watches progress",
	Live: "freezes and thaws runs, which keep their memory; those packed on a slot have equal rights to its cores, and are judged by the rates they report; " +
		"with swap it is refused, because no driver moves memory out",
	Inner: "the sum of the rates of the two jobs packed on a device, over alone",
}

// Config tunes the introspection.
type Config struct {
	// Quantum is the length of a time slice.
	Quantum unit.Duration `yaml:"quantum" above:"0"`
	// MaxResidents is how many jobs take turns on one device at most.
	MaxResidents int32 `yaml:"max-residents" least:"1"`
	// Oversubscribe lets jobs take turns; without, who finds no free devices waits.
	Oversubscribe bool `yaml:"oversubscribe"`
	// Pack tries whether jobs that take turns do better side by side.
	Pack bool `yaml:"pack"`
	// Migrate moves jobs that would wait for their turn to empty devices.
	Migrate bool `yaml:"migrate"`
	// Swap has runs whose turn it is not give up what memory they need not keep.
	Swap bool `yaml:"swap"`
}

// Acts implements strategy.Acting.
func (c Config) Acts() []strategy.Act {
	if c.Swap {
		return []strategy.Act{strategy.Swap}
	}
	return nil
}

// Default returns the configuration used where none is given.
func Default() Config {
	return Config{Quantum: 60 * unit.Second, MaxResidents: 8, Oversubscribe: true, Pack: true, Migrate: true}
}

// Decider is the strategy. Who is resident where it reads from the State; what is not
// there it remembers.
type Decider struct {
	config Config
	m      memory
	size   int // of what was remembered last, encoded

	slots   []plan.Slot // of this decision's wishes
	devices []plan.DeviceID
	shares  map[plan.ShareTerms]*plan.ShareTerms // of this decision's wishes

	planner *planner // of this decision, with the memory of those before, as all below
	tasks   []task
	wait    []*task
}

var _ allocate.Joint = (*Decider)(nil)

// New returns the strategy; the configuration must be valid.
func New(c Config) *Decider {
	return &Decider{config: c, m: newMemory(), shares: map[plan.ShareTerms]*plan.ShareTerms{}}
}

// turn is the time slice of all jobs that take turns: who computes on a device, and
// when, the strategy says itself.
const turn = 1

// Wishes gives everybody a place and, at the end of a quantum, turns to those who have
// waited longest.
func (g *Decider) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	p, left := g.read(v, jobs)
	if v.Now() >= g.m.next {
		g.m.next = v.Now().Add(g.config.Quantum)
		g.judge(v, p)
		for t := p.migrate(); t != nil; t = p.migrate() {
			delete(g.m.grown, t.id)
		}
		p.rotate()
		if g.config.Pack {
			for _, t := range p.try() {
				g.m.pairs = append(g.m.pairs, baseline(v, p, t))
			}
		}
		g.grow(v, p, len(p.tasks) < len(jobs))
	} else {
		p.fill(false)
	}
	g.idle(v, p)
	g.write(p, jobs)
	g.slots, g.devices = g.slots[:0], g.devices[:0] // in two pieces for all
	clear(g.shares)
	for _, t := range p.tasks {
		into = append(into, g.wish(v, p, t))
	}
	for _, id := range left {
		into = append(into, allocate.Wish{Job: id, Workers: v.Shape(id).Gang, Reason: plan.Reason{Code: plan.Fits}})
	}
	return into, g.m.next
}

// wish is what a task is to have.
func (g *Decider) wish(v plan.View, p *planner, t *task) allocate.Wish {
	id := plan.JobID(t.id)
	w, share := allocate.Wish{Job: id, Workers: t.gang, Suspend: !t.active, Reason: plan.Reason{Code: plan.SliceBegins}}, *plan.NewShare()
	first := len(g.slots)
	for i, d := range t.devices {
		n := plan.NodeID(p.node(d))
		if i == 0 || g.slots[len(g.slots)-1].Node != n {
			g.slots = append(g.slots, plan.Slot{Node: n, Device: plan.None})
		}
		g.devices = append(g.devices, plan.DeviceID(d))
		s := &g.slots[len(g.slots)-1]
		s.Workers++
		s.On = g.devices[len(g.devices)-int(s.Workers) : len(g.devices) : len(g.devices)]
	}
	if len(t.devices) > 0 {
		w.Slots = g.slots[first:len(g.slots):len(g.slots)]
	}
	share.Turn, share.Swap = turn, t.memory-g.keeps(v, id)
	switch {
	case t.moved && v.RunOf(id) != plan.None:
		w.Suspend, w.Reason = false, plan.Reason{Code: plan.Moved}
	case t.guest():
		share.Turn, share.Swap, share.Guest, share.Bond = 0, 0, plan.JobID(t.partner.id), plan.AsEqual
		w.Reason = plan.Reason{Code: plan.Packed, A: int64(t.partner.id)}
	case !t.active:
		w.Reason = plan.Reason{Code: plan.SliceOver}
	}
	if w.Share = g.shares[share]; w.Share == nil { // most are alike
		kept := share
		w.Share, g.shares[share] = &kept, &kept
	}
	return w
}

// baseline notes what two jobs had done when their trial began, and at which rate each
// was last seen by itself.
func baseline(v plan.View, on *planner, t [2]*task) (p pair) {
	for k := range t {
		id := plan.JobID(t[k].id)
		p.jobs[k], p.work[k], p.ran[k], p.soloMicro[k] = id, v.Work(id), v.Executed(id), t[k].soloMicro
		if p.soloMicro[k] == 0 { // as it is believed
			p.soloMicro[k] = max(1, v.Rate(id, v.Node(plan.NodeID(on.node(t[k].devices[0]))).Model, t[k].gang, false))
		}
	}
	return p
}

// judge ends the trials: what each did per running time in the quantum over what it does
// by itself must add up to one. Of a pair that could not begin that is nothing.
func (g *Decider) judge(v plan.View, p *planner) {
	for i := range g.m.pairs {
		o := &g.m.pairs[i]
		a, b := p.task(o.jobs[0]), p.task(o.jobs[1])
		if o.settled || a == nil || b == nil || a.partner != b {
			continue
		}
		sum := 0.0
		for k, id := range o.jobs {
			ran := max(1, v.Executed(id)-o.ran[k])
			sum += float64(v.Work(id)-o.work[k]) / float64(ran) * plan.FullRate / float64(o.soloMicro[k])
		}
		o.settled = true
		p.judge([2]*task{a, b}, unit.Milli(sum*1000+.5))
	}
}

// grow gives an elastic job that has its devices to itself the devices of its node that
// nobody has been on for a quantum, and takes them back when somebody waits.
func (g *Decider) grow(v plan.View, p *planner, waits bool) {
	for _, t := range p.tasks {
		waits = waits || !t.active
	}
	if waits {
		clear(g.m.grown)
	}
	for _, t := range p.tasks {
		if len(t.devices) == 0 || waits || v.Job(plan.JobID(t.id)).Run == plan.None {
			continue
		}
		n := p.node(t.devices[0])
		if since := g.m.idle[n]; since == unit.Never || v.Now().Sub(since) < g.config.Quantum || t.gang >= p.size(n) {
			continue
		}
		shape, node, most := v.Shape(plan.JobID(t.id)), v.Node(plan.NodeID(n)), t.gang
		for _, size := range shape.Sizes {
			if more := size - t.gang; more <= p.free(n) && more*shape.CPU <= node.FreeCPU && more*shape.Host <= node.FreeHost {
				most = max(most, size)
			}
		}
		if more := p.gather(&task{gang: most - t.gang}, slices.Values([]int32{n}), 1); most > t.gang && more != nil {
			all := append(slices.Clone(t.devices), more...)
			slices.Sort(all)
			p.unsettle(t)
			p.seat(t, all)
			t.gang, t.active = most, true
			g.m.grown[t.id] = all
		}
	}
}
