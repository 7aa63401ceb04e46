package fit

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
)

// Gang collects the slots of one candidate and remembers what it took, so that a
// placer may come back to a node, worker by worker. It is used again from one
// candidate to the next: Begin, then Fill and Add, then Done; Candidates does that.
type Gang struct {
	Taker
	except []plan.NodeID
	firsts []plan.NodeID // of Candidates: the first nodes of those so far
	taken  []int32       // workers, by node
	slot   []int32       // 1 + the slot, by device for shares and by node for all else
}

// Candidates appends up to k candidates: put takes what one needs, with Fill and Add,
// and returns its score. A runner-up keeps off the first node of every better candidate.
func (g *Gang) Candidates(v plan.View, need allocate.Need, k int, into []allocate.Candidate, put func() int64) []allocate.Candidate {
	g.firsts = g.firsts[:0]
	for range k {
		into = allocate.Extend(into)
		c := &into[len(into)-1]
		g.Begin(v, need, g.firsts, c.Slots)
		c.Score = put()
		slots, ok := g.Done()
		if !ok {
			return into[:len(into)-1]
		}
		c.Slots = slots
		g.firsts = append(g.firsts, slots[0].Node)
	}
	return into
}

// OneByOne appends up to k candidates whose workers are placed one by one: next says where
// the next one goes, on a node None where there is no room, and what that adds to the score.
func (g *Gang) OneByOne(v plan.View, need allocate.Need, k int, into []allocate.Candidate, next func() (plan.NodeID, plan.DeviceID, int64)) []allocate.Candidate {
	return g.Candidates(v, need, k, into, func() (sum int64) {
		for done := false; !done; {
			node, device, score := next()
			if node == plan.None {
				break
			}
			sum += score
			done = g.Add(node, device)
		}
		return sum
	})
}

// Begin starts a candidate that keeps off the excepted nodes.
func (g *Gang) Begin(v plan.View, need allocate.Need, except []plan.NodeID, into []plan.Slot) {
	g.Taker, g.except = Take(v, need, into), except
	if len(g.taken) < v.Nodes() {
		g.taken = make([]int32, v.Nodes())
	}
	if most := max(v.Nodes(), v.Devices()); len(g.slot) < most {
		g.slot = make([]int32, most)
	}
}

// Except are the nodes that the candidate keeps off.
func (g *Gang) Except() []plan.NodeID { return g.except }

// Off reports whether the candidate keeps off a node.
func (g *Gang) Off(id plan.NodeID) bool { return slices.Contains(g.except, id) }

// Holds is how many workers more a node could take.
func (g *Gang) Holds(id plan.NodeID) int32 {
	if g.Off(id) {
		return 0
	}
	return g.v.Holds(id, g.need.Shape) - g.taken[id]
}

// Shares is how many shares more a device has room for.
func (g *Gang) Shares(id plan.DeviceID) int32 {
	return g.v.Shares(id, g.need.Shape) - g.On(id)
}

// On is how many shares the candidate has taken of a device.
func (g *Gang) On(id plan.DeviceID) int32 {
	if i := g.slot[id]; i > 0 {
		return g.slots[i-1].Workers
	}
	return 0
}

// Taken is how many workers the candidate has put on a node.
func (g *Gang) Taken(id plan.NodeID) int32 { return g.taken[id] }

// Nodes yields the nodes of the candidate so far; one with several slots comes
// several times.
func (g *Gang) Nodes(yield func(plan.NodeID) bool) {
	for _, s := range g.slots {
		if !yield(s.Node) {
			return
		}
	}
}

// Devices yields the devices that the candidate took shares of.
func (g *Gang) Devices(yield func(plan.DeviceID) bool) {
	for _, s := range g.slots {
		if s.Device != plan.None && !yield(s.Device) {
			return
		}
	}
}

// Fill takes what is still wanted and a node holds, of a node not used before.
func (g *Gang) Fill(id plan.NodeID, order Order) bool {
	from, left := len(g.slots), g.left
	done := g.Taker.Fill(id, order)
	for i := from; i < len(g.slots); i++ {
		g.slot[g.key(g.slots[i])] = int32(i + 1)
	}
	g.taken[id] += left - g.left
	return done
}

// Add places one worker: on wholly free devices or cores of a node with Device
// None, or on a share of a device. It reports whether all are placed.
func (g *Gang) Add(id plan.NodeID, device plan.DeviceID) bool {
	s := plan.Slot{Node: id, Device: device, Workers: 1}
	if i := &g.slot[g.key(s)]; *i == 0 {
		g.slots = append(g.slots, s)
		*i = int32(len(g.slots))
	} else {
		g.slots[*i-1].Workers++
	}
	g.taken[id]++
	g.left--
	return g.left == 0
}

func (g *Gang) key(s plan.Slot) int {
	if s.Device != plan.None {
		return int(s.Device)
	}
	return int(s.Node)
}

// Done ends the candidate and returns its slots if all workers are placed.
func (g *Gang) Done() ([]plan.Slot, bool) {
	for _, s := range g.slots {
		g.slot[g.key(s)], g.taken[s.Node] = 0, 0
	}
	return g.Taker.Done()
}
