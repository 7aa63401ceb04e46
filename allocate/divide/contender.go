package divide

import "math"

// Side is one of two jobs between which the pair rule decides: the work that is left,
// and its rates on one unit, on what it has, and on one more.
type Side struct{ Left, First, Now, More float64 }

// First reports whether the first of two jobs should have the next unit. The two
// denominators differ, and have to: with a the job that ends sooner, on (na+1) units
// until it ends, and b on nb and then nb+1, their completion times sum to less than
// with b on nb+1 from now on exactly if a's gain over its present rate exceeds b's over
// its next one. The work that is left cancels out; it only says who is a.
func First(x, y Side) bool {
	a, b := NewContender(x), NewContender(y)
	return a.Before(&b)
}

func remaining(s Side) float64 {
	if s.Now == 0 {
		return math.Inf(1)
	}
	return s.Left / s.Now
}

// Contender is a side with what First compares, worked out once for many comparisons.
type Contender struct {
	Side
	remaining float64
	gain      float64 // over its present rate
	next      float64 // the same gain over its next rate
	lead      float64 // of one that has nothing: when it would end on one unit
	band      int     // of gains, see best
}

// NewContender works out what is compared of a side.
func NewContender(s Side) Contender {
	gain := (s.More - s.Now) / s.Now
	return Contender{Side: s, remaining: remaining(s), gain: gain, next: (s.More - s.Now) / s.More, lead: s.Left / s.First, band: bandOf(gain)}
}

// Before is First: of two that have something the one that ends sooner is ahead if its gain over
// its present rate exceeds the other's over its next one.
func (x *Contender) Before(y *Contender) bool {
	switch {
	case x.Now == 0 && y.Now == 0:
		return x.lead <= y.lead
	case y.remaining < x.remaining:
		return y.gain <= x.next
	}
	return x.gain > y.next
}
