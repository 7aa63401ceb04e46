// Package pipelinetest holds orders against what is known of them in closed form, in tests and
// in claims. That is of stages that all take equally long, and of links that take no time.
package pipelinetest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Case is a pipeline of equal stages, each of which keeps one KiB of a microbatch.
type Case struct {
	Ranks, Microbatches    int
	Forward, Input, Weight unit.Duration // the passes of a stage
}

// All is how long all passes of a microbatch through a stage take.
func (c Case) All() unit.Duration { return c.Forward + c.Input + c.Weight }

// Time times an order of the case. The order of a closed form takes every case that is drawn.
func (c Case) Time(o pipeline.Ordering) pipeline.Timing { return c.Over(o, 0) }

// Over is the case with links of so long between the ranks, of which the order is told.
func (c Case) Over(o pipeline.Ordering, link unit.Duration) pipeline.Timing {
	s, why := o.Schedule(c.Ranks, c.Microbatches, nil)
	costs := pipeline.Like(s.Stages())
	costs.Latency = link
	for i := range costs.Stages {
		costs.Stages[i].Forward, costs.Stages[i].Input, costs.Stages[i].Weight = c.Forward, c.Input, c.Weight
	}
	if link > 0 && why == "" {
		s, why = o.Schedule(c.Ranks, c.Microbatches, &costs)
	}
	t := pipeline.Timing{}
	if why == "" {
		t, why = s.Time(costs)
	}
	if why != "" {
		panic(fmt.Sprintf("%T of %+v: %s", o, c, why))
	}
	return t
}

// Most is the highest peak of any rank, in KiB.
func Most(t pipeline.Timing) int64 {
	return slices.MaxFunc(t.Peak, func(a, b pipeline.Memory) int { return int(a.Total() - b.Total()) }).Total()
}

// Range keeps the least and the most that a figure was, under its name with "_least" and
// "_most" behind it.
type Range map[string]float64

// Note takes in a figure: what was found, as a part of what was expected.
func (r Range) Note(name string, found, expected float64) {
	x := found / expected
	least, known := r[name+"_least"]
	if !known || x < least {
		r[name+"_least"] = x
	}
	if !known || x > r[name+"_most"] {
		r[name+"_most"] = x
	}
}

// Ranks notes of every rank how long it is "idle", as a part of all passes of all ranks but
// one, and how much it "kept".
func (r Range) Ranks(c Case, o pipeline.Ordering, kept func(rank int) int) {
	t := c.Time(o)
	for rank, peak := range t.Peak {
		r.Note("idle", float64(t.Idle(rank)), float64(c.Ranks-1)*float64(c.All()))
		r.Note("kept", float64(peak.Total()), float64(kept(rank)))
	}
}

// Draw has so many cases looked at, drawn by seed: 2 to 8 ranks, and 2 to 5 times as many
// microbatches.
func Draw(seed uint64, cases int, look func(Case)) {
	r := rand.New(rand.NewPCG(seed, 1))
	pass := func() unit.Duration { return unit.Duration(1 + r.IntN(50)) }
	for range cases {
		ranks := 2 + r.IntN(7)
		look(Case{ranks, ranks * (2 + r.IntN(4)), pass(), pass(), pass()})
	}
}
