package queue

import (
	"cmp"
	"math/bits"
)

// Ledger is what the queues of a tree hold, with all that follows from it: what each
// may hold more, what it may take back, and which is served first. It is the one home
// of these rules: who decides, who explains and who shows ask the same Ledger.
//
// Amounts are vectors of thousandths of devices by device model, with all models
// together behind them. A branch is a queue, or the jobs that are in a queue itself
// where others are below it; jobs are counted in leaves, which are the branches with
// none below them.
type Ledger struct {
	branches []branch
	fileIn   []int32 // by queue: the branch that its own jobs are counted in
	capacity []int64
	lent     []int64 // by model: what leaves hold of which anything might be taken back
	keepers  []int32 // branches that do not lend all they are guaranteed
	left     []int64 // by branch: the most of a model that is left of what it, or a queue above it, is guaranteed
	ofUser   users
	turn     int64   // times that it changed
	empty    *Ledger // what it would be if nobody held anything; made when it is asked for
	tree     *Tree
	moved    []int32 // the leaves of which that is so
}

type branch struct {
	parent, queue    int32
	below            []int32 // branches; none where jobs are counted
	priority         int64
	guarantee, limit []int64 // limit: -1 is none
	keep, borrow     []int64
	user             []int64
	preempt          bool

	used     []int64
	waiting  []int64 // of a leaf: what jobs that wait ask for
	moved    bool    // of a leaf: what it holds, waits for or used is another than when anybody aimed
	past     int64   // of a leaf: thousandths of a device times seconds
	deserves []int64 // by model
	owed     []int64 // the part of it that it is guaranteed
	borrows  bool    // holds more than it is guaranteed of some model
	lends    bool    // of a leaf: what it holds counts as lent
}

// none stands for no branch.
const none = -1

// NewLedger opens the ledger of a tree on a cluster with so many thousandths of
// devices of each model. Nothing is held yet.
func NewLedger(t *Tree, models []string, capacity []int64) Ledger {
	l := Ledger{ofUser: users{}, tree: t,
		capacity: make([]int64, len(models)+1), lent: make([]int64, len(models))}
	for m, milli := range capacity {
		l.capacity[m] = milli
		l.capacity[len(models)] += milli
	}
	list := t.Queues
	if len(list) == 0 {
		list = []Queue{Root()}
	}
	for i := range list {
		q := &list[i]
		l.branches = append(l.branches, branch{parent: q.Parent, queue: int32(i), priority: int64(q.Priority),
			guarantee: Vector(q.Guarantee, models, 0), limit: Vector(q.Limit, models, -1), keep: Vector(q.Keep, models, 0),
			borrow: Vector(q.Borrow, models, -1), user: Vector(q.UserLimit, models, -1), preempt: q.Preempt, used: make([]int64, len(models)+1), waiting: make([]int64, len(models))})
		if q.Parent >= 0 {
			l.branches[q.Parent].below = append(l.branches[q.Parent].below, int32(i))
		}
		if len(q.Keep) > 0 {
			l.keepers = append(l.keepers, int32(i))
		}
	}
	l.fileIn = make([]int32, len(list))
	for i := range list {
		l.fileIn[i] = int32(i)
		if len(l.branches[i].below) > 0 { // its own jobs stand beside the queues below it
			l.fileIn[i] = int32(len(l.branches))
			l.branches[i].below = append(l.branches[i].below, l.fileIn[i])
			l.branches = append(l.branches, branch{parent: int32(i), queue: int32(i), used: make([]int64, len(models)+1), waiting: make([]int64, len(models))})
		}
	}
	l.left = make([]int64, len(l.branches))
	l.leftIn(0)
	return l
}

// Vector writes amounts out by model, with all models together behind them; what is
// not said is missing. Where nothing is said there is none.
func Vector(amounts []Amount, models []string, missing int64) []int64 {
	if len(amounts) == 0 {
		return nil
	}
	x := make([]int64, len(models)+1)
	for i := range x {
		x[i] = missing
	}
	for _, a := range amounts {
		if a.Model == "" {
			x[len(models)] = a.Milli
		}
		for m, name := range models {
			if name == a.Model && name != "" {
				x[m] = a.Milli
			}
		}
	}
	return x
}

// Shared reports whether there is more than one queue.
func (l *Ledger) Shared() bool { return len(l.branches) > 1 }

// Bounds reports whether anything bounds who may hold what: there are several queues, or
// the one has a limit.
func (l *Ledger) Bounds() bool {
	root := &l.branches[0]
	return l.Shared() || root.limit != nil || root.user != nil || root.borrow != nil
}

// Branches is how many branches there are; the first is the root.
func (l *Ledger) Branches() int { return len(l.branches) }

// Leaf is the branch that the jobs of a queue are counted in.
func (l *Ledger) Leaf(queue int32) int32 { return l.fileIn[queue] }

