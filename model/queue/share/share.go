// Package share works out who deserves what. It is a measure to compare with, and orders
// nothing: who is served before whom is queue.Ledger's to say, and no decision asks here.
// Given a tree of queues, what there is
// and what each queue holds and wants, it says for each queue what it deserves,
// what it has borrowed and lent, and what of the borrowed could be asked back.
//
// It is weighted max-min (water-filling; Bertsekas and Gallager, Data Networks,
// section 6.5.2) over a tree, as in hierarchical fair schedulers: at each queue, what it
// deserves is dealt out to the queues below it. First each gets its guarantee, as far
// as it wants it. What is then spare goes to the siblings of the highest priority by
// weight, none above what it wants or may hold, then to those of the next. Where
// more is guaranteed than there is, guarantees shrink in proportion.
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
	// hold, and that together with what they wait for.
	Held, Demand []Vector
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

// node is a queue, or the jobs directly in a queue that has others below it.
type node struct {
	queue            int32 // in the tree
	own              bool  // the jobs directly in the queue
	parent           int32 // in the nodes; -1 for the root
	children         []int32
	weight, priority int64

	declared  bool   // the queue itself has a guarantee
	guarantee Vector // with amounts over all models laid on models
	keep      Vector
	ceiling   Vector // the most it may hold
	held      Vector
	demand    Vector
	reach     Vector // what it wants and may hold of what there is
	first     Vector // dealt out before anything is spare: wanted or kept guarantee
	need      Vector // the most it is dealt
	dealt     Vector
	deserved  Vector
	lent      Vector
	atRisk    Vector
	steps     []step // how dealt came about, by model
}

// step is how one queue was dealt its part of one model.
type step struct {
	first   int64 // of what was dealt first, after shrinking
	spare   int64
	open    bool  // it got a part of the spare by weight, not all it would take
	divided int64 // what the open ones of its priority divided
	weights int64
	yielded bool // siblings of higher priority took of the spare first
}

// Compute returns the share of every queue, in the order of the tree.
func Compute(in Input) []Share {
	nodes := build(&in)
	models := len(in.Models)
	for i := len(nodes) - 1; i >= 0; i-- {
		claim(nodes, i, &in)
	}
	root := &nodes[0]
	for m := range models {
		root.dealt[m] = min(root.need[m], at(in.Capacity, m))
	}
	for i := range nodes {
		for m := range models {
			deal(nodes, i, m)
		}
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		n := &nodes[i]
		for m := range models {
			if len(n.children) == 0 {
				n.deserved[m] = min(n.dealt[m], n.reach[m])
			}
			if n.parent >= 0 {
				nodes[n.parent].deserved[m] += n.deserved[m]
			}
		}
	}
	for i := range nodes {
		for m := range models {
			lend(nodes, i, m, at(in.Capacity, m))
		}
	}
	return shares(nodes, &in)
}

// build lists the queues as nodes, those of jobs directly in a queue at the end, and
// sums what is held and wanted.
func build(in *Input) []node {
	queues := in.Tree.Queues
	if len(queues) == 0 {
		queues = []queue.Queue{queue.Root()}
	}
	nodes := make([]node, len(queues), 2*len(queues))
	for i := range queues {
		nodes[i] = node{queue: int32(i), parent: queues[i].Parent, weight: int64(queues[i].Weight), priority: int64(queues[i].Priority)}
		if p := queues[i].Parent; p >= 0 {
			nodes[p].children = append(nodes[p].children, int32(i))
		}
	}
	for i := range queues {
		if len(nodes[i].children) > 0 {
			nodes[i].children = append(nodes[i].children, int32(len(nodes)))
			nodes = append(nodes, node{queue: int32(i), own: true, parent: int32(i), weight: 1000})
		}
	}
	models := len(in.Models)
	for i := range nodes {
		n := &nodes[i]
		all := make(Vector, 11*models) // one allocation for all vectors of a node
		for k, v := range []*Vector{&n.guarantee, &n.keep, &n.ceiling, &n.held, &n.demand, &n.reach, &n.first, &n.need, &n.dealt, &n.deserved, &n.lent} {
			*v = all[k*models : (k+1)*models : (k+1)*models]
		}
		n.atRisk, n.steps = make(Vector, models), make([]step, models)
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		n := &nodes[i]
		for m := range models {
			if len(n.children) == 0 {
				n.held[m] = at(of(in.Held, n.queue), m)
				n.demand[m] = max(n.held[m], at(of(in.Demand, n.queue), m))
			}
			if n.parent >= 0 {
				nodes[n.parent].held[m] += n.held[m]
				nodes[n.parent].demand[m] += n.demand[m]
			}
		}
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

// deal deals what node i was dealt of model m out to its children.
func deal(nodes []node, i, m int) {
	n := &nodes[i]
	if len(n.children) == 0 {
		return
	}
	firsts := make([]int64, len(n.children))
	var sum int64
	for k, c := range n.children {
		firsts[k] = nodes[c].first[m]
		sum += firsts[k]
	}
	spare := n.dealt[m] - sum
	if spare < 0 {
		firsts, spare = Split(n.dealt[m], firsts), 0
	}
	for k, c := range n.children {
		nodes[c].steps[m].first, nodes[c].dealt[m] = firsts[k], firsts[k]
	}
	yielded := false
	for _, level := range levels(nodes, n.children) {
		all := make([]claimant, len(level))
		for k, c := range level {
			all[k] = claimant{weight: nodes[c].weight, room: nodes[c].need[m] - nodes[c].dealt[m]}
			if spare == 0 {
				nodes[c].steps[m].yielded = yielded
			}
		}
		if spare == 0 {
			continue
		}
		divided, weights := fill(spare, all)
		took := spare
		for k, c := range level {
			s := &nodes[c].steps[m]
			s.spare, s.open, s.divided, s.weights, s.yielded = all[k].got, all[k].open, divided, weights, yielded
			nodes[c].dealt[m] += all[k].got
			spare -= all[k].got
		}
		yielded = yielded || spare < took
	}
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
