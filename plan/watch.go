package plan

// touches lists the nodes that something was done to, the latest last, once somebody watches.
// It keeps at least as many as there are nodes: who is further behind looks at all of them.
type touches struct {
	nodes  []NodeID
	before int64 // how many were dropped at the front
}

func (t *touches) add(id NodeID, keep int) {
	if len(t.nodes) >= 2*keep {
		drop := len(t.nodes) - keep
		copy(t.nodes, t.nodes[drop:])
		t.nodes, t.before = t.nodes[:keep], t.before+int64(drop)
	}
	t.nodes = append(t.nodes, id)
}

// Watch tells which nodes of a State changed, so that what follows from a node is worked out
// again where it may have become another and nowhere else. The zero value has seen nothing.
type Watch struct {
	of *touches // of the State that was looked at last
	at int64    // how far
}

// Changed returns the nodes whose stamps may have changed since the last call, some perhaps
// several times, or that all may have: at the first call, in another State, after a growth of
// the cluster, and after too long a time. The list holds until the State is edited.
func (w *Watch) Changed(v View) (nodes []NodeID, all bool) {
	if v.s.touched == nil {
		v.s.touched = &touches{}
	}
	t := v.s.touched
	from := w.at - t.before
	all = w.of != t || from < 0
	if !all {
		nodes = t.nodes[from:]
	}
	w.of, w.at = t, t.before+int64(len(t.nodes))
	return nodes, all
}
