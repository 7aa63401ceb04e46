package straggler

import (
	"slices"

	"github.com/musterdl/muster/mechanism/taskgraph"
)

// The kinds of operation. Each message has two, of who sends and who receives: they end
// together, so that either is as long as the other one waited.
const (
	forward, backward   = "forward-compute", "backward-compute" // passes, whole
	sendF, recvF        = "forward-send", "forward-recv"
	sendB, recvB        = "backward-send", "backward-recv"
	gather              = "params-all-gather"                                        // of what the optimiser left on the copies in parts
	scatter             = "grads-reduce-scatter"                                     // to the copy that is to update a part
	norms, embedding    = "layernorm-grads-all-reduce", "embedding-grads-all-reduce" // the first and the last stage share the embedding
	apart               = "separate-grads-all-reduce"                                // of what was not summed up while passes went on
	clip, update, pause = "optimizer-clip-main-grad", "optimizer", "gc"              // the norm for clipping is that of all workers
)

// about is what is known of a kind.
type about struct {
	listed  bool
	talks   bool // with other workers: what is usual is the median, of others the mean
	meets   bool // all who take part begin when the last is there
	copies  bool // the same of all copies take part
	group   string
	partner string // the kind on the next stage that takes part
}

var known = map[string]about{
	forward: {listed: true}, backward: {listed: true}, update: {listed: true}, pause: {listed: true},
	sendF: {true, true, true, false, "forward-pp-comm", recvF}, recvF: {true, true, true, false, "forward-pp-comm", ""},
	sendB: {true, true, true, false, "backward-pp-comm", ""}, recvB: {true, true, true, false, "backward-pp-comm", sendB},
	gather: {true, true, true, true, "", ""}, scatter: {true, true, true, true, "", ""}, apart: {true, true, true, true, "", ""},
	norms: {listed: true, talks: true}, embedding: {true, true, true, false, "", ""}, clip: {true, true, true, true, "", ""},
}

// depends lists, for each operation of a copy, those before it. Steps and copies are alike in
// this: the order of the first copy in the first step serves for all.
type depends struct {
	*Trace
	before [][]int32
}

// add lets one operation wait for another, where the job has both: an end of the pipeline sends
// nothing on, and a job of one copy sums nothing up.
func (d *depends) add(first, then op) {
	a, there := d.id[first]
	b, too := d.id[then]
	if there && too && !slices.Contains(d.before[b], a) {
		d.before[b] = append(d.before[b], a)
	}
}

// chain lets operations run one after the other.
func (d *depends) chain(all ...op) {
	for i := range all[:max(0, len(all)-1)] {
		d.add(all[i], all[i+1])
	}
}

// order says what waits for what within a copy.
func (t *Trace) order() [][]int32 {
	d := &depends{t, make([][]int32, len(t.ops))}
	for stage := range t.stages {
		of := map[string][]op{}
		var passes []op
		for _, o := range t.ops {
			if o.stage != stage {
				continue
			}
			of[o.kind] = append(of[o.kind], o)
			if o.kind == forward || o.kind == backward {
				passes = append(passes, o)
			}
		}
		d.chain(passes...)
		// Each kind of message has a stream of its own, on which one follows the other.
		for _, kind := range []string{sendF, recvF, sendB, recvB} {
			d.chain(of[kind]...)
		}
		d.messages(of, passes)
		d.finish(of, passes)
	}
	return d.before
}

// messages puts what is sent behind its pass, and what is received between that before its
// pass and its pass.
func (d *depends) messages(of map[string][]op, passes []op) {
	for pass, kinds := range map[string][2]string{forward: {sendF, recvF}, backward: {sendB, recvB}} {
		for _, o := range of[pass] {
			o.kind = pass
			send, receive, last := o, o, o
			send.kind, receive.kind, last.seq = kinds[0], kinds[1], o.seq-1
			d.add(o, send)
			d.add(receive, o)
			d.add(last, receive) // there is one buffer, which the pass before empties
		}
	}
	// The first gradients are awaited when the last pass but one before them has ended.
	if first := slices.IndexFunc(passes, func(o op) bool { return o.kind == backward }); first >= 2 {
		stage := passes[0].stage
		d.add(passes[first-2], op{recvB, 0, stage})
		d.add(passes[first-2], op{sendB, 0, stage})
	}
}

