// Package soonest goes by what planners write into the menus of jobs that train a large model:
// it sizes such a job for what is free now, on the kind of device where that goes fastest, and
// places it on whole nodes of that kind, as its plan was made for. A job without a menu gets
// what it asks for, on the fewest nodes.
//
// After the sizing by marginal gain of AFS (NSDI 2021) and the choice of a device type by rate
// of Gavel (OSDI 2020), both reduced to one job at a time. Left out: to wait for a faster kind,
// which takes estimates of how long others run; who begins on a slow one moves later.
package soonest

import (
	"math/bits"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the sizer says about itself.
var Description = strategy.Description{
	Name: "soonest", Part: allocate.SizePart, Status: "ours",
	Source: "ours, after AFS (NSDI 2021) and Gavel (OSDI 2020)",
	Idea:   "a job with a menu gets the size and kind of device, among those that are free now, at which it goes fastest",
	Goal:   "throughput", Needs: "menus, as planners write them", Live: "resizes by checkpoint and restart",
}

// PlaceDescription is what the placer says about itself.
var PlaceDescription = strategy.Description{
	Name: "fastest-kind", Part: allocate.PlacePart, Status: "ours",
	Source: "ours, after Gavel (OSDI 2020)",
	Idea:   "a job with a menu goes to whole nodes of the kind of device on which it goes fastest; others to the fewest nodes",
	Goal:   "throughput", Needs: "menus, as planners write them", Live: "as simulated",
}

// Config says when to wait.
type Config struct {
	// Least is the part of the rate on what the job asked for, on its best kind, below which
	// no other size is better than that.
	Least unit.Milli `yaml:"least" least:"0" most:"1000"`
	// Gain is how many times as fast a running job must go on another size or kind before it is
	// given that: it is saved and started again.
	Gain unit.Milli `yaml:"gain" least:"1000"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Least: 500, Gain: 1300} }

// Sizer is the sizes' part.
type Sizer struct{ config Config }

var _ allocate.Mover = Sizer{}

// New returns the sizer; the configuration must be valid.
func New(c Config) Sizer { return Sizer{c} }

// Want is the size at which the job goes fastest on what is free now; where that is too slow it
// is what the job asked for, or what it has while it runs.
func (s Sizer) Want(v plan.View, job plan.JobID, _ allocate.Crowd) int32 {
	shape, menu := v.Shape(job), v.Menu(job)
	best, want := int64(0), shape.Gang
	run := v.Job(job).Run
	if run != plan.None {
		want = v.Run(run).Workers
	}
	if !shape.Elastic() || len(menu) == 0 {
		return want
	}
	// Whoever waits compares with what it asked for, whoever runs with what it has: to change
	// that costs a save, a start and the work since the last checkpoint.
	if run != plan.None {
		best = s.worth(v, run)
	} else {
		eachKind(shape, func(kind int) { best = max(best, rate(v, menu, shape, kind, shape.Gang)) })
		best = best * int64(s.config.Least) / int64(unit.Whole)
	}
	for _, size := range append([]int32{shape.Gang}, shape.Sizes[:]...) {
		eachKind(shape, func(kind int) {
			if size <= 0 || !free(v, shape, kind, size) {
				return
			}
			if r := rate(v, menu, shape, kind, size); r > best || r == best && size < want {
				best, want = r, size
			}
		})
	}
	return want
}

// worth is the rate from which on a running job is given something else.
func (s Sizer) worth(v plan.View, run plan.RunID) (least int64) {
	r, on := v.Run(run), plan.NodeID(plan.None)
	v.GrantsOf(run, func(g plan.Grant) { on = g.Node })
	if on == plan.None {
		return 0
	}
	least = rate(v, v.Menu(r.Job), v.Shape(r.Job), int(v.Node(on).Model), r.Workers)
	return least * int64(s.config.Gain) / int64(unit.Whole)
}

// Moves reports whether a kind of device is free on which a running job would go that much faster
// with as many workers.
func (s Sizer) Moves(v plan.View, job plan.JobID) (moves bool) {
	shape, menu, run := v.Shape(job), v.Menu(job), v.Job(job).Run
	if run == plan.None || len(menu) == 0 {
		return false
	}
	n, least := v.Run(run).Workers, s.worth(v, run)
	eachKind(shape, func(kind int) { moves = moves || free(v, shape, kind, n) && rate(v, menu, shape, kind, n) > least })
	return moves
}

// eachKind calls f for the device models that a shape may use.
func eachKind(shape *plan.Shape, f func(kind int)) {
	for left := shape.Models; left != 0; left &= left - 1 {
		f(bits.TrailingZeros64(left))
	}
}

// rate is that of a menu for so many workers on as few nodes of a kind as can be; 0 where it
// has none.
func rate(v plan.View, menu plan.Menu, shape *plan.Shape, kind int, n int32) int64 {
	most := perNode(v, kind)
	if kind >= len(v.Cluster().Models) || most == 0 || !listed(menu, int32(kind), n) {
		return 0
	}
	return menu.Rate(v.Cluster(), int32(kind), n, n*shape.Devices > most)
}

// listed reports whether a menu has this size of this kind: between two sizes the rate is on a
// straight line, and there is no plan by which a job would go so fast.
func listed(menu plan.Menu, kind, n int32) bool {
	for i := range menu {
		if menu[i].Model == kind && menu[i].Workers == n {
			return true
		}
	}
	return false
}

// perNode is how many devices the first node of a kind has.
func perNode(v plan.View, kind int) int32 {
	c := v.Cluster()
	for i := range c.Nodes {
		if int(c.Nodes[i].Model) == kind {
			return c.Nodes[i].Count
		}
	}
	return 0
}

// free reports whether as many whole nodes of a kind are free as the workers fill, or one node
// has room for all.
func free(v plan.View, shape *plan.Shape, kind int, n int32) bool {
	// Room counts groups of free devices that are on one node.
	need, most := n*shape.Devices, perNode(v, kind)
	if most == 0 {
		return false
	}
	return v.Room().Groups(1<<kind, int(min(need, most))) >= int64((need+most-1)/most)
}

// Placer is the places' part. Its fields are scratch.
type Placer struct{ fewest fit.Fewest }

var _ allocate.Placer = (*Placer)(nil)

// NewPlacer returns the placer.
func NewPlacer() *Placer { return &Placer{} }

// Place tries the kinds from the fastest on, each on no more nodes than the workers fill; the
// score is the rate. Of which no rate is known goes to the fewest nodes.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	menu := v.Menu(need.Job)
	known := false
	eachKind(need.Shape, func(kind int) { known = known || rate(v, menu, need.Shape, kind, need.Workers) > 0 })
	if !known {
		return p.fewest.Candidates(v, need, k, into, func(at fit.Placement) int64 { return -int64(at.Nodes) })
	}
	// A plan holds for whole nodes: its tensor groups need a node each, and what the menu says
	// of several nodes was simulated for as few of them as can be.
	tried := uint64(0)
	for len(into) < k {
		best, fastest := -1, int64(0)
		eachKind(need.Shape, func(kind int) {
			if r := rate(v, menu, need.Shape, kind, need.Workers); tried>>kind&1 == 0 && r > fastest {
				best, fastest = kind, r
			}
		})
		if best < 0 {
			break
		}
		tried |= 1 << best
		shape := *need.Shape
		shape.Models = 1 << best
		of := need
		of.Shape = &shape
		most, n := perNode(v, best), len(into)
		into = p.fewest.Candidates(v, of, k-len(into), into, func(fit.Placement) int64 { return fastest })
		for i := n; i < len(into); i++ {
			if devices := need.Workers * shape.Devices; fit.Nodes(into[i].Slots) > int((devices+most-1)/most) {
				into = into[:i]
				break
			}
		}
	}
	return into
}
