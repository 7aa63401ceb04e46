// Package swarm orders microbatches as SWARM does (Ryabinin et al., "SWARM Parallelism", ICML 2023;
// yandex-research/swarm): a stage stands on several ranks, its peers, and each microbatch goes at
// every stage to the peer to which least work has been assigned, in time. Fast peers get
// more of them, and a slow one holds up nobody. The wiring is mechanism/peers, which also plays peers
// that come and go: a plan is one iteration on the ranks that are there.
//
// Left out of the plan: that the backward pass of a microbatch may go another way than its
// forward pass, and the averaging of gradients inside a stage, which no schedule here has.
package swarm

import (
	"fmt"

	"github.com/musterdl/muster/mechanism/peers"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "swarm", System: "SWARM", Part: pipeline.SequencePart, Status: "after",
	Source: "SWARM (Ryabinin et al., ICML 2023), yandex-research/swarm; when a peer moves is recalled",
	Idea:   "no fixed pipelines: each microbatch goes at every stage to the peer that it keeps busy for the shortest time",
	Acts:   []strategy.Act{strategy.Pipeline, strategy.Copies},
	Goal:   "throughput", Needs: "a layer profile, at least as many ranks as peers of a stage", Live: pipeline.LiveCopies,
}

// Config says how many peers there are.
type Config struct {
	Peers int    `yaml:"peers" least:"1"` // of a stage
	Seed  uint64 `yaml:"seed"`            // decides between equal peers
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Peers: 2} }

// Ordering is SWARM.
type Ordering struct{ config Config }

var _ pipeline.Ordering = Ordering{}

// New returns the order; the configuration must be valid.
func New(c Config) Ordering { return Ordering{c} }

// wired is for how many microbatches of each peer ways are chosen. Further ones take the same
// ways again, so that a long iteration is no longer to write down.
const wired = 64

// Tries is in the time of how many plain orders Schedule writes its own: peers wait for many routes.
func (Ordering) Tries(int, int) int { return 8 }

// Schedule wires the microbatches, by the speeds of the ranks once they are known. Each peer keeps
// up to twice as many as 1F1B does: with as many, a fast one waits for what went over a slow one.
func (o Ordering) Schedule(ranks, microbatches int, c *pipeline.Costs) (pipeline.Schedule, pipeline.Why) {
	stages := ranks / o.config.Peers
	if stages < 1 {
		return pipeline.Schedule{}, pipeline.Why(fmt.Sprintf("%d ranks for stages of %d peers each: expected at least as many ranks", ranks, o.config.Peers))
	}
	if c == nil {
		like := pipeline.Like(stages)
		c = &like
	}
	s := pipeline.NewSchedule(ranks, microbatches, o.wire(ranks, stages, min(microbatches, wired*o.config.Peers), c)...)
	held := make([][]pipeline.Chunk, ranks)
	for r := range held {
		held[r] = s.Chunks(r)
	}
	return s, s.List(c, false, func(r *pipeline.Chooser, ready []pipeline.Choice) int {
		keeps, stage := int32(0), int32(0)
		for _, chunk := range held[r.Rank] {
			keeps, stage = keeps+r.Keeps(chunk), chunk.Stage
		}
		return pipeline.Urgent(ready, func(pipeline.Chunk) bool { return keeps < 2*(int32(stages)-stage) })
	})
}

// wire chooses the ways of so many microbatches. Neighbouring ranks are peers, since what they
// average is more than what goes on to the next stage. Where the ranks do not divide evenly,
// some stages have a peer more.
func (o Ordering) wire(ranks, stages, ways int, c *pipeline.Costs) (routes [][]int32) {
	router := peers.NewRouter(o.config.Seed, stages)
	for rank := range int32(ranks) {
		stage := int(rank) * stages / ranks
		router.Announce(stage, rank)
		router.Observe(stage, rank, 1, c.Compute(unit.Second, int(rank)))
	}
	for range ways {
		route := make([]int32, stages)
		for stage := range route {
			route[stage], _ = router.Choose(stage, 1+peers.BackwardWeight)
		}
		routes = append(routes, route)
	}
	return routes
}