// finish is what comes before the first pass and behind the last.
func (d *depends) finish(of map[string][]op, passes []op) {
	stage := passes[0].stage
	d.chain(append(slices.Clone(of[gather]), of[scatter]...)...)
	if n := len(of[gather]); n > 0 { // no pass without its weights
		d.add(of[gather][n-1], of[forward][0])
	}
	one := func(kind string) op { return op{kind, 0, stage} }
	last := passes[len(passes)-1]
	d.add(last, one(pause))
	if len(of[apart]) > 0 { // gradients are summed up while passes go on
		d.add(last, of[scatter][0])
		d.add(of[scatter][len(of[scatter])-1], one(norms))
	}
	// What is behind the last pass goes one after the other.
	tail := append([]op{one(pause), one(norms)}, of[embedding]...)
	if tail = append(tail, of[apart]...); len(of[apart]) == 0 {
		tail = append(tail, of[scatter]...)
	}
	d.chain(append(tail, one(clip), one(update))...)
}

// party is who takes part in one exchange, by operation; the same of each copy has its own,
// unless all copies take part.
func (t *Trace) parties() (all [][]int32) {
	var clips, embeddings []int32
	for i, o := range t.ops {
		k := known[o.kind]
		switch {
		case o.kind == clip:
			clips = append(clips, int32(i))
		case o.kind == embedding:
			embeddings = append(embeddings, int32(i))
		case k.partner != "":
			to := op{k.partner, o.seq, o.stage + 1}
			if o.kind == recvB {
				to = op{sendB, o.seq, o.stage + 1}
			}
			if other, there := t.id[to]; there {
				all = append(all, []int32{int32(i), other})
			}
		case k.meets && k.copies:
			all = append(all, []int32{int32(i)})
		}
	}
	return append(all, clips, embeddings)
}

// graph is one step as tasks: those of the operations, copy by copy, then the instants at which
// all of a party are there. Nothing waits for room: what a worker does in which order the
// operations say.
func (t *Trace) graph() (*taskgraph.Graph, [][]int32) {
	n := len(t.ops)
	g := &taskgraph.Graph{Tasks: make([]taskgraph.Task, t.copies*n)}
	g.AddResource(taskgraph.Resource{Kind: taskgraph.Prioritised, Slots: 1 << 30})
	before := t.order()
	meeting := make([]int32, t.copies*n) // of each operation, as a task; 0 is none
	var met [][]int32
	for _, party := range t.parties() {
		together := make([][]int32, t.copies)
		for c := range t.copies {
			at := c
			if len(party) > 0 && known[t.ops[party[0]].kind].copies {
				at = 0 // one party of all copies
			}
			for _, o := range party {
				together[at] = append(together[at], int32(c*n)+o)
			}
		}
		for _, who := range together {
			if len(who) == 0 {
				continue
			}
			// Who takes part begins at this instant, however long before it was there.
			instant := g.AddTask(taskgraph.Task{})
			met = append(met, who)
			for _, task := range who {
				meeting[task] = instant
				g.Edges = append(g.Edges, taskgraph.Edge{Before: instant, After: task})
			}
		}
	}
	for c := range t.copies {
		for i, list := range before {
			task := int32(c*n + i)
			// To be there is to have done all that comes before.
			waits := task
			if meeting[task] > 0 {
				waits = meeting[task]
			}
			for _, b := range list {
				g.Edges = append(g.Edges, taskgraph.Edge{Before: int32(c*n) + b, After: waits})
			}
		}
	}
	return g, met
}
