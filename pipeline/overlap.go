package pipeline

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Transfer is something that one rank sends to another, and when it was under way.
type Transfer struct {
	Ranks [2]int32 // from, to
	Span
}

// Overlap is how long things went on at once on a rank: two passes, a pass and a transfer from
// or to the rank at least, two such transfers at least.
type Overlap struct{ ComputeCompute, ComputeTransfer, TransferTransfer unit.Duration }

// Plus is the sum of both.
func (o Overlap) Plus(other Overlap) Overlap {
	return Overlap{o.ComputeCompute + other.ComputeCompute, o.ComputeTransfer + other.ComputeTransfer, o.TransferTransfer + other.TransferTransfer}
}

// Over is one of so many equal parts.
func (o Overlap) Over(parts unit.Duration) Overlap {
	return Overlap{o.ComputeCompute / parts, o.ComputeTransfer / parts, o.TransferTransfer / parts}
}

// Overlaps are how long each rank had two things going on at once. They are counted when somebody
// asks, not by Time: a search times thousands of schedules and asks of a few.
func (t *Timing) Overlaps() []Overlap {
	sent := make([][]Span, len(t.Spans))
	for _, x := range t.Transfers {
		for _, r := range x.Ranks {
			sent[r] = append(sent[r], x.Span)
		}
	}
	all := make([]Overlap, len(t.Spans))
	for r, passes := range t.Spans {
		for i := 1; i < len(passes); i++ {
			if passes[i] == passes[i-1] { // they are paired
				all[r].ComputeCompute += passes[i].End.Sub(passes[i].Start)
			}
		}
		var sending []Span
		sending, all[r].TransferTransfer = during(sent[r])
		all[r].ComputeTransfer = common(slices.Compact(slices.Clone(passes)), sending)
	}
	return all
}

// during is when one of some spans at least was open, and for how long two at least were. Starts and
// ends are sorted apart, since it does not matter whose they are.
func during(spans []Span) (one []Span, two unit.Duration) {
	starts, ends := make([]unit.Time, len(spans)), make([]unit.Time, len(spans))
	for i, s := range spans {
		starts[i], ends[i] = s.Start, s.End
	}
	slices.Sort(starts)
	slices.Sort(ends)
	open, last := 0, unit.Time(0)
	for len(ends) > 0 {
		// A start goes before an end at the same instant, so that spans which touch are one.
		at, begins := ends[0], len(starts) > 0 && starts[0] <= ends[0]
		if begins {
			at = starts[0]
		}
		if open >= 2 {
			two += at.Sub(last)
		}
		last = at
		if begins {
			if open == 0 {
				one = append(one, Span{Start: at})
			}
			open, starts = open+1, starts[1:]
			continue
		}
		if open, ends = open-1, ends[1:]; open == 0 {
			one[len(one)-1].End = at
		}
	}
	return one, two
}

// common is for how long spans of both lists were open. Within a list they are in order, and none
// begins before the one before has ended.
func common(a, b []Span) (both unit.Duration) {
	for len(a) > 0 && len(b) > 0 {
		both += max(0, min(a[0].End, b[0].End).Sub(max(a[0].Start, b[0].Start)))
		if a[0].End < b[0].End {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return both
}