// Parent is the branch above one; the root has none, which is -1.
func (l *Ledger) Parent(b int32) int32 { return l.branches[b].parent }

// Queue is the queue that a branch is, or that its jobs are in.
func (l *Ledger) Queue(b int32) int32 { return l.branches[b].queue }

// Turn counts the times that what anybody holds changed.
func (l *Ledger) Turn() int64 { return l.turn }

// Below are the branches below one; a leaf has none.
func (l *Ledger) Below(b int32) []int32 { return l.branches[b].below }

// Lent is, by model, what leaves hold of which anything might be taken back.
func (l *Ledger) Lent() []int64 { return l.lent }

// Lends reports whether anything of what a leaf holds might be taken back.
func (l *Ledger) Lends(leaf int32) bool { return l.branches[leaf].lends }

// MostGuaranteed is the most, of any model, that jobs of a leaf could take beside what is held and be within what it, or a
// queue above it, is guaranteed.
func (l *Ledger) MostGuaranteed(leaf int32) int64 { return l.left[leaf] }

// LimitsUsers reports whether a limit on users holds for the jobs of a leaf.
func (l *Ledger) LimitsUsers(leaf int32) bool {
	for b := leaf; b >= 0; b = l.branches[b].parent {
		if l.branches[b].user != nil {
			return true
		}
	}
	return false
}

// Use adds to what a leaf, and one user of it, hold of a model; milli is negative when
// it is given back.
func (l *Ledger) Use(leaf, user, model int32, milli int64) {
	l.turn++
	l.move(leaf)
	l.lend(leaf, -1)
	flipped, guaranteed := int32(none), int32(none) // the topmost queue that came to its guarantee, or left it, and that has one
	for b := leaf; b >= 0; b = l.branches[b].parent {
		x := &l.branches[b]
		x.used[model] += milli
		x.used[len(x.used)-1] += milli
		if x.user != nil {
			l.ofUser.add(b, user, model, milli, len(l.capacity))
		}
		if !l.Shared() {
			continue
		}
		if over := x.overAny(); over != x.borrows {
			x.borrows, flipped = over, b
		}
		if x.guarantee != nil {
			guaranteed = b
		}
	}
	if guaranteed >= 0 {
		l.leftIn(guaranteed)
	}
	l.lend(leaf, 1)
	if flipped >= 0 && len(l.branches[flipped].below) > 0 {
		l.relend()
	}
}

// users are what each user holds, by model, below a branch that limits users: by branch and user.
type users map[[2]int32][]int64

// held is what one of them holds, of so many entries.
func (u users) held(b, user int32, entries int) []int64 {
	if x := u[[2]int32{b, user}]; x != nil {
		return x
	}
	return make([]int64, entries)
}

// add adds to what one of them holds of a model.
func (u users) add(b, user, model int32, milli int64, entries int) {
	x := u.held(b, user, entries)
	x[model] += milli
	x[entries-1] += milli
	u[[2]int32{b, user}] = x
}

// lend adds what a leaf holds to what might be taken back from anybody, if it might,
// or takes it out.
func (l *Ledger) lend(leaf int32, sign int64) {
	x := &l.branches[leaf]
	if sign > 0 {
		x.lends = false
		for b := leaf; b >= 0 && !x.lends; b = l.branches[b].parent {
			x.lends = l.branches[b].borrows || l.branches[b].preempt
		}
	}
	if x.lends {
		for m := range l.lent {
			l.lent[m] += sign * x.used[m]
		}
	}
}

// relend adds up anew what might be taken back.
func (l *Ledger) relend() {
	clear(l.lent)
	for b := range l.branches {
		if len(l.branches[b].below) == 0 {
			l.lend(int32(b), 1)
		}
	}
}

// Wait adds to what jobs that wait in a leaf ask for of a set of models; milli is negative
// when they wait no more. What may be of several models is laid on them in proportion to
// what there is.
func (l *Ledger) Wait(leaf int32, models uint64, milli int64) {
	l.move(leaf)
	var all, upTo, laid int64
	for m := range l.capacity[:len(l.capacity)-1] {
		if models&(1<<m) != 0 {
			all += l.capacity[m]
		}
	}
	for m := range l.capacity[:len(l.capacity)-1] {
		if models&(1<<m) != 0 && all > 0 {
			upTo += l.capacity[m]
			high, low := bits.Mul64(uint64(max(milli, -milli)), uint64(upTo))
			part, _ := bits.Div64(high, low, uint64(all))
			if l.branches[leaf].waiting[m] += int64(part) - laid; milli < 0 {
				l.branches[leaf].waiting[m] -= 2 * (int64(part) - laid)
			}
			laid = int64(part)
		}
	}
}

// Wanted is what a leaf holds and waits for of a model.
func (l *Ledger) Wanted(leaf, model int32) int64 {
	return l.branches[leaf].used[model] + l.branches[leaf].waiting[model]
}

