package compose

import (
	"math"

	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/queue"
	"github.com/musterdl/muster/unit"
)

// tree is the tree of queues as decisions see it: what each holds and may claim.
// Amounts are vectors by device model with all models together behind them.
type tree struct {
	branches []branch
	fileIn   []int32 // by queue: the branch that its own jobs are filed in
	capacity []int64
	lent     []int64              // by model: what leaves hold of which anything might be taken back
	keepers  []int32              // branches that do not lend all they are guaranteed
	ofUser   map[[2]int32][]int64 // what a user holds below a branch that limits users
	ages     int64
	steady   float64 // what use that never ends comes to when half is forgotten per half-life, in seconds
	lowest   int32   // no job that was ever filed has a lower priority
	protect  unit.Duration
	budget   int32 // disruptions of one job for priority within a day; 0 is no bound
}

// branch is one queue, or the jobs that are in a queue itself and not in one below.
type branch struct {
	parent, queue    int32
	below            []int32 // branches; none where jobs are filed
	weight, priority int64
	guarantee, limit []int64 // limit: -1 is none
	keep, borrow     []int64
	user             []int64
	preempt          bool

	used    []int64 // by runs that are not on their way out
	share   int64   // of the cluster, now and in the past, per weight; less goes first
	past    int64   // thousandths of a device times seconds
	open    int32   // classes in it and below that are worth a try
	closed  int64   // the pass in which a strict order found its best job stuck
	classes []int32 // that are filed here
	head    int32   // of those, the one whose best job ranks first; if headed
	headed  bool
	front   item         // the best of all jobs that wait here; if headed and there is one
	borrows bool         // holds more than it is guaranteed
	lends   bool         // of a leaf: what it holds counts as lent
	running []plan.JobID // likewise, in no order
}

// newTree reads the queues of a state.
func newTree(v plan.View) tree {
	t := tree{ofUser: map[[2]int32][]int64{}, ages: -1, lowest: math.MaxInt32}
	config := v.Queues()
	t.protect, t.budget = config.Protect, config.Disruptions
	t.steady = float64(config.HalfLife) / math.Ln2 / float64(unit.Second)
	models := v.Cluster().Models
	t.capacity, t.lent = make([]int64, len(models)+1), make([]int64, len(models))
	for m := range models {
		t.capacity[m] = v.Room().All(1<<m) * 1000
		t.capacity[len(models)] += t.capacity[m]
	}
	list := config.Queues
	if len(list) == 0 {
		list = []queue.Queue{queue.Root()}
	}
	vector := func(amounts []queue.Amount, none int64) []int64 {
		if len(amounts) == 0 {
			return nil
		}
		x := make([]int64, len(models)+1)
		for i := range x {
			x[i] = none
		}
		for _, a := range amounts {
			at := len(models)
			if id, ok := v.Cluster().ModelID(a.Model); ok && a.Model != "" {
				at = int(id)
			}
			x[at] = a.Milli
		}
		return x
	}
	for i := range list {
		q := &list[i]
		t.branches = append(t.branches, branch{parent: q.Parent, queue: int32(i), weight: int64(q.Weight), priority: int64(q.Priority),
			guarantee: vector(q.Guarantee, 0), limit: vector(q.Limit, -1), keep: vector(q.Keep, 0), borrow: vector(q.Borrow, -1),
			user: vector(q.UserLimit, -1), preempt: q.Preempt, used: make([]int64, len(models)+1)})
		if q.Parent >= 0 {
			t.branches[q.Parent].below = append(t.branches[q.Parent].below, int32(i))
		}
		if len(q.Keep) > 0 {
			t.keepers = append(t.keepers, int32(i))
		}
	}
	t.fileIn = make([]int32, len(list))
	for i := range list {
		t.fileIn[i] = int32(i)
		if len(t.branches[i].below) > 0 { // its own jobs stand beside the queues below it
			t.fileIn[i] = int32(len(t.branches))
			t.branches[i].below = append(t.branches[i].below, t.fileIn[i])
			t.branches = append(t.branches, branch{parent: int32(i), queue: int32(i), weight: 1000, used: make([]int64, len(models)+1)})
		}
	}
	return t
}

// shared reports whether there is more than one queue.
func (t *tree) shared() bool { return len(t.branches) > 1 }

// leaf is the branch that a job is filed in.
func (t *tree) leaf(v plan.View, j *plan.Job) int32 {
	if !t.shared() {
		return 0
	}
	return t.fileIn[v.QueueOf(j.Tenant)]
}

// limitsUsers reports whether a limit on users holds for the jobs of a leaf.
func (t *tree) limitsUsers(leaf int32) bool {
	for b := leaf; b >= 0; b = t.branches[b].parent {
		if t.branches[b].user != nil {
			return true
		}
	}
	return false
}

