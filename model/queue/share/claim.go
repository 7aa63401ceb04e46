package share

import (
	"slices"

	"github.com/musterdl/muster/model/queue"
)

// bounds are the amounts of one kind of a queue: by model, and over all of them.
type bounds struct {
	byModel Vector
	total   int64
	given   bool
}

// boundsOf sorts amounts by model; what is not said is missing.
func boundsOf(list []queue.Amount, models []string, missing int64) bounds {
	v := queue.Vector(list, models, missing)
	if v == nil {
		v = slices.Repeat([]int64{missing}, len(models)+1)
	}
	return bounds{v[:len(models)], v[len(models)], len(list) > 0}
}

// claim works out what a node is guaranteed and may hold, those of its children being
// known, and from that what it is dealt first and at most.
func claim(nodes []node, i int, in *Input) {
	n := &nodes[i]
	limit, borrow := n.bounds.limit, n.bounds.borrow
	resolveGuarantee(nodes, n, in)
	n.resolveKeep()
	var guaranteed int64
	for m := range in.Models {
		guaranteed += n.guarantee[m]
		n.ceiling[m] = min(limit.byModel[m], n.guarantee[m]+borrow.byModel[m])
	}
	below := make(Vector, len(in.Models)) // what the children are dealt at most, and first
	firsts := make(Vector, len(in.Models))
	for m := range in.Models {
		wanted := n.demand[m]
		if len(n.children) > 0 {
			wanted = 0
			for _, c := range n.children {
				wanted += nodes[c].reach[m]
				below[m] += nodes[c].need[m]
				firsts[m] += nodes[c].first[m]
			}
		}
		n.reach[m] = min(wanted, n.ceiling[m], at(in.Capacity, m))
	}
	most := min(limit.total, guaranteed+borrow.total)
	n.capTotal(most)
	for m := range in.Models {
		kept := min(n.keep[m], n.ceiling[m])
		if len(n.children) == 0 {
			n.first[m] = max(min(n.guarantee[m], n.demand[m], n.ceiling[m]), kept)
			n.need[m] = max(n.reach[m], n.first[m])
			continue
		}
		n.first[m] = max(firsts[m], kept)
		if n.bounds.guarantee.given {
			n.first[m] = max(n.first[m], min(n.guarantee[m], below[m]))
		}
		n.first[m] = min(n.first[m], n.ceiling[m])
		n.need[m] = min(n.ceiling[m], max(below[m], n.first[m]))
	}
	n.capKept(most)
}

// capKept lays the same bound on what the queue is dealt, which is more than it wants
// where a queue below keeps idle devices: what it can never hold is not kept for it.
func (n *node) capKept(most int64) {
	if sumOf(n.need) <= most {
		return
	}
	n.first = Split(min(most, sumOf(n.first)), n.first)
	beyond := make(Vector, len(n.need))
	for m := range n.need {
		beyond[m] = n.need[m] - n.first[m]
	}
	for m, more := range Split(most-sumOf(n.first), beyond) {
		n.need[m] = n.first[m] + more
	}
}

// capTotal lays a bound over all models on them where it matters: on what is
// guaranteed first, then in proportion to what more can be had.
func (n *node) capTotal(most int64) {
	var sum, guaranteed int64
	within, beyond := make(Vector, len(n.reach)), make(Vector, len(n.reach))
	for m, r := range n.reach {
		within[m] = min(r, n.guarantee[m])
		beyond[m] = r - within[m]
		sum += r
		guaranteed += within[m]
	}
	if sum <= most {
		return
	}
	within = Split(min(most, guaranteed), within)
	beyond = Split(max(0, most-guaranteed), beyond)
	for m := range n.reach {
		n.reach[m] = within[m] + beyond[m]
		n.ceiling[m] = n.reach[m]
	}
}

// resolveGuarantee lays a guarantee over all models on them: what the queues below
// are guaranteed, then what is wanted, then in proportion to what there is.
func resolveGuarantee(nodes []node, n *node, in *Input) {
	own, limit := n.bounds.guarantee, n.bounds.limit
	var sum int64
	for m := range in.Models {
		n.guarantee[m] = own.byModel[m]
		var below int64
		for _, c := range n.children {
			below += nodes[c].guarantee[m]
		}
		n.guarantee[m] = max(n.guarantee[m], below)
		sum += n.guarantee[m]
	}
	rest := own.total - sum
	if rest <= 0 {
		return
	}
	wanted := make(Vector, len(in.Models))
	var wants int64
	for m := range in.Models {
		wanted[m] = max(0, min(n.demand[m], limit.byModel[m], at(in.Capacity, m))-n.guarantee[m])
		wants += wanted[m]
	}
	asked := Split(min(rest, wants), wanted)
	there := in.Capacity
	if len(there) != len(in.Models) || sumOf(there) == 0 {
		there = evenly(len(in.Models))
	}
	idle := Split(max(0, rest-wants), there)
	for m := range in.Models {
		n.guarantee[m] += asked[m] + idle[m]
	}
}

func sumOf(v Vector) (sum int64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

func evenly(n int) Vector {
	v := make(Vector, n)
	for i := range v {
		v[i] = 1
	}
	return v
}

// resolveKeep lays what is kept on the models of the guarantee, whose part it is.
func (n *node) resolveKeep() {
	keep := n.bounds.keep
	if !keep.given {
		return
	}
	room := make(Vector, len(n.keep))
	var sum int64
	for m := range n.keep {
		n.keep[m] = min(keep.byModel[m], n.guarantee[m])
		room[m] = n.guarantee[m] - n.keep[m]
		sum += n.keep[m]
	}
	for m, more := range Split(min(max(0, keep.total-sum), sumOf(room)), room) {
		n.keep[m] += more
	}
}
