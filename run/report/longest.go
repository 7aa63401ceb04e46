package report

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// longest keeps the longest of the bars that it is told, of equal ones the first.
type longest struct {
	limit int
	kept  []toldSpan // at most twice the limit
	told  int64
	left  LeftOut
	sec   float64 // that all bars take on all their lanes
}

// LeftOut says what a Gantt chart does not show.
type LeftOut struct {
	Spans   int64
	Longest unit.Duration // of them
	Sec     float64       // that they take on all their lanes
	Part    float64       // of the time that all bars take, 0..1
}

// toldSpan is a bar and how many were told before it.
type toldSpan struct {
	Span
	before int64
}

func (s *Span) length() unit.Duration { return s.To.Sub(s.From) }

// laneSec is the time that a bar takes on all its lanes.
func (s *Span) laneSec() float64 { return s.length().Seconds() * float64(max(1, s.Lanes)) }

// add takes a bar in.
func (l *longest) add(s Span) {
	if l.limit <= 0 {
		return
	}
	l.kept = append(l.kept, toldSpan{s, l.told})
	l.told++
	l.sec += s.laneSec()
	if len(l.kept) >= 2*l.limit {
		l.trim()
	}
}

// trim leaves out the shortest bars, down to the limit.
func (l *longest) trim() {
	slices.SortFunc(l.kept, func(a, b toldSpan) int {
		return cmp.Or(cmp.Compare(b.length(), a.length()), cmp.Compare(a.before, b.before))
	})
	for i := l.limit; i < len(l.kept); i++ {
		s := &l.kept[i]
		l.left.Spans++
		l.left.Longest = max(l.left.Longest, s.length())
		l.left.Sec += s.laneSec()
	}
	l.kept = l.kept[:min(len(l.kept), l.limit)]
}

// view returns the bars that are kept as they were told, and what was left out.
func (l *longest) view() ([]Span, LeftOut) {
	l.trim()
	told := slices.SortedFunc(slices.Values(l.kept), func(a, b toldSpan) int { return cmp.Compare(a.before, b.before) })
	spans, left := make([]Span, len(told)), l.left
	for i := range told {
		spans[i] = told[i].Span
	}
	if l.sec > 0 {
		left.Part = left.Sec / l.sec
	}
	return spans, left
}