// Remember replaces what was used in the past and is not forgotten, by queue and
// without what is below it, in thousandths of a device times seconds.
func (l *Ledger) Remember(past []int64) {
	for queue, milli := range past {
		if leaf := l.fileIn[queue]; l.branches[leaf].past != milli {
			l.branches[leaf].past = milli
			l.move(leaf)
		}
	}
}

// move notes that what a leaf deserves may be another.
func (l *Ledger) move(leaf int32) {
	if x := &l.branches[leaf]; !x.moved {
		x.moved = true
		l.moved = append(l.moved, leaf)
	}
}

// Moved takes the leaves that hold, wait for or used something else since it was asked last.
func (l *Ledger) Moved() []int32 {
	moved := l.moved
	for _, leaf := range moved {
		l.branches[leaf].moved = false
	}
	l.moved = l.moved[:0]
	return moved
}

// Aimed reports whether it is known what its branches deserve.
func (l *Ledger) Aimed() bool { return l.branches[0].deserves != nil }

// Average is what a leaf used in the past, as Tree.Average says it.
func (l *Ledger) Average(leaf int32) int64 { return l.tree.Average(l.branches[leaf].past) }

// Aim says what a branch deserves of each model, and the part of it that it is guaranteed
// (package share).
func (l *Ledger) Aim(b int32, deserves, owed []int64) {
	l.branches[b].deserves, l.branches[b].owed = deserves, owed
}

// Short is how much less than it deserves a branch holds of a set of models; it is negative
// where it holds more.
func (l *Ledger) Short(b int32, models uint64) (milli int64) {
	x := &l.branches[b]
	for m, deserved := range x.deserves {
		if models&(1<<m) != 0 {
			milli += deserved - x.used[m]
		}
	}
	return milli
}

// unowed is how much less than it is owed as its guarantee a branch holds of a set of models.
func (x *branch) unowed(models uint64) (milli int64) {
	for m, owed := range x.owed {
		if models&(1<<m) != 0 {
			milli += owed - x.used[m]
		}
	}
	return milli
}

// device is the least that a queue is short of to go before those that have what they deserve,
// which nobody could be given exactly where it is a part of a device.
const device = 1000

// Before reports whether a branch is served before a sibling, by what each deserves and holds
// of the models that its next job may have: those who are short of a device that they are
// guaranteed, then those who are short of any, by priority and then who holds the smallest part
// of what it deserves; at last who is short of most. So what is held comes to what is deserved,
// to one device.
func (l *Ledger) Before(a, b int32, modelsA, modelsB uint64) (before, tie bool) {
	x, y := &l.branches[a], &l.branches[b]
	shortX, shortY := l.Short(a, modelsA), l.Short(b, modelsB)
	owedX, owedY := min(shortX, x.unowed(modelsA)) >= device, min(shortY, y.unowed(modelsB)) >= device
	lacksX, lacksY := shortX >= device, shortY >= device
	switch {
	case owedX != owedY:
		return owedX, false
	case lacksX != lacksY:
		return lacksX, false
	case !lacksX && shortX != shortY:
		return shortX > shortY, false
	case x.priority != y.priority:
		return x.priority > y.priority, false
	case !lacksX:
		return false, true
	}
	// Who holds H of what it deserves, D, is short of D - H: H/D is smaller where D/short is.
	order := CompareProducts(l.Deserved(a, modelsA), shortY, l.Deserved(b, modelsB), shortX)
	return order < 0, order == 0
}

// Deserved is what a branch deserves of a set of models.
func (l *Ledger) Deserved(b int32, models uint64) (milli int64) {
	for m, deserved := range l.branches[b].deserves {
		if models&(1<<m) != 0 {
			milli += deserved
		}
	}
	return milli
}

// CompareProducts compares a*b with c*d, none of them negative.
func CompareProducts(a, b, c, d int64) int {
	highAB, lowAB := bits.Mul64(uint64(a), uint64(b))
	highCD, lowCD := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(highAB, highCD), cmp.Compare(lowAB, lowCD))
}

// Turns is by queue its place among its siblings when all of them have work that waits:
// 1 is served first, and of equals the one named first.
func (l *Ledger) Turns() []int32 {
	turns := make([]int32, len(l.fileIn))
	for b := range int32(len(turns)) {
		turns[b] = 1
		if up := l.branches[b].parent; up >= 0 {
			for _, other := range l.branches[up].below {
				if before, tie := l.Before(other, b, anyModel, anyModel); other != b && (before || tie && other < b) {
					turns[b]++
				}
			}
		}
	}
	return turns
}

// anyModel is the set of all models.
const anyModel = ^uint64(0)

// MayYield reports whether a leaf may lose milli of a model to a job of another without having
// less than it deserves, where their queues part.
func (l *Ledger) MayYield(leaf, to, model int32, milli int64) bool {
	theirs, _, _ := l.fork(leaf, to)
	return theirs == none || -l.Short(theirs, 1<<model) >= milli
}
