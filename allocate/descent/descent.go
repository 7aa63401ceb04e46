// Package descent is the mechanism of placers that follow a measure of what a node has free:
// each worker goes to the node, and its share to the device, where the measure falls best. How
// good a fall is comes in whole points, and their coarseness matters: of equals it is best fit,
// and then the lower id.
//
// Points are remembered by what a shape asks and by what a node looks like, so that a placement
// compares the groups of nodes that look alike and not all nodes.
package descent

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/allocate/fragment"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
)

// Measure is what a placer follows. It must follow from the State alone.
type Measure interface {
	// Learn brings the measure up to date and reports whether it is another one now; same
	// says that the cluster is that of the last call.
	Learn(v plan.View, same bool) (changed bool)
	// Of is the measure of a node.
	Of(n *fragment.Node) int64
	// Points says how good it is that the measure falls by so much, more being better: 0 or above.
	Points(fall int64) int32
}

// Placer places by a measure. All it remembers follows from the State it is asked about,
// which must be the same from call to call.
type Placer struct {
	measure        Measure
	coresPerDevice int64
	gang           fit.Gang

	cluster *cluster.Cluster
	looks   fit.Looks
	scores  map[class][]score // by group of looks
	before  []int64           // the measure by group, unknown where it was not asked for
	begun   []begun           // nodes that the candidate uses or keeps off
	node    fragment.Node     // scratch
}

// class is all of a shape that the score of one worker depends on.
type class struct {
	fragment.Task
	memory, host int32
}

// score is how good a node is for a class.
type score struct {
	left   int64 // weight of what would be left
	device plan.DeviceID
	points int32 // refused is no room, and unscored not known yet
}

// begun is a node that stands for itself: with so many workers of the candidate it is that good.
type begun struct {
	id    plan.NodeID
	taken int32
	score score
}

const refused, unscored = -1, -2

// unknown is a measure that was not worked out.
const unknown = math.MinInt64

// remembered bounds the scores that are kept, over all classes and groups.
const remembered = 1 << 22

var _ allocate.Placer = (*Placer)(nil)

// New returns a placer by a measure; so many free cores weigh as much as one free device where
// best fit breaks a tie, and 0 ignores cores.
func New(m Measure, coresPerDevice int64) *Placer {
	return &Placer{measure: m, coresPerDevice: coresPerDevice}
}

// Place puts worker by worker on the best node; a runner-up keeps off the first node
// of every better candidate. The score is the sum over the workers.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	p.learn(v)
	into = p.gang.OneByOne(v, need, k, into, func() (plan.NodeID, plan.DeviceID, int64) {
		if p.gang.Left() == need.Workers {
			p.begin(v)
		}
		node, s := p.best(v, need.Shape)
		if node != plan.None {
			p.use(node)
		}
		return node, s.device, int64(s.points)
	})
	p.end(v)
	return into
}

// learn keeps the measure and the groups up to date, and forgets what was computed for others.
func (p *Placer) learn(v plan.View) {
	same := p.cluster == v.Cluster()
	same = !p.measure.Learn(v, same) && same
	p.cluster = v.Cluster()
	if p.looks.Update(v) || !same {
		p.scores, p.before = map[class][]score{}, p.before[:0]
	}
	for len(p.before) < p.looks.Many() {
		p.before = append(p.before, unknown)
	}
}

// begin starts a candidate: the nodes that it keeps off are in no group.
func (p *Placer) begin(v plan.View) {
	p.end(v)
	for _, id := range p.gang.Except() {
		p.use(id)
	}
}

// use has a node stand for itself until the candidate ends.
func (p *Placer) use(id plan.NodeID) {
	if !slices.ContainsFunc(p.begun, func(b begun) bool { return b.id == id }) {
		p.looks.SetAside(id)
		p.begun = append(p.begun, begun{id: id, score: score{points: unscored}})
	}
}

// end puts the nodes of a candidate back into their groups.
func (p *Placer) end(v plan.View) {
	for i := range p.begun {
		p.looks.File(v, p.begun[i].id)
	}
	p.begun = p.begun[:0]
}

// table returns the remembered scores of a shape, by group.
func (p *Placer) table(shape *plan.Shape) []score {
	c, many := class{fragment.TaskOf(shape), shape.Memory, shape.Host}, p.looks.Many()
	t := p.scores[c]
	if len(t) < many {
		if (len(p.scores)+1)*many > remembered {
			clear(p.scores)
		}
		t = append(make([]score, 0, many+many/4), t...)
		for len(t) < many {
			t = append(t, score{points: unscored})
		}
		p.scores[c] = t
	}
	return t
}

