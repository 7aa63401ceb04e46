// Package bestfit places a gang where it leaves the least room behind: each step
// takes the node that would be left with the least, and as many workers as that
// node holds; a share goes to the tightest device of its node. What is left is
// weighed over devices and cores together, as the best fit of the FGD artefact
// does (Weng et al., ATC 2023), so that a node is not left with devices and no
// cores.
//
// Left out: the artefact rounds its score to whole percents and looks at every
// node. Here a comparison is exact, but looks at no more nodes than Look says, so that
// its cost does not grow with the cluster.
package bestfit

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "best-fit", Part: allocate.PlacePart, Status: "read",
	Source: "folklore; weights as in the FGD artefact, hkust-adsl/kubernetes-scheduler-simulator",
	Idea:   "the nodes, and for shares the devices, that would be left with the least room",
	Goal:   "throughput", Needs: "nothing", Live: "as simulated",
}

// Config tunes the comparison.
type Config struct {
	// CoresPerDevice is how many free cores weigh as much as one free device; 0
	// ignores cores. They count only for jobs that ask for cores.
	CoresPerDevice int64 `yaml:"cores-per-device" least:"0"`
	// Look is how many nodes with room are compared in a step, those first that could
	// be left with the least; 0 is all, and a placement then costs more on a larger
	// cluster.
	Look int `yaml:"look" least:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{CoresPerDevice: 16, Look: 16} }

// Placer is the strategy. Its fields beyond the configuration are scratch.
type Placer struct {
	config Config
	gang   fit.Gang
	kinds  []kind
	from   []plan.NodeID // by kind: the first node that may have room for this candidate
	best   best
}

// kind is the nodes with equally many free devices; rest is the least that a node of
// this kind would be left with.
type kind struct {
	free int
	rest int64
}

// best is the best node of a search so far.
type best struct {
	node    plan.NodeID
	left    int64
	workers int32
	looked  int
}

var _ allocate.Placer = (*Placer)(nil)

// New returns the placer; the configuration must be valid.
func New(c Config) *Placer { return &Placer{config: c} }

// Place takes the tightest node again and again; a runner-up keeps off the first
// node of every better candidate.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	return p.gang.Candidates(v, need, k, into, func() (sum int64) {
		p.from = append(p.from[:0], make([]plan.NodeID, v.Room().MostFree()+2)...)
		for done := false; !done && p.tightest(v, need.Shape); {
			done = p.gang.Fill(p.best.node, fit.Tightest)
			sum -= p.best.left
		}
		return sum
	})
}

// tightest finds the node that would be left with the least; of equals the one that
// takes more workers, then the lower id.
func (p *Placer) tightest(v plan.View, shape *plan.Shape) bool {
	p.best = best{node: plan.None, left: math.MaxInt64}
	p.sort(v, shape)
	if shape.Share < 1000 {
		p.compare(v, shape, kind{free: shared}, func(from plan.NodeID) plan.NodeID { return fit.NextShared(v, shape.Models, from) })
	}
	for _, k := range p.kinds {
		if k.rest > p.best.left || p.enough() {
			break
		}
		p.compare(v, shape, k, func(from plan.NodeID) plan.NodeID { return fit.NextWith(v, shape.Models, k.free, from) })
	}
	return p.best.node != plan.None
}

func (p *Placer) enough() bool { return p.config.Look > 0 && p.best.looked >= p.config.Look }

// shared stands for the nodes that have a partly free device.
const shared = -1

// sort lists the kinds of node that may hold a worker, those first that could be
// left with the least, and of equals those that take more.
func (p *Placer) sort(v plan.View, shape *plan.Shape) {
	p.kinds = p.kinds[:0]
	for free := int(shape.Devices); free <= v.Room().MostFree(); free++ {
		milli := int64(free) * 1000
		switch {
		case shape.Devices == 0:
		case shape.Share < 1000:
			milli = max(0, milli-shape.Milli(p.gang.Left()))
		default:
			milli -= shape.Milli(min(p.gang.Left(), int32(free)/shape.Devices))
		}
		p.kinds = append(p.kinds, kind{free, fit.Weigh(milli, 0, p.config.CoresPerDevice)})
	}
	slices.SortFunc(p.kinds, func(a, b kind) int { return cmp.Or(cmp.Compare(a.rest, b.rest), b.free-a.free) })
}

// compare looks at nodes of one kind.
func (p *Placer) compare(v plan.View, shape *plan.Shape, k kind, next func(from plan.NodeID) plan.NodeID) {
	some, start := false, &p.from[k.free+1]
	for n := next(*start); n != plan.None && !p.enough(); n = next(n + 1) {
		workers := min(p.gang.Left(), p.gang.Holds(n))
		if some = some || workers > 0; !some {
			*start = n + 1 // nor will it have room for the rest of the gang
		}
		if workers == 0 {
			continue
		}
		p.best.looked++
		left := fit.Leftover(v, n, shape, workers, p.config.CoresPerDevice)
		b := &p.best
		if cmp.Or(cmp.Compare(left, b.left), cmp.Compare(b.workers, workers), cmp.Compare(n, b.node)) < 0 {
			b.node, b.left, b.workers = n, left, workers
		}
		if left <= k.rest {
			return // no other node of the kind is left with less
		}
	}
}