// use adds to what a leaf, and one user of it, hold of a model; milli is negative
// when it is given back.
func (t *tree) use(leaf, user, model int32, milli int64) {
	t.lend(leaf, -1)
	flipped := int32(plan.None) // the topmost queue that came to its guarantee, or left it
	for b := leaf; b >= 0; b = t.branches[b].parent {
		x := &t.branches[b]
		x.used[model] += milli
		x.used[len(x.used)-1] += milli
		if !t.shared() {
			continue
		}
		t.weigh(x)
		if over := x.overAny(); over != x.borrows {
			x.borrows, flipped = over, b
		}
		if x.user != nil {
			key := [2]int32{b, user}
			if t.ofUser[key] == nil {
				t.ofUser[key] = make([]int64, len(x.used))
			}
			t.ofUser[key][model] += milli
			t.ofUser[key][len(x.used)-1] += milli
		}
	}
	t.lend(leaf, 1)
	if flipped >= 0 && len(t.branches[flipped].below) > 0 {
		t.relend()
	}
}

// lend adds what a leaf holds to what might be taken back from anybody, if it might,
// or takes it out.
func (t *tree) lend(leaf int32, sign int64) {
	x := &t.branches[leaf]
	if sign > 0 {
		x.lends = false
		for b := leaf; b >= 0 && !x.lends; b = t.branches[b].parent {
			x.lends = t.branches[b].borrows || t.branches[b].preempt
		}
	}
	if x.lends {
		for m := range t.lent {
			t.lent[m] += sign * x.used[m]
		}
	}
}

// relend adds up anew what might be taken back.
func (t *tree) relend() {
	clear(t.lent)
	for b := range t.branches {
		if len(t.branches[b].below) == 0 {
			t.lend(int32(b), 1)
		}
	}
}

// weigh computes a branch's share: the dominant one of what it holds now, in
// millionths of the cluster, and what it used in the past as if held evenly over the
// half-life, both per weight.
func (t *tree) weigh(x *branch) {
	dominant := int64(0)
	for m, used := range x.used {
		if c := t.capacity[m]; c > 0 {
			dominant = max(dominant, used*1_000_000/c)
		}
	}
	if all := float64(t.capacity[len(t.capacity)-1]); t.steady > 0 && all > 0 {
		dominant += int64(float64(x.past) / all / t.steady * 1e6)
	}
	x.share = dominant * 1000 / x.weight
}

// age reads how past use is remembered by now, where it was aged since.
func (t *tree) age(v plan.View) {
	if !t.shared() || v.Ages() == t.ages {
		return
	}
	t.ages = v.Ages()
	for i := range t.branches {
		t.branches[i].past = 0
	}
	for id := range v.Accounts() {
		a := v.Account(id)
		for b := t.fileIn[v.QueueOf(a.Tenant)]; b >= 0; b = t.branches[b].parent {
			t.branches[b].past += a.Past
		}
	}
	for i := range t.branches {
		t.weigh(&t.branches[i])
	}
}

// below reports whether a branch holds less than it is guaranteed, of anything.
func (x *branch) belowGuarantee() bool {
	for m, g := range x.guarantee {
		if g > x.used[m] {
			return true
		}
	}
	return false
}

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

// before reports whether a branch is served before a sibling: by priority, those
// below their guarantee first, then the smaller share.
func (x *branch) before(y *branch) (before, tie bool) {
	if x.priority != y.priority {
		return x.priority > y.priority, false
	}
	if a, b := x.belowGuarantee(), y.belowGuarantee(); a != b {
		return a, false
	}
	return x.share < y.share, x.share == y.share
}

// allow returns the device models of which a leaf's job may take milli, and where
// there is none, why: the tightest claim that stands in the way.
func (t *tree) allow(v plan.View, leaf, user int32, models uint64, milli int64) (uint64, plan.Reason) {
	var why plan.Reason
	all := len(t.capacity) - 1
	if milli == 0 {
		return models, why
	}
	for b := leaf; b >= 0; b = t.branches[b].parent {
		x := &t.branches[b]
		models = x.cap(models, x.limit, x.used, nil, milli, plan.QueueLimit, &why)
		models = x.cap(models, x.borrow, x.used, x.guarantee, milli, plan.BorrowLimit, &why)
		if x.user != nil {
			used := t.ofUser[[2]int32{b, user}]
			if used == nil {
				used = make([]int64, all+1)
			}
			models = x.cap(models, x.user, used, nil, milli, plan.UserLimit, &why)
		}
		if models == 0 {
			return 0, why
		}
	}
	for _, b := range t.keepers {
		if t.above(b, leaf) {
			continue
		}
		x := &t.branches[b]
		for m := range all {
			if models&(1<<m) == 0 {
				continue
			}
			kept := max(0, x.keep[m]-x.used[m])
			if x.keep[m] == 0 {
				kept = max(0, x.keep[all]-x.used[all])
			}
			if kept > 0 && v.Room().FreeMilli(1<<m)-kept < milli {
				models &^= 1 << m
				why = plan.Reason{Code: plan.KeptBack, A: int64(x.queue), B: kept}
			}
		}
	}
	return models, why
}

