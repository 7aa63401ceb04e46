package parallel

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// path names the routes of a sequence.
type path struct {
	sequence            string
	ranks, microbatches int
}

// routes are those of a schedule, and of how many iterations it is.
type routes struct {
	all        [][]int32
	iterations unit.Duration
	wave       int32 // of the schedule
	// fixed is the schedule, where it goes by no costs.
	fixed *pipeline.Schedule
	// plain is one iteration that meets the stages in one order, one pass of a whole microbatch at a time;
	// split is that some backward passes are in two halves.
	plain, split bool
}

func (r routes) stages() int { return len(r.all[0]) }

// routes are those of a sequence, or why it has none.
func (x *Simulator) routes(q Sequence, ranks, microbatches int) (routes, Why) {
	key := path{q.Name, ranks, microbatches}
	if r, seen := x.paths[key]; seen {
		return r, ""
	}
	s, why := q.Order.Schedule(ranks, microbatches, nil)
	if why != "" {
		return routes{}, why
	}
	r := routes{all: s.Routes, iterations: unit.Duration(int(s.Microbatches) / microbatches), wave: s.Wave}
	if f, can := strategy.Can[pipeline.Fixed](q.Order); can && f.Fixed() {
		r.fixed = &s
	}
	r.plain = len(s.Routes) == 1 && r.iterations == 1 && r.wave == 0
	for _, order := range s.Orders {
		for _, op := range order {
			r.plain = r.plain && op.Kind != pipeline.FirstHalf && !op.Paired
			r.split = r.split || op.Kind == pipeline.Weight
		}
	}
	x.paths[key] = r
	return r, ""
}

// least is what a step takes at least on so many microbatches: no rank works before the first has come to
// it, and after its last pass backward that still has to go back to the first stage, unless it is of
// weights alone. What is computed again is left out. It is nothing where the schedule is not plain.
func (r routes) least(stages []pipeline.Stage, ranks, microbatches int) (least unit.Duration) {
	if !r.plain {
		return 0
	}
	work, around := make([]unit.Duration, ranks), make([]unit.Duration, ranks)
	there, back := unit.Duration(0), unit.Duration(0)
	for s, rank := range r.all[0] {
		stage := &stages[s]
		if work[rank] == 0 {
			around[rank] = there
			if !r.split {
				around[rank] += back
			}
		}
		work[rank] += stage.Forward + stage.Input + stage.Weight
		there, back = there+stage.Forward, back+stage.Input+stage.Weight
	}
	for rank := range work {
		least = max(least, around[rank]+work[rank]*unit.Duration(microbatches))
	}
	return least
}

// copied says whether a sequence that takes new weights while microbatches are under way would have
// copies, which would exchange gradients each time.
func (r routes) copied(s *Shape) Why {
	if r.wave > 0 && s.Copies > 1 {
		return whyf("%s takes new weights while microbatches are under way: expected one pipeline, not %d copies", s.Sequence.Name, s.Copies)
	}
	return ""
}
