// Package peers is a pipeline without fixed pipelines: each stage is a set of peers of unlike
// speed, which come and go. A trainer sends every pass of a microbatch to the peer that it
// would keep busy for the shortest time (Router), a peer of an idle stage moves to a crowded
// one (Rebalance), and the peers of a stage average their gradients by shares that suit
// their links (Shares). Run plays a swarm of them from a seed.
//
// It follows SWARM (Ryabinin et al., "SWARM Parallelism", ICML 2023; yandex-research/swarm).
// It is no taskgraph: there the resource of a task is known before the run, and here it is
// decided, and decided again after a fault, while the work is under way.
package peers

import (
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// BackwardWeight is how much longer a backward pass is than one forward, as the trainers
// count: the peer computes forward once more.
const BackwardWeight = 2.5

// smoothing is the weight of the newest pass in what is remembered of a peer's speed.
const smoothing = 0.1

// Router is the wiring of one trainer: what it has assigned to each peer of each stage, in
// time, and how fast it has seen the peer to be.
type Router struct {
	dice   *rand.Rand
	stages [][]record
}

// record is what a trainer knows of a peer.
type record struct {
	peer     int32
	assigned float64 // seconds of work
	tie      uint64  // decides between equals
	// work and took are moving averages of passes; none has been seen while took is 0.
	work, took float64
	banned     bool
}

// NewRouter knows no peers yet.
func NewRouter(seed uint64, stages int) *Router {
	return &Router{dice: rand.New(rand.NewPCG(seed, 5)), stages: make([][]record, stages)}
}

// Announce takes in that a peer serves a stage. One that is new, or was banned, begins with as
// much assigned as the peer that has least, so that it is not flooded.
func (r *Router) Announce(stage int, peer int32) {
	known := r.find(stage, peer)
	if known != nil && !known.banned {
		return
	}
	least := 0.
	if i := r.least(stage); i >= 0 {
		least = r.stages[stage][i].assigned
	}
	if known == nil {
		r.stages[stage] = append(r.stages[stage], record{peer: peer, tie: r.dice.Uint64()})
		known = &r.stages[stage][len(r.stages[stage])-1]
	}
	known.banned, known.assigned = false, max(known.assigned, least)
}

// Retain forgets the peers of a stage that do not serve it any more.
func (r *Router) Retain(stage int, serves func(peer int32) bool) {
	r.stages[stage] = slices.DeleteFunc(r.stages[stage], func(x record) bool { return !serves(x.peer) })
}

// Ban passes over a peer that failed, until it is announced anew.
func (r *Router) Ban(stage int, peer int32) {
	if x := r.find(stage, peer); x != nil {
		x.banned = true
	}
}

// Choose assigns a pass of so much work to the peer of the stage with least time assigned to
// it, or says that there is none. A peer that has not been seen at work counts as one of
// speed 1.
func (r *Router) Choose(stage int, work float64) (peer int32, there bool) {
	i := r.least(stage)
	if i < 0 {
		return 0, false
	}
	x := &r.stages[stage][i]
	perWork := 1.
	if x.took > 0 {
		perWork = x.took / x.work
	}
	x.assigned, x.tie = x.assigned+work*perWork, r.dice.Uint64()
	return x.peer, true
}

// Observe takes in how long a peer was at work on a pass, by its own clock: waiting is not in it.
func (r *Router) Observe(stage int, peer int32, work float64, took unit.Duration) {
	x := r.find(stage, peer)
	switch {
	case x == nil:
	case x.took == 0:
		x.work, x.took = work, took.Seconds()
	default:
		x.work, x.took = x.work+smoothing*(work-x.work), x.took+smoothing*(took.Seconds()-x.took)
	}
}

func (r *Router) find(stage int, peer int32) *record {
	if i := slices.IndexFunc(r.stages[stage], func(x record) bool { return x.peer == peer }); i >= 0 {
		return &r.stages[stage][i]
	}
	return nil
}

// least is the index of the peer with least time assigned; -1 where there is none. A stage has
// a few hundred peers at most, and few look cheaper than a heap with a hole for each ban.
func (r *Router) least(stage int) int {
	best := -1
	for i := range r.stages[stage] {
		x := &r.stages[stage][i]
		if x.banned {
			continue
		}
		if best >= 0 {
			b := &r.stages[stage][best]
			if x.assigned > b.assigned || x.assigned == b.assigned && x.tie >= b.tie {
				continue
			}
		}
		best = i
	}
	return best
}