// best returns the node with the best score for the next worker; of equals the one
// that would be left with the least, then the lower id.
func (p *Placer) best(v plan.View, shape *plan.Shape) (plan.NodeID, score) {
	node, best := plan.NodeID(plan.None), score{points: refused}
	consider := func(id plan.NodeID, s *score) {
		if s.points != refused && (node == plan.None || cmp.Or(cmp.Compare(best.points, s.points), cmp.Compare(s.left, best.left), cmp.Compare(id, node)) < 0) {
			node, best = id, *s
		}
	}
	for i := range p.begun {
		b := &p.begun[i]
		if taken := p.gang.Taken(b.id); b.score.points == unscored || b.taken != taken {
			b.taken, b.score = taken, p.score(v, b.id, shape)
		}
		consider(b.id, &b.score)
	}
	p.eachGroup(v, shape, p.table(shape), consider)
	if node != plan.None && shape.Share < 1000 && p.gang.Taken(node) == 0 {
		best = p.score(v, node, shape) // the same, on a device of its own
	}
	return node, best
}

// eachGroup considers the lowest node of every group; for a shape that is confined to some
// nodes all of them, as their groups have others too.
func (p *Placer) eachGroup(v plan.View, shape *plan.Shape, table []score, consider func(plan.NodeID, *score)) {
	scored := func(group int32, id plan.NodeID) *score {
		s := &table[group]
		if s.points == unscored {
			*s = p.score(v, id, shape)
		}
		return s
	}
	if shape.NodeSet == 0 {
		for _, group := range p.looks.Groups() {
			if s := &table[group]; s.points != refused {
				first := p.looks.First(group)
				consider(first, scored(group, first))
			}
		}
		return
	}
	for id := range plan.NodeID(v.Nodes()) {
		if v.InSet(shape, id) && !p.gang.Off(id) && p.gang.Taken(id) == 0 {
			consider(id, scored(p.looks.Of(id), id))
		}
	}
}

// score evaluates a node for one more worker of the candidate.
func (p *Placer) score(v plan.View, id plan.NodeID, shape *plan.Shape) score {
	if p.gang.Holds(id) <= 0 {
		return score{points: refused}
	}
	p.node.Read(v, id, shape, &p.gang)
	before := p.measured(id)
	p.node.CPU -= int64(shape.CPU)
	s := score{device: plan.None, points: refused}
	if shape.Share == 1000 || shape.Devices == 0 {
		p.node.TakeWhole(shape.Devices)
		s.points = p.measure.Points(before - p.measure.Of(&p.node))
	} else {
		p.scoreShares(v, id, shape, before, &s)
		p.node.Total -= int64(shape.Share)
	}
	if shape.CPU == 0 {
		p.node.CPU = 0
	}
	s.left = fit.Weigh(p.node.Total, p.node.CPU, p.coresPerDevice)
	return s
}

// scoreShares tries every device with room for a share; of equals the tightest, then
// the lower id.
func (p *Placer) scoreShares(v plan.View, id plan.NodeID, shape *plan.Shape, before int64, s *score) {
	n, first := &p.node, v.Node(id).First
	room, tried := int32(0), uint64(0)
	for i, free := range n.Free {
		device := first + plan.DeviceID(i)
		// Devices with equally much free are equally good; most nodes have few kinds.
		if seen(n.Free[:i], free, tried) || p.gang.Shares(device) <= 0 {
			continue
		}
		tried |= 1 << (i & 63)
		n.Free[i] -= shape.Share
		n.Total -= int64(shape.Share)
		points := p.measure.Points(before - p.measure.Of(n))
		n.Free[i] += shape.Share
		n.Total += int64(shape.Share)
		if c := cmp.Or(cmp.Compare(points, s.points), cmp.Compare(room, free)); c > 0 {
			s.points, s.device, room = points, device, free
		}
	}
}

// seen reports whether a device tried before has equally much free.
func seen(before []int32, free int32, tried uint64) bool {
	for i, f := range before {
		if f == free && i < 64 && tried&(1<<i) != 0 {
			return true
		}
	}
	return false
}

// measured is the measure of the node just read, remembered by group while the candidate has
// taken nothing of it.
func (p *Placer) measured(id plan.NodeID) int64 {
	if p.gang.Taken(id) > 0 {
		return p.measure.Of(&p.node)
	}
	f := &p.before[p.looks.Of(id)]
	if *f == unknown {
		*f = p.measure.Of(&p.node)
	}
	return *f
}
