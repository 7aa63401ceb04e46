package queue

import (
	"math"
	"slices"
)

// within reports whether a branch would hold no more than it is guaranteed with
// milli more of a model, and is guaranteed anything of it.
func (x *branch) within(model int, milli int64) bool {
	if x.guarantee == nil {
		return false
	}
	all := len(x.used) - 1
	if g := x.guarantee[model]; g > 0 {
		return x.used[model]+milli <= g
	}
	return x.guarantee[all] > 0 && x.used[all]+milli <= x.guarantee[all]
}

// withinOne is within for any of a set of models.
func (x *branch) withinOne(models uint64, milli int64) bool {
	for m := range len(x.used) - 1 {
		if models&(1<<m) != 0 && x.within(m, milli) {
			return true
		}
	}
	return false
}

// leftIn works out anew what is left of guarantees in a branch and below it.
func (l *Ledger) leftIn(b int32) {
	x := &l.branches[b]
	l.left[b] = math.MinInt64
	if x.parent >= 0 {
		l.left[b] = l.left[x.parent]
	}
	if all := len(x.used) - 1; x.guarantee != nil {
		for m := range all {
			if g := x.guarantee[m]; g > 0 {
				l.left[b] = max(l.left[b], g-x.used[m])
			} else if x.guarantee[all] > 0 {
				l.left[b] = max(l.left[b], x.guarantee[all]-x.used[all])
			}
		}
	}
	for _, below := range x.below {
		l.leftIn(below)
	}
}

// over reports whether a branch holds more of a model than it is guaranteed.
func (x *branch) over(model int) bool {
	all := len(x.used) - 1
	if x.guarantee == nil {
		return x.used[model] > 0
	}
	if g := x.guarantee[model]; g > 0 {
		return x.used[model] > g
	}
	return x.used[model] > 0 && x.used[all] > x.guarantee[all]
}

// overAny reports whether a branch holds more than it is guaranteed of any model.
func (x *branch) overAny() bool {
	for m := range len(x.used) - 1 {
		if x.over(m) {
			return true
		}
	}
	return false
}

// Guaranteed reports whether milli more of one of those models are within what a leaf,
// or a queue above it, is guaranteed.
func (l *Ledger) Guaranteed(leaf int32, models uint64, milli int64) bool {
	if milli > l.left[leaf] {
		return false
	}
	for b := leaf; l.Shared() && b >= 0; b = l.branches[b].parent {
		if l.branches[b].withinOne(models, milli) {
			return true
		}
	}
	return false
}

// OverGuarantee reports whether a leaf or a queue above it holds more than it is
// guaranteed.
func (l *Ledger) OverGuarantee(leaf int32) bool {
	for b := leaf; b >= 0; b = l.branches[b].parent {
		if l.branches[b].borrows {
			return true
		}
	}
	return false
}

// Preempts reports whether priority counts for the jobs of a leaf.
func (l *Ledger) Preempts(leaf int32) bool {
	for b := leaf; b >= 0; b = l.branches[b].parent {
		if l.branches[b].preempt {
			return true
		}
	}
	return false
}

// PriorityCounts reports whether priority counts between the jobs of two leaves.
func (l *Ledger) PriorityCounts(a, b int32) bool {
	_, _, meet := l.fork(a, b)
	return l.Preempts(meet)
}

// Stronger says by which claims a job of one leaf that takes milli may displace a run
// of another that holds some of a model: for a guarantee, or if its priority is higher.
// What a queue holds within its own guarantee no other queue takes from it. Of a run that
// holds no device nobody is guaranteed its cores: it gives way to any of the job's models.
func (l *Ledger) Stronger(leaf, other, model int32, models uint64, milli int64) (guarantee, priority bool) {
	_, theirs, meet := l.fork(leaf, other)
	if leaf == other {
		return false, l.Preempts(meet)
	}
	if model != none {
		if models = 1 << model; !l.branches[theirs].over(int(model)) {
			return false, false
		}
	}
	for b := leaf; b != meet && !guarantee; b = l.branches[b].parent {
		guarantee = l.branches[b].withinOne(models, milli)
	}
	return guarantee, l.Preempts(meet)
}

// fork returns the branch where the paths of two leaves meet, and the last of each
// before it; of one leaf with itself there are none.
func (l *Ledger) fork(a, b int32) (beforeA, beforeB, meet int32) {
	beforeA, beforeB = none, none
	for ; !l.above(a, b); a = l.branches[a].parent {
		beforeA = a
	}
	for ; b != a; b = l.branches[b].parent {
		beforeB = b
	}
	return beforeA, beforeB, a
}

// Counts reports whether the jobs of one queue count in another: whether it is that
// queue or below it.
func (l *Ledger) Counts(in, queue int32) bool { return l.above(in, queue) }

// above reports whether a branch is a leaf or an ancestor of it.
func (l *Ledger) above(b, leaf int32) bool {
	for ; leaf >= 0; leaf = l.branches[leaf].parent {
		if leaf == b {
			return true
		}
	}
	return false
}

