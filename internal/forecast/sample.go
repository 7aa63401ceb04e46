package forecast

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Fate is what became of a job in one future. What did not happen within what was
// looked at is at its end: not before is all that is known.
type Fate struct {
	Start, End unit.Time
}

// Futures runs the engine forward through one future drawn from a seed, and returns
// the fates of the jobs that are asked about, always in the same order.
type Futures func(seed uint64) ([]Fate, error)

// Spread is what became of one job in a number of futures, in order.
type Spread struct {
	Starts, Ends []unit.Time
}

// Sample runs the futures of the seeds from first on and gathers the fates of each
// job.
func Sample(run Futures, futures int, first uint64) ([]Spread, error) {
	var all []Spread
	for k := range futures {
		fates, err := run(first + uint64(k))
		if err != nil {
			return nil, fmt.Errorf("future %d of %d: %w", k+1, futures, err)
		}
		if all == nil {
			all = make([]Spread, len(fates))
		}
		if len(fates) != len(all) {
			return nil, fmt.Errorf("future %d of %d tells of %d jobs: expected %d as the first", k+1, futures, len(fates), len(all))
		}
		for i, f := range fates {
			all[i].Starts = append(all[i].Starts, f.Start)
			all[i].Ends = append(all[i].Ends, f.End)
		}
	}
	for i := range all {
		slices.Sort(all[i].Starts)
		slices.Sort(all[i].Ends)
	}
	return all, nil
}

// Start is the raw range of the start.
func (s Spread) Start() Range { return rangeOf(s.Starts) }

// End is the raw range of the end.
func (s Spread) End() Range { return rangeOf(s.Ends) }

func rangeOf(sorted []unit.Time) Range {
	if len(sorted) == 0 {
		return Unknown()
	}
	return Range{quantile(sorted, LowLevel), quantile(sorted, MedianLevel), quantile(sorted, HighLevel)}
}

// quantile is the value at a level of sorted instants or spans, between two of them
// where the level falls there: of n samples the i-th stands at level (i+1)/(n+1). What is
// next to Never is never.
func quantile[T ~int64](sorted []T, level float64) T {
	at := level*float64(len(sorted)+1) - 1
	below := min(max(int(at), 0), len(sorted)-1)
	above := min(below+1, len(sorted)-1)
	part := min(max(at-float64(below), 0), 1)
	if low, high := sorted[below], sorted[above]; part > 0 && high != T(unit.Never) {
		return low + T(part*float64(high-low))
	}
	if part > 0 {
		return sorted[above]
	}
	return sorted[below]
}
