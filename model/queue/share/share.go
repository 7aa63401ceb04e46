// Package share works out who deserves what: the one formula by which decisions order
// queues (Dealer, queue.Ledger) and which people are shown (Compute).
// Given a tree of queues, what there is
// and what each queue holds, wants and used in the past, it says for each queue what it
// deserves, what it has borrowed and lent, and what of the borrowed could be asked back.
//
// It is weighted max-min (water-filling; Bertsekas and Gallager, Data Networks,
// section 6.5.2) over a tree, as in hierarchical fair schedulers: at each queue, what it
// deserves is dealt out to the queues below it. First each gets its guarantee, as far
// as it wants it. What is then spare goes to the siblings of the highest priority by
// weight, none above what it wants or may hold, then to those of the next. What a queue
// used in the past beyond its guarantee counts as a part of the spare that it has had.
// Where more is guaranteed than there is, guarantees shrink in proportion.
//
// Jobs directly in a queue that has queues below it count as one more queue below,
// of weight 1 and without a guarantee. Each device model is dealt out by itself. A
// guarantee over all models together is laid on models in proportion to what the
// queue wants of each, and what is unwanted in proportion to what there is; a limit
// over all models is laid on them once, the guaranteed first. So a queue at such a
// limit may deserve less of one model than contention for another leaves it.
//
// Everything is in whole thousandths of devices, rounded by largest remainder, so
// that parts sum to the whole.
package share

import (
	"math"

	"github.com/musterdl/muster/model/queue"
)

// Vector is thousandths of devices by model, in the order of Input.Models; what is
// beyond its end is 0.
type Vector []int64

// Input is the state of a cluster as far as shares go.
type Input struct {
	// Tree is legal (queue.Tree.Check).
	Tree *queue.Tree
	// Models are the names of the device models; Capacity is what there is of each.
	Models   []string
	Capacity Vector
	// Held and Demand have an entry per queue, of the jobs directly in it: what they
	// hold, and what they hold and do not give up, together with what they wait for.
	Held, Demand []Vector
	// Past has an entry per queue, of the jobs directly in it: what they used in the past
	// and is not forgotten, as queue.Tree.Average says it.
	Past []int64
}

// Share is how one queue stands, together with the queues below it.
type Share struct {
	Queue     string `json:"queue"` // empty for the root
	Guarantee Vector `json:"guarantee_milli"`
	Held      Vector `json:"held_milli"`
	Demand    Vector `json:"demand_milli"`
	// Deserved is the queue's fair part now, never more than its demand. Own is the
	// part of it that is for jobs directly in the queue.
	Deserved Vector `json:"deserved_milli"`
	Own      Vector `json:"own_deserved_milli"`
	// Borrowed is held above the guarantee. Of the root it is 0.
	Borrowed Vector `json:"borrowed_milli"`
	// Lent is the part of the guarantee that others hold.
	Lent Vector `json:"lent_milli"`
	// AtRisk is the part of the borrowed that is another's guarantee, not spare: its
	// owner may ask for it at any moment. Over the queues at the top, those at risk
	// and those lent are equally many.
	AtRisk Vector `json:"at_risk_milli"`
	// Arithmetic says in words how Deserved came about.
	Arithmetic string `json:"arithmetic"`
}

// unlimited is the ceiling of a queue without any; sums of several do not overflow.
const unlimited = math.MaxInt64 >> 16

// seat is where a node stands in the tree, and what the tree says of it.
type seat struct {
	queue            int32 // in the tree
	own              bool  // the jobs directly in the queue
	parent           int32 // in the nodes; -1 for the root
	children         []int32
	levels           [][]int32 // of the children, the highest priority first
	weight, priority int64
	bounds           *terms
}

// terms are the amounts of a queue as the tree says them.
type terms struct{ guarantee, limit, keep, borrow bounds }

func termsOf(q *queue.Queue, models []string) *terms {
	return &terms{boundsOf(q.Guarantee, models, 0), boundsOf(q.Limit, models, unlimited), boundsOf(q.Keep, models, 0), boundsOf(q.Borrow, models, unlimited)}
}

