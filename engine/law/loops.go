package law

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Limits say how much Loops remembers.
type Limits struct {
	Window unit.Duration // displacements longer ago do not count
	Most   int           // pairs of jobs; the longest ago are forgotten first
}

// DefaultLimits are those used where none are given. A pair takes about 10 bytes.
func DefaultLimits() Limits { return Limits{Window: 6 * unit.Hour, Most: 256} }

// Loops remembers which job displaced which, and says whether another displacement
// would go in a circle. A displaced B and B displaced A is a loop of two, and may
// have its reason (ranks age); when A is to displace B once more the second round
// begins, and Repeats says so. If no displacement is made that repeats, no jobs
// displace each other without end within a window: those that did would in time
// repeat every displacement of some circle.
type Loops struct {
	limits Limits
	pairs  []pair // by preemptor and victim
}

// pair is that one job displaced another, and when last.
type pair struct {
	preemptor, victim plan.JobID
	at                unit.Time
}

var _ strategy.Remembering = (*Loops)(nil)

// NewLoops returns an empty memory; the limits must be valid.
func NewLoops(limits Limits) *Loops { return &Loops{limits: limits} }

// Note remembers a displacement. Time must not go back from one call to the next.
func (l *Loops) Note(preemptor, victim plan.JobID, at unit.Time) {
	l.pairs = slices.DeleteFunc(l.pairs, func(p pair) bool { return !l.counts(p, at) })
	i, found := l.find(preemptor, victim)
	if found {
		l.pairs[i].at = at
		return
	}
	l.pairs = slices.Insert(l.pairs, i, pair{preemptor, victim, at})
	if len(l.pairs) > l.limits.Most {
		oldest := 0
		for i := range l.pairs {
			if l.pairs[i].at < l.pairs[oldest].at {
				oldest = i
			}
		}
		l.pairs = slices.Delete(l.pairs, oldest, oldest+1)
	}
}

// Forget drops a job that has ended: it takes part in no loop any more.
func (l *Loops) Forget(job plan.JobID) {
	l.pairs = slices.DeleteFunc(l.pairs, func(p pair) bool { return p.preemptor == job || p.victim == job })
}

// Forgets is when the next displacement counts no more, of those that do; Never where there is none.
func (l *Loops) Forgets(now unit.Time) unit.Time {
	at := unit.Never
	for _, p := range l.pairs {
		if l.counts(p, now) {
			at = min(at, p.at.Add(l.limits.Window))
		}
	}
	return at
}

// Closes reports whether a displacement would close a circle: the victim displaced
// the preemptor within the window, itself or through others.
func (l *Loops) Closes(preemptor, victim plan.JobID, now unit.Time) bool {
	reach := append(make([]plan.JobID, 0, 8), victim)
	for i := 0; i < len(reach); i++ {
		from, _ := l.find(reach[i], -1)
		for _, p := range l.pairs[from:] {
			if p.preemptor != reach[i] {
				break
			}
			if !l.counts(p, now) || slices.Contains(reach, p.victim) {
				continue
			}
			if p.victim == preemptor {
				return true
			}
			reach = append(reach, p.victim)
		}
	}
	return false
}

// Repeats reports whether a displacement would begin the second round of a loop: it
// was made before, within the window, and closes a circle. Where it was not made
// before, which is nearly always, the answer costs one search of a sorted list.
func (l *Loops) Repeats(preemptor, victim plan.JobID, now unit.Time) bool {
	i, found := l.find(preemptor, victim)
	return found && l.counts(l.pairs[i], now) && l.Closes(preemptor, victim, now)
}

func (l *Loops) counts(p pair, now unit.Time) bool { return now.Sub(p.at) < l.limits.Window }

func (l *Loops) find(preemptor, victim plan.JobID) (int, bool) {
	return slices.BinarySearchFunc(l.pairs, pair{preemptor: preemptor, victim: victim}, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.preemptor, b.preemptor), cmp.Compare(a.victim, b.victim))
	})
}

// Remember encodes the pairs: their number, then each with its jobs and its time as
// the difference to the one before.
func (l *Loops) Remember() []byte {
	if len(l.pairs) == 0 {
		return nil
	}
	b := figures.PutCount(make([]byte, 0, 10*len(l.pairs)+4), len(l.pairs))
	last := pair{}
	for _, p := range l.pairs {
		b = figures.Put(b, int64(p.preemptor-last.preemptor), int64(p.victim), int64(p.at-last.at))
		last = p
	}
	return b
}

// Recall reads what Remember wrote.
func (l *Loops) Recall(memory []byte) error {
	if len(memory) == 0 {
		l.pairs = nil
		return nil
	}
	r := figures.Read(memory)
	var pairs []pair
	last := pair{}
	for range r.Counted {
		p := pair{last.preemptor + plan.JobID(r.Next()), plan.JobID(r.Next()), 0}
		p.at = last.at + unit.Time(r.Next())
		if len(pairs) > 0 && cmp.Or(cmp.Compare(last.preemptor, p.preemptor), cmp.Compare(last.victim, p.victim)) >= 0 {
			return fmt.Errorf("pair %d in the memory of displacements is out of order", len(pairs)+1)
		}
		pairs, last = append(pairs, p), p
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of displacements: %w", err)
	}
	l.pairs = pairs
	return nil
}
