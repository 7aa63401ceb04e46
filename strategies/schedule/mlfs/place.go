package mlfs

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// PlacerDescription is what the choice of hosts says about itself.
var PlacerDescription = strategy.Description{
	Name: "mlfs-place", System: "MLFS", Part: allocate.PlacePart, Status: "after",
	Source: Description.Source,
	Idea:   "each worker on the node nearest to the ideal one, which is idle and has all its siblings",
	Goal:   "throughput", Needs: "nothing", Live: "as simulated",
}

// Placer puts each worker on the node that is nearest to the ideal one. The dimensions
// are the loads of devices and cores and the siblings that are elsewhere, each from 0 to
// 1; what a move costs is nothing for a run that starts.
type Placer struct {
	gang fit.Gang
}

var _ allocate.Placer = (*Placer)(nil)

// NewPlacer returns the placer.
func NewPlacer() *Placer { return &Placer{} }

// Place scores by the distances of all workers, the less the better; a runner-up keeps
// off the first node of every better candidate.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	return p.gang.OneByOne(v, need, k, into, func() (plan.NodeID, plan.DeviceID, int64) {
		node, distance := p.nearest(v, need)
		if node == plan.None {
			return node, plan.None, 0
		}
		return node, p.idlest(v, node, need.Shape), -distance
	})
}

// nearest is the node with room that is nearest to the ideal, of equals the lowest, and
// its distance.
func (p *Placer) nearest(v plan.View, need allocate.Need) (plan.NodeID, int64) {
	node, least := plan.NodeID(plan.None), int64(0)
	for id := range plan.NodeID(v.Nodes()) {
		if p.gang.Holds(id) <= 0 {
			continue
		}
		if d := p.distance(v, id, need); node == plan.None || d < least {
			node, least = id, d
		}
	}
	return node, least
}

// distance is the square of how far a node is from the ideal, in millionths.
func (p *Placer) distance(v plan.View, id plan.NodeID, need allocate.Need) int64 {
	n, taken := v.Node(id), p.gang.Taken(id)
	free := -need.Shape.Milli(taken)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		free += int64(v.Device(d).Free)
	}
	square := squareOf(1000*int64(n.Count)-free, 1000*int64(n.Count)) + squareOf(int64(need.Workers-taken), int64(need.Workers))
	if cores := int64(v.Cluster().Nodes[id].CPU); need.Shape.CPU > 0 {
		square += squareOf(cores-int64(n.FreeCPU)+int64(taken*need.Shape.CPU), cores)
	}
	return square
}

// squareOf is the square of a part of a whole, in millionths; of nothing it is none.
func squareOf(part, whole int64) int64 {
	if whole == 0 {
		return 0
	}
	milli := 1000 * part / whole
	return milli * milli
}

// idlest is the device with most room for a share, of equals the lowest; None for whole
// devices and cores.
func (p *Placer) idlest(v plan.View, id plan.NodeID, shape *plan.Shape) plan.DeviceID {
	best, most := plan.DeviceID(plan.None), int32(0)
	if shape.Share == 1000 || shape.Devices == 0 {
		return best
	}
	n := v.Node(id)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		if free := v.Device(d).Free - p.gang.On(d)*shape.Share; p.gang.Shares(d) > 0 && free > most {
			best, most = d, free
		}
	}
	return best
}
