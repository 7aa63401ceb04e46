package share

import "github.com/musterdl/muster/model/queue"

// Dealer keeps what the queues of a tree deserve while what they hold, want and used
// changes: it costs what changed.
type Dealer struct {
	in    Input
	nodes []node
}

// NewDealer makes a dealer of so much of each model; nobody wants anything yet.
func NewDealer(tree *queue.Tree, models []string, capacity Vector) *Dealer {
	d := &Dealer{in: Input{Tree: tree, Models: models, Capacity: capacity}}
	d.nodes = build(&d.in)
	return d
}

// Aim tells a ledger of the same tree what each of its branches deserves by what its leaves
// hold, wait for and used in the past. A ledger has one dealer, which it tells of what moved.
func (d *Dealer) Aim(l *queue.Ledger) {
	for _, leaf := range l.Moved() {
		for m := range d.in.Models {
			d.ask(int(leaf), m, l.Wanted(leaf, int32(m)))
		}
		d.used(int(leaf), l.Average(leaf))
	}
	d.deal()
	if !l.Aimed() {
		for i := range d.nodes {
			l.Aim(int32(i), d.nodes[i].deserved, d.nodes[i].owed)
		}
	}
}

// ask sets what a leaf holds and waits for of a model.
func (d *Dealer) ask(i, m int, milli int64) {
	if n := &d.nodes[i]; n.demand[m] != milli {
		n.demand[m] = milli
		d.change(i)
	}
}

// used sets what a leaf used in the past.
func (d *Dealer) used(i int, milli int64) {
	if n := &d.nodes[i]; n.past != milli {
		n.past = milli
		d.change(i)
	}
}

// change marks that a leaf, and so all above it, asks for something else.
func (d *Dealer) change(i int) {
	for ; i >= 0 && !d.nodes[i].changed; i = int(d.nodes[i].parent) {
		d.nodes[i].changed = true
	}
}

// deal works out anew what each deserves, as far as something changed.
func (d *Dealer) deal() {
	if !d.nodes[0].changed {
		return
	}
	d.claim(0)
	root := &d.nodes[0]
	for m := range d.in.Models {
		root.dealt[m] = min(root.need[m], at(d.in.Capacity, m))
	}
	d.spread(0)
}

// claim works out anew what a node and those below it ask for.
func (d *Dealer) claim(i int) {
	n := &d.nodes[i]
	for _, c := range n.children {
		if d.nodes[c].changed {
			d.claim(int(c))
		}
	}
	n.changed, n.stale = false, true
	d.sum(n)
	claim(d.nodes, i, &d.in)
}

// spread works out anew what a node and those below it deserve, from what it was dealt.
func (d *Dealer) spread(i int) {
	n := &d.nodes[i]
	n.stale = false
	if len(n.children) == 0 {
		for m := range n.deserved {
			n.deserved[m] = min(n.dealt[m], n.reach[m])
		}
		return
	}
	for m := range n.deserved {
		d.dealOut(n, m)
		n.deserved[m] = 0
	}
	for _, c := range n.children {
		if d.nodes[c].stale {
			d.spread(int(c))
		}
		for m, milli := range d.nodes[c].deserved {
			n.deserved[m] += milli
		}
	}
}

// sum adds up what the children of a node want and used.
func (d *Dealer) sum(n *node) {
	if len(n.children) == 0 {
		return
	}
	clear(n.demand)
	n.past = 0
	for _, c := range n.children {
		n.past += d.nodes[c].past
		for m, milli := range d.nodes[c].demand {
			n.demand[m] += milli
		}
	}
}

// dealOut deals what a node was dealt of model m out to its children.
func (d *Dealer) dealOut(n *node, m int) {
	nodes := d.nodes
	firsts, dealt := make([]int64, len(n.children)), make([]int64, len(n.children))
	var sum int64
	for k, c := range n.children {
		firsts[k], dealt[k] = nodes[c].first[m], nodes[c].dealt[m]
		sum += firsts[k]
	}
	spare := n.dealt[m] - sum
	if spare < 0 {
		firsts, spare = Split(n.dealt[m], firsts), 0
	}
	for k, c := range n.children {
		nodes[c].owed[m], nodes[c].dealt[m], nodes[c].steps[m] = firsts[k], firsts[k], step{}
	}
	yielded := false
	for _, level := range n.levels {
		all, past := make([]claimant, len(level)), false
		for k, c := range level {
			all[k] = claimant{weight: nodes[c].weight, room: nodes[c].need[m] - nodes[c].dealt[m], past: d.had(&nodes[c], m)}
			past = past || all[k].past > 0
			nodes[c].steps[m].yielded = yielded
		}
		if spare == 0 {
			continue
		}
		divided, weights := fill(spare, all)
		took := spare
		for k, c := range level {
			nodes[c].steps[m] = step{all[k].got, all[k].open, divided, weights, past, yielded}
			nodes[c].dealt[m] += all[k].got
			spare -= all[k].got
		}
		yielded = yielded || spare < took
	}
	for k, c := range n.children {
		nodes[c].stale = nodes[c].stale || nodes[c].dealt[m] != dealt[k]
	}
}

// had is what a node used of model m in the past beyond its guarantee. Past use is known of
// all models together, and laid on them in proportion to what there is.
func (d *Dealer) had(n *node, m int) int64 {
	beyond := n.past - sumOf(n.guarantee)
	if beyond <= 0 {
		return 0
	}
	return Split(beyond, d.in.Capacity)[m]
}
