package share

import (
	"fmt"
	"strconv"
	"strings"
)

// lend says which children of node i lend and which hold what is lent, of model m.
// Held above guarantees comes out of what nobody among them is guaranteed, then
// from outside, as far as the node itself has borrowed, and only then from a
// sibling's guarantee. What the node lends comes out of what it has not promised its
// children before it comes out of theirs.
func lend(nodes []node, i, m int, capacity int64) {
	n := &nodes[i]
	if len(n.children) == 0 {
		return
	}
	guarantee := n.guarantee[m]
	if n.parent < 0 {
		guarantee = capacity
	}
	unused, borrowed := make([]int64, len(n.children)), make([]int64, len(n.children))
	var promised int64
	for k, c := range n.children {
		child := &nodes[c]
		promised += child.guarantee[m]
		unused[k] = max(0, child.guarantee[m]-max(child.held[m], child.keep[m]))
		borrowed[k] = max(0, child.held[m]-child.guarantee[m])
	}
	unpromised := max(0, guarantee-promised)
	outside := max(0, n.held[m]-guarantee)
	b, u := sumOf(borrowed), sumOf(unused)
	among := min(u, max(0, b-unpromised-outside))
	abroad := max(0, n.lent[m]-max(0, unpromised-b))
	lent := Split(min(u, among+abroad), unused)
	risk := Split(min(b, among+n.atRisk[m]), borrowed)
	for k, c := range n.children {
		nodes[c].lent[m], nodes[c].atRisk[m] = lent[k], risk[k]
	}
}

// shares gathers the result.
func shares(nodes []node, in *Input) []Share {
	var list []Share
	models := len(in.Models)
	for i := range nodes {
		n := &nodes[i]
		if n.own {
			list[n.queue].Own = n.deserved
			continue
		}
		s := Share{Guarantee: n.guarantee, Held: n.held, Demand: n.demand, Deserved: n.deserved, Own: n.deserved,
			Lent: n.lent, AtRisk: n.atRisk, Borrowed: make(Vector, models), Arithmetic: words(nodes, i, in)}
		if i > 0 {
			s.Queue = in.Tree.Queues[n.queue].Name
			for m := range models {
				s.Borrowed[m] = max(0, n.held[m]-n.guarantee[m])
			}
		}
		list = append(list, s)
	}
	return list
}

// words says how a queue's part came about; models that it has nothing to do with
// are left out.
func words(nodes []node, i int, in *Input) string {
	n := &nodes[i]
	var parts []string
	for m, model := range in.Models {
		if n.guarantee[m] == 0 && n.demand[m] == 0 {
			continue
		}
		line := fmt.Sprintf("%s, wants %s%s -> deserves %s", origin(nodes, n, m, in), count(n.demand[m]), bound(n, m, at(in.Capacity, m)), count(n.deserved[m]))
		if len(in.Models) > 1 {
			line = model + ": " + line
		}
		parts = append(parts, line)
	}
	if len(parts) == 0 {
		return "no guarantee, wants 0 -> deserves 0"
	}
	return strings.Join(parts, "; ")
}

// origin says what was dealt to a queue of one model, and from where.
func origin(nodes []node, n *node, m int, in *Input) string {
	if n.parent < 0 {
		return "capacity " + count(at(in.Capacity, m))
	}
	s := n.steps[m]
	var terms []string
	if n.guarantee[m] > 0 {
		terms = append(terms, ofGuarantee(n, m))
	}
	switch {
	case s.open && s.past:
		terms = append(terms, count(s.spare)+" spare beside past use")
	case s.open:
		over := gcd(n.weight, s.weights)
		terms = append(terms, fmt.Sprintf("%d/%d of %s spare", n.weight/over, s.weights/over, count(s.divided)))
	case s.spare > 0:
		terms = append(terms, count(s.spare)+" spare")
	case len(terms) == 0:
		terms = append(terms, "no guarantee and nothing spare")
	}
	text := strings.Join(terms, " + ")
	if up := &nodes[n.parent]; up.parent >= 0 && (s.open || s.spare > 0) {
		text += " in " + in.Tree.Queues[up.queue].Name
	}
	if s.yielded && n.need[m] > n.dealt[m] {
		text += " after higher priorities"
	}
	if len(terms) > 1 {
		text += " = " + count(n.dealt[m])
	}
	return text
}

// ofGuarantee says what of its guarantee a queue is owed.
func ofGuarantee(n *node, m int) string {
	term := "guarantee " + count(n.guarantee[m])
	if n.owed[m] < n.guarantee[m] {
		term = count(n.owed[m]) + " of " + term
	}
	if n.owed[m] < n.first[m] {
		term += " (more is guaranteed than there is)"
	}
	return term
}

// bound names what keeps a queue from getting all it wants, or leaves idle what it has.
func bound(n *node, m int, capacity int64) string {
	var text string
	switch {
	case n.reach[m] == n.demand[m] || n.deserved[m] < n.reach[m]:
	case n.reach[m] == n.ceiling[m]:
		text = ", may hold " + count(n.reach[m])
	case n.reach[m] < capacity:
		text = ", the queues below may hold " + count(n.reach[m])
	}
	if idle := n.dealt[m] - n.deserved[m]; idle > 0 && n.parent >= 0 {
		text += ", keeps " + count(idle) + " idle"
	}
	return text
}

// count writes thousandths as devices.
func count(milli int64) string {
	text := strconv.FormatInt(milli/1000, 10)
	if part := milli % 1000; part != 0 {
		text += strings.TrimRight(fmt.Sprintf(".%03d", part), "0")
	}
	return text
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(1, a)
}
