package fit

import (
	"math"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// racksTried is how many racks are tried as the home of a gang that needs several
// nodes, and nodesTried how many nodes of a rack are looked at before one elsewhere
// is taken: bounds on the search, so that it does not grow with the cluster.
const (
	racksTried = 8
	nodesTried = 64
)

// Fewest puts a gang on as few nodes as the free devices allow: on the tightest
// node that holds all of it, else on the fullest-free nodes and, for what remains
// at the end, on the tightest again. Of several nodes it prefers those of one rack.
// It is used again from one placement to the next.
type Fewest struct {
	gang    Gang
	cluster *cluster.Cluster
	racks   []extent      // by rack
	in      []bool        // by rack: whether the candidate uses it
	start   []plan.NodeID // by free devices: the first node that may have room for this candidate
	spare   []plan.Slot
	firsts  []plan.NodeID // of Candidates: the first nodes of those so far
}

// extent is the first and the last node of a rack.
type extent struct{ first, last plan.NodeID }

// Placement is what a gang on few nodes takes.
type Placement struct {
	Slots        []plan.Slot
	Nodes, Racks int
}

func (p *Placement) worse(than *Placement) bool {
	return p.Nodes > than.Nodes || p.Nodes == than.Nodes && p.Racks > than.Racks
}

// Candidates appends up to k candidates, each with its score. A runner-up keeps off the
// first node of every better candidate.
func (f *Fewest) Candidates(v plan.View, need allocate.Need, k int, into []allocate.Candidate, score func(Placement) int64) []allocate.Candidate {
	f.firsts = f.firsts[:0]
	for range k {
		into = allocate.Extend(into)
		c := &into[len(into)-1]
		found, ok := f.Place(v, need, f.firsts, c.Slots)
		if !ok {
			return into[:len(into)-1]
		}
		c.Slots, c.Score = found.Slots, score(found)
		f.firsts = append(f.firsts, c.Slots[0].Node)
	}
	return into
}

// Place returns the placement, on other nodes than the excepted ones, and whether
// there is one.
func (f *Fewest) Place(v plan.View, need allocate.Need, except []plan.NodeID, into []plan.Slot) (Placement, bool) {
	f.learn(v.Cluster())
	best, ok := f.from(v, need, except, into, plan.None)
	if !ok || best.Racks < 2 {
		return best, ok
	}
	// The rack of the fullest node may not hold the gang where another does.
	home, left := v.Node(best.Slots[0].Node).Rack, racksTried-1
	for free := v.Room().MostFree(); free >= int(need.Shape.Devices) && best.Racks > 1 && left > 0; free-- {
		for n := NextWith(v, need.Shape.Models, free, 0); n != plan.None && best.Racks > 1 && left > 0; {
			rack := v.Node(n).Rack
			if rack != home {
				left--
				if p, ok := f.from(v, need, except, f.spare[:0], n); ok && best.worse(&p) {
					p.Slots, f.spare = append(best.Slots[:0], p.Slots...), p.Slots
					best = p
				}
			}
			n = NextWith(v, need.Shape.Models, free, f.racks[rack].last+1)
		}
	}
	return best, true
}

// learn notes where the racks of a cluster lie.
func (f *Fewest) learn(c *cluster.Cluster) {
	if f.cluster == c {
		return
	}
	f.cluster = c
	f.racks, f.in = make([]extent, len(c.Racks)), make([]bool, len(c.Racks))
	for i := range f.racks {
		f.racks[i].first = math.MaxInt32
	}
	for i := range c.Nodes {
		r := &f.racks[c.Nodes[i].Rack]
		r.first, r.last = min(r.first, plan.NodeID(i)), plan.NodeID(i)
	}
}

// from places the gang beginning on a given node, or with None where it fits best.
func (f *Fewest) from(v plan.View, need allocate.Need, except []plan.NodeID, into []plan.Slot, begin plan.NodeID) (Placement, bool) {
	g := &f.gang
	g.Begin(v, need, except, into)
	f.start = append(f.start[:0], make([]plan.NodeID, v.Room().MostFree()+2)...)
	if begin != plan.None && g.Holds(begin) > 0 {
		f.use(v, begin)
	}
	for g.Left() > 0 {
		node := f.holdsAll(v, need.Shape)
		if node == plan.None {
			node = f.fullest(v, need.Shape)
		}
		if node == plan.None {
			break
		}
		f.use(v, node)
	}
	return f.done(v)
}

func (f *Fewest) use(v plan.View, id plan.NodeID) {
	f.gang.Fill(id, Tightest)
	f.in[v.Node(id).Rack] = true
}

func (f *Fewest) done(v plan.View) (p Placement, ok bool) {
	p.Nodes = Nodes(f.gang.slots)
	for _, s := range f.gang.slots {
		if rack := v.Node(s.Node).Rack; f.in[rack] {
			p.Racks++
			f.in[rack] = false
		}
	}
	p.Slots, ok = f.gang.Done()
	return p, ok
}

// holdsAll returns the tightest node that holds all workers still to be placed.
func (f *Fewest) holdsAll(v plan.View, shape *plan.Shape) plan.NodeID {
	least := int(shape.WholeDevices(f.gang.Left()))
	if shape.Share < 1000 {
		if n := f.pick(v, shape, shared, f.gang.Left()); n != plan.None {
			return n
		}
		least = 1
	}
	for free := least; free <= v.Room().MostFree(); free++ {
		if n := f.pick(v, shape, free, f.gang.Left()); n != plan.None {
			return n
		}
	}
	return plan.None
}

// fullest returns a node with the most free devices that has room for a worker.
func (f *Fewest) fullest(v plan.View, shape *plan.Shape) plan.NodeID {
	for free := v.Room().MostFree(); free >= int(shape.Devices); free-- {
		if n := f.pick(v, shape, free, 1); n != plan.None {
			return n
		}
	}
	if shape.Share < 1000 {
		return f.pick(v, shape, shared, 1)
	}
	return plan.None
}

// shared stands for the nodes that have a partly free device.
const shared = -1

// pick returns the first node with so many free devices that holds so many workers,
// one of the rack used last before the others.
func (f *Fewest) pick(v plan.View, shape *plan.Shape, free int, workers int32) plan.NodeID {
	g := &f.gang
	next := func(from plan.NodeID) plan.NodeID {
		if free == shared {
			return NextShared(v, shape.Models, from)
		}
		return NextWith(v, shape.Models, free, from)
	}
	if len(g.slots) > 0 && len(f.racks) > 1 {
		rack := v.Node(g.slots[len(g.slots)-1].Node).Rack
		n := next(f.racks[rack].first)
		for tries := nodesTried; n != plan.None && n <= f.racks[rack].last && tries > 0; tries-- {
			if v.Node(n).Rack == rack && g.Holds(n) >= workers {
				return n
			}
			n = next(n + 1)
		}
	}
	start, some := &f.start[free+1], false
	for n := next(*start); n != plan.None; n = next(n + 1) {
		holds := g.Holds(n)
		if holds >= workers {
			return n
		}
		if some = some || holds > 0; !some {
			*start = n + 1 // nor will it have room for the rest of the gang
		}
	}
	return plan.None
}