// cap takes those models out of a set of which milli more would pass a bound, base
// added to it.
func (x *branch) cap(models uint64, bound, used, base []int64, milli int64, code plan.ReasonCode, why *plan.Reason) uint64 {
	if bound == nil {
		return models
	}
	all := len(x.used) - 1
	left := func(at int) int64 {
		if bound[at] < 0 {
			return math.MaxInt64
		}
		room := bound[at] - used[at]
		if base != nil {
			room += base[at]
		}
		return room
	}
	for m := range all {
		if models&(1<<m) == 0 {
			continue
		}
		if room := min(left(m), left(all)); room < milli {
			models &^= 1 << m
			*why = plan.Reason{Code: code, A: int64(x.queue), B: max(0, room)}
		}
	}
	return models
}

// above reports whether a branch is a leaf or an ancestor of it.
func (t *tree) above(b, leaf int32) bool {
	for ; leaf >= 0; leaf = t.branches[leaf].parent {
		if leaf == b {
			return true
		}
	}
	return false
}

// opened adds to the count of classes worth a try, up from a leaf.
func (t *tree) opened(leaf, n int32) {
	for b := leaf; b >= 0; b = t.branches[b].parent {
		t.branches[b].open += n
	}
}

// first descends to the leaf that is served next, or none.
func (t *tree) first(s *Scheduler) int32 {
	if !t.shared() {
		if x := &t.branches[0]; x.open == 0 || x.closed == s.pass {
			return plan.None
		}
		return 0
	}
	at := int32(0)
	for len(t.branches[at].below) > 0 {
		best := int32(plan.None)
		for _, b := range t.branches[at].below {
			if !t.available(b, s.pass) {
				continue
			}
			if best < 0 {
				best = b
				continue
			}
			before, tie := t.branches[b].before(&t.branches[best])
			if before || tie && s.ranksBefore(b, best) {
				best = b
			}
		}
		if best < 0 {
			return plan.None
		}
		at = best
	}
	return at
}

// available reports whether a branch has a class worth a try.
func (t *tree) available(b int32, pass int64) bool {
	x := &t.branches[b]
	if x.open == 0 || x.closed == pass {
		return false
	}
	if len(x.below) == 0 {
		return true
	}
	for _, c := range x.below {
		if t.available(c, pass) {
			return true
		}
	}
	return false
}

// ranksBefore reports whether the best job of one leaf ranks before that of another;
// of others the first named goes first.
func (s *Scheduler) ranksBefore(a, b int32) bool {
	if len(s.tree.branches[a].below)+len(s.tree.branches[b].below) > 0 {
		return false
	}
	x, y := s.head(a), s.head(b)
	return x >= 0 && y >= 0 && s.classes[x].waiting.items[0].before(s.classes[y].waiting.items[0])
}

// takesBack reports whether the best job of a class may claim room from what runs: it
// is within a guarantee, or priority counts where it is.
func (s *Scheduler) takesBack(v plan.View, c *class) bool {
	if !s.tree.shared() || len(c.waiting.items) == 0 {
		return false
	}
	shape := v.ShapeOf(c.shape)
	return s.tree.entitled(c.leaf, shape.Models, shape.Milli(smallest(shape)), v.Priority(c.waiting.items[0].job))
}

// guaranteed reports whether a job's smallest size is within what a queue that it is
// in is guaranteed.
func (t *tree) guaranteed(v plan.View, job plan.JobID) bool {
	if !t.shared() {
		return false
	}
	j, shape := v.Job(job), v.Shape(job)
	for b := t.leaf(v, &j); b >= 0; b = t.branches[b].parent {
		for m := range len(t.capacity) - 1 {
			if shape.Models&(1<<m) != 0 && t.branches[b].within(m, shape.Milli(smallest(shape))) {
				return true
			}
		}
	}
	return false
}

// entitled reports whether milli more for a leaf are within a guarantee, or may be
// taken by priority.
func (t *tree) entitled(leaf int32, models uint64, milli int64, priority int32) bool {
	for b := leaf; b >= 0; b = t.branches[b].parent {
		x := &t.branches[b]
		if x.preempt && priority > t.lowest {
			return true
		}
		for m := range len(t.capacity) - 1 {
			if models&(1<<m) != 0 && x.within(m, milli) {
				return true
			}
		}
	}
	return false
}

// overGuarantee reports whether a leaf or a queue above it holds more than it is
// guaranteed.
func (t *tree) overGuarantee(leaf int32) bool {
	for b := leaf; b >= 0; b = t.branches[b].parent {
		if t.branches[b].borrows {
			return true
		}
	}
	return false
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