// node is a queue, or the jobs directly in a queue that has others below it.
type node struct {
	seat

	changed bool // what it asks for has to be worked out anew
	stale   bool // what it was dealt has to be dealt out anew

	past      int64  // used in the past and not forgotten, as if held evenly
	guarantee Vector // with amounts over all models laid on models
	keep      Vector
	ceiling   Vector // the most it may hold
	held      Vector
	demand    Vector
	reach     Vector // what it wants and may hold of what there is
	first     Vector // dealt out before anything is spare: wanted or kept guarantee
	need      Vector // the most it is dealt
	owed      Vector // of what was dealt first, after shrinking
	dealt     Vector
	deserved  Vector
	lent      Vector
	atRisk    Vector
	steps     []step // how dealt came about, by model
}

// step is how one queue was dealt its part of one model.
type step struct {
	spare   int64
	open    bool  // it got a part of the spare by weight, not all it would take
	divided int64 // what the open ones of its priority divided
	weights int64
	past    bool // past use counted among them
	yielded bool // siblings of higher priority took of the spare first
}

// Compute returns the share of every queue, in the order of the tree.
func Compute(in Input) []Share {
	d := NewDealer(in.Tree, in.Models, in.Capacity)
	for i := range d.nodes {
		n := &d.nodes[i]
		if len(n.children) > 0 {
			continue
		}
		for m := range in.Models {
			n.held[m] = at(of(in.Held, n.queue), m)
			d.ask(i, m, at(of(in.Demand, n.queue), m))
		}
		d.used(i, at(in.Past, int(n.queue)))
	}
	d.deal()
	for i := len(d.nodes) - 1; i > 0; i-- {
		for m, held := range d.nodes[i].held {
			d.nodes[d.nodes[i].parent].held[m] += held
		}
	}
	for i := range d.nodes {
		for m := range in.Models {
			lend(d.nodes, i, m, at(in.Capacity, m))
		}
	}
	return shares(d.nodes, &in)
}

// build lists the queues as nodes, those of jobs directly in a queue at the end: in the
// order of the ledger's branches.
func build(in *Input) []node {
	queues := in.Tree.Queues
	if len(queues) == 0 {
		queues = []queue.Queue{queue.Root()}
	}
	nodes := make([]node, len(queues), 2*len(queues))
	for i := range queues {
		q := &queues[i]
		nodes[i].seat = seat{queue: int32(i), parent: q.Parent, weight: int64(q.Weight), priority: int64(q.Priority), bounds: termsOf(q, in.Models)}
		if q.Parent >= 0 {
			nodes[q.Parent].children = append(nodes[q.Parent].children, int32(i))
		}
	}
	unbound := termsOf(&queue.Queue{}, in.Models)
	for i := range queues {
		if len(nodes[i].children) > 0 {
			own := node{seat: seat{queue: int32(i), own: true, parent: int32(i), weight: 1000, bounds: unbound}}
			nodes[i].children = append(nodes[i].children, int32(len(nodes)))
			nodes = append(nodes, own)
		}
	}
	models := len(in.Models)
	for i := range nodes {
		n := &nodes[i]
		all := make(Vector, 13*models) // one allocation for all vectors of a node
		for k, v := range []*Vector{&n.guarantee, &n.keep, &n.ceiling, &n.held, &n.demand, &n.reach, &n.first, &n.need, &n.owed, &n.dealt, &n.deserved, &n.lent, &n.atRisk} {
			*v = all[k*models : (k+1)*models : (k+1)*models]
		}
		n.steps, n.levels = make([]step, models), levels(nodes, n.children)
		n.changed, n.stale = true, true
	}
	return nodes
}

func at(v Vector, m int) int64 {
	if m < len(v) {
		return max(0, v[m])
	}
	return 0
}

func of(list []Vector, i int32) Vector {
	if int(i) < len(list) {
		return list[i]
	}
	return nil
}

// levels groups queues by priority, the highest first, each in the order given.
func levels(nodes []node, children []int32) [][]int32 {
	var list [][]int32
	below := int64(math.MaxInt64)
	for {
		next := int64(math.MinInt64)
		var level []int32
		for _, c := range children {
			if p := nodes[c].priority; p < below && p > next {
				next, level = p, nil
			}
			if nodes[c].priority == next {
				level = append(level, c)
			}
		}
		if level == nil {
			return list
		}
		list, below = append(list, level), next
	}
}