// BarKind is the kind of a claim that stands in a job's way.
type BarKind uint8

// The kinds.
const (
	NoBar     BarKind = iota
	AtLimit           // its queue, or one above it, may hold no more
	AtBorrow          // it may borrow no more above its guarantee
	AtUser            // its user may hold no more in it
	KeptByOne         // another queue keeps what is idle for itself
)

// Bar is a claim that stands in a job's way: of which queue, and what it may hold and
// does hold; of KeptByOne, what the other queue keeps and what of that it holds itself.
type Bar struct {
	Kind       BarKind
	Queue      int32
	Model      int32 // behind the last model: all of them together
	Most, Held int64
	Borrow     int64 // of AtBorrow: the part of Most above the guarantee
}

// Left is what may be held more; of KeptByOne what is kept idle.
func (b *Bar) Left() int64 { return max(0, b.Most-b.Held) }

// Free says how many thousandths of devices of a set of models are free.
type Free interface{ FreeMilli(models uint64) int64 }

// Allow returns the device models, of a set, of which a job of a leaf may take milli,
// and where there is none, why: the tightest claim that stands in the way of the last.
func (l *Ledger) Allow(leaf, user int32, models uint64, milli int64, free Free) (uint64, Bar) {
	var why Bar
	if milli == 0 || !l.Bounds() {
		return models, why
	}
	for b := leaf; b >= 0; b = l.branches[b].parent {
		x := &l.branches[b]
		models = x.cut(models, bound{AtLimit, x.limit, nil, x.used}, milli, &why)
		models = x.cut(models, bound{AtBorrow, x.borrow, x.guarantee, x.used}, milli, &why)
		if x.user != nil {
			models = x.cut(models, bound{AtUser, x.user, nil, l.ofUser.held(b, user, len(x.used))}, milli, &why)
		}
		if models == 0 {
			return 0, why
		}
	}
	all := len(l.capacity) - 1
	for _, b := range l.keepers {
		if l.above(b, leaf) {
			continue
		}
		x := &l.branches[b]
		for m := range all {
			at := m
			if x.keep[m] == 0 {
				at = all
			}
			kept := Bar{Kind: KeptByOne, Queue: x.queue, Model: int32(at), Most: x.keep[at], Held: x.used[at]}
			if models&(1<<m) != 0 && kept.Left() > 0 && free.FreeMilli(1<<m)-kept.Left() < milli {
				models &^= 1 << m
				why = kept
			}
		}
	}
	return models, why
}

// Ever is Allow when nobody holds anything. What is not allowed then never is: a claim leaves no more when more is held.
func (l *Ledger) Ever(leaf int32, models uint64, milli int64) (uint64, Bar) {
	if milli == 0 || !l.Bounds() {
		return models, Bar{}
	}
	if l.empty == nil {
		l.empty = l.emptied()
	}
	return l.empty.Allow(leaf, none, models, milli, idle(l.capacity))
}

// emptied is the ledger when nobody holds anything, but for what who keeps devices of any model may hold of others.
func (l *Ledger) emptied() *Ledger {
	e := *l
	e.ofUser, e.branches = nil, slices.Clone(l.branches)
	for i := range e.branches {
		e.branches[i].used = make([]int64, len(l.capacity))
	}
	all := len(l.capacity) - 1
	for _, b := range e.keepers {
		keep := slices.Clone(e.branches[b].keep)
		for m := range all {
			if keep[m] == 0 {
				keep[m] = max(0, keep[all]-(l.capacity[all]-l.capacity[m]))
			}
		}
		keep[all] = 0
		e.branches[b].keep = keep
	}
	return &e
}

// idle is what is free where nobody holds anything: as much as there is of each model.
type idle []int64

// FreeMilli adds up those of a set of models.
func (f idle) FreeMilli(models uint64) (milli int64) {
	for m := range len(f) - 1 {
		if models&(1<<m) != 0 {
			milli += f[m]
		}
	}
	return milli
}

// bound is what may be held of each model: so much above a base, which is nil for 0.
type bound struct {
	kind              BarKind
	above, base, used []int64
}

// cut takes those models out of a set of which milli more would pass a bound.
func (x *branch) cut(models uint64, b bound, milli int64, why *Bar) uint64 {
	if b.above == nil {
		return models
	}
	all := len(x.used) - 1
	most := func(at int) int64 {
		if b.above[at] < 0 {
			return math.MaxInt64
		}
		if b.base != nil {
			return b.above[at] + b.base[at]
		}
		return b.above[at]
	}
	for m := range all {
		if models&(1<<m) == 0 {
			continue
		}
		at := m
		if most(all) < math.MaxInt64 && (most(m) == math.MaxInt64 || most(all)-b.used[all] < most(m)-b.used[m]) {
			at = all
		}
		if most(at) < math.MaxInt64 && most(at)-b.used[at] < milli {
			models &^= 1 << m
			*why = Bar{b.kind, x.queue, int32(at), most(at), b.used[at], b.above[at]}
		}
	}
	return models
}
