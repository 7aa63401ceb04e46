package simulated

import (
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Breaks says how often things fail and how long mending takes: exponential, each
// node, device and link with a random stream of its own from the seed, so that one's
// history does not depend on another's. Zero never fails.
type Breaks struct {
	Seed                   uint64
	NodeEvery, NodeFor     unit.Duration // mean time between failures; mean repair
	DeviceEvery, DeviceFor unit.Duration
	LinkEvery, LinkFor     unit.Duration
}

const (
	nodeStream = 1 << 32
	linkStream = 2 << 32
	devStream  = 3 << 32
)

// schedulingBreaks queues the first failure of each node, device and link, and the
// mending of those that are lost already.
func (s *Simulation) schedulingBreaks(now unit.Time) {
	b, v := s.config.Breaks, s.engine.View()
	s.chance = map[uint64]*rand.Rand{}
	s.down, s.broken = make([]bool, v.Nodes()), make([]bool, v.Devices())
	for n := range plan.NodeID(v.Nodes()) {
		if s.down[n] = v.Node(n).Status == plan.Down; b.NodeEvery == 0 || v.Cluster().Nodes[n].Rental {
			continue
		}
		if s.down[n] {
			s.queueUp(s.draw(now, nodeStream+uint64(n), b.NodeFor), entry{kind: nodeMends, node: n})
		} else {
			s.queueUp(s.draw(now, nodeStream+uint64(n), b.NodeEvery), entry{kind: nodeBreaks, node: n})
		}
	}
	for d := range plan.DeviceID(v.Devices()) {
		if s.broken[d] = v.Device(d).Status == plan.Lost; b.DeviceEvery == 0 {
			continue
		}
		if s.broken[d] {
			s.queueUp(s.draw(now, devStream+uint64(d), b.DeviceFor), entry{kind: deviceMends, device: d})
		} else {
			s.queueUp(s.draw(now, devStream+uint64(d), b.DeviceEvery), entry{kind: deviceBreaks, device: d})
		}
	}
	for l := range int32(v.Cluster().Links()) {
		if b.LinkEvery > 0 && v.Cluster().LinkBandwidth(l) > 0 {
			s.queueUp(s.draw(now, linkStream+uint64(l), b.LinkEvery), entry{kind: linkBreaks, link: l})
		}
	}
}

// schedulingSlow queues when devices and links begin to be slow, and end; those that are by now are at
// once.
func (s *Simulation) schedulingSlow(now unit.Time) {
	for i, is := range s.config.World.Slow {
		if is.Until > 0 && is.Until <= now {
			continue
		}
		if e := (entry{kind: slowBegins, device: is.Device, link: is.Link, change: int64(i)}); is.From > now {
			s.queueUp(is.From, e)
		} else {
			s.world.SetSlow(now, s.engine.View(), i, true)
		}
		if is.Until > 0 {
			s.queueUp(is.Until, entry{kind: slowEnds, device: is.Device, link: is.Link, change: int64(i)})
		}
	}
}

// draw returns an instant an exponential time after at.
func (s *Simulation) draw(at unit.Time, stream uint64, mean unit.Duration) unit.Time {
	r := s.chance[stream]
	if r == nil {
		r = rand.New(rand.NewPCG(s.config.Breaks.Seed, stream))
		s.chance[stream] = r
	}
	return at.Add(unit.Duration(math.Ceil(r.ExpFloat64()*float64(mean))) + 1)
}

// breakOrMend lets a node, device or link fail or come back, and queues what follows.
func (s *Simulation) breakOrMend(at unit.Time, e entry) {
	b := s.config.Breaks
	switch e.kind {
	case nodeBreaks:
		s.loseNode(at, e.node)
		s.queueUp(s.draw(at, nodeStream+uint64(e.node), b.NodeFor), entry{kind: nodeMends, node: e.node})
	case nodeMends:
		s.mendNode(e.node)
		s.queueUp(s.draw(at, nodeStream+uint64(e.node), b.NodeEvery), entry{kind: nodeBreaks, node: e.node})
	case deviceBreaks:
		s.loseDevice(at, e.device)
		s.queueUp(s.draw(at, devStream+uint64(e.device), b.DeviceFor), entry{kind: deviceMends, device: e.device})
	case deviceMends:
		s.mendDevice(e.device)
		s.queueUp(s.draw(at, devStream+uint64(e.device), b.DeviceEvery), entry{kind: deviceBreaks, device: e.device})
	case slowBegins, slowEnds:
		s.moved(at, s.world.SetSlow(at, s.engine.View(), int(e.change), e.kind == slowBegins))
	case linkBreaks:
		s.moved(at, s.world.SetLink(at, e.link, true))
		s.queueUp(s.draw(at, linkStream+uint64(e.link), b.LinkFor), entry{kind: linkMends, link: e.link})
	case linkMends:
		s.moved(at, s.world.SetLink(at, e.link, false))
		s.queueUp(s.draw(at, linkStream+uint64(e.link), b.LinkEvery), entry{kind: linkBreaks, link: e.link})
	}
}

// loseNode ends what runs on a node and then reports the node lost.
func (s *Simulation) loseNode(at unit.Time, node plan.NodeID) {
	s.loseRuns(at, func(g plan.Grant) bool { return g.Node == node })
	s.ledger.capacity -= s.healthy(node) * 1000
	s.down[node] = true
	s.emit(engine.Event{Kind: engine.NodeDown, Node: node})
}

func (s *Simulation) mendNode(node plan.NodeID) {
	s.down[node] = false
	s.ledger.capacity += s.healthy(node) * 1000
	s.emit(engine.Event{Kind: engine.NodeUp, Node: node})
}

// healthy counts the devices of a node that are not broken themselves.
func (s *Simulation) healthy(node plan.NodeID) (n int64) {
	is := &s.engine.View().Cluster().Nodes[node]
	for d := is.First; d < is.First+is.Count; d++ {
		if !s.broken[d] {
			n++
		}
	}
	return n
}

// loseDevice ends what runs on a device and then reports the device lost.
func (s *Simulation) loseDevice(at unit.Time, device plan.DeviceID) {
	s.loseRuns(at, func(g plan.Grant) bool { return g.Device == device })
	s.broken[device] = true
	if !s.down[s.engine.View().Cluster().Devices[device].Node] {
		s.ledger.capacity -= 1000
	}
	s.emit(engine.Event{Kind: engine.DeviceDown, Device: device})
}

func (s *Simulation) mendDevice(device plan.DeviceID) {
	s.broken[device] = false
	if !s.down[s.engine.View().Cluster().Devices[device].Node] {
		s.ledger.capacity += 1000
	}
	s.emit(engine.Event{Kind: engine.DeviceUp, Device: device})
}

// loseRuns ends every run with a member on what is lost, each with what its last
// periodic checkpoint kept, or those of its workers that are left.
func (s *Simulation) loseRuns(at unit.Time, lost func(plan.Grant) bool) {
	v := s.engine.View()
	for i := range s.runs {
		id := plan.RunID(i)
		if s.runs[i].status == plan.Gone {
			continue
		}
		here := false
		v.GrantsOf(id, func(g plan.Grant) { here = here || lost(g) })
		if !here {
			continue
		}
		if l := &s.runs[i]; l.status == plan.Stopping {
			l.version++
			s.gone(at, id)
			s.emit(engine.Event{Kind: engine.Stopped, Job: l.job, Attempt: l.attempt, Ending: engine.Ending{Kept: l.ending.Kept}})
			continue
		}
		alive := s.runs[i].status == plan.Running && s.world.Lose(at, v, id, lost)
		s.exits(at, id, engine.Ending{Class: plan.NodeFailure, Alive: alive})
	}
}
