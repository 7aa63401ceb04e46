package plane

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/queue"
)

// trees counts the trees of queues in the journal.
func (w *bench) trees() (n int) {
	w.t.Helper()
	err := w.journal.Replay(1, func(b store.Batch) error {
		for _, r := range b.Events {
			if r.Kind == engine.Shares.String() {
				n++
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// TestQueues: the tree that a plane is started with is journaled where it is another
// than there was; one that was set meanwhile stays until another start names one.
func TestQueues(t *testing.T) {
	w := newBench(t, t.TempDir(), "fifo")
	defer w.close()
	now := func() string {
		var names []string
		for _, q := range w.plane.engine.View().Queues().Queues {
			names = append(names, q.Name)
		}
		return strings.Join(names, " ")
	}
	start := func(tree *queue.Tree, want string, trees int) {
		t.Helper()
		w.config.Queues = tree
		w.start()
		if got := now(); got != want || w.trees() != trees {
			t.Fatalf("the queues are %q, want %q; %d trees were journaled, want %d", got, want, w.trees(), trees)
		}
	}
	first, second := queue.Flat("a", "b"), queue.Flat("c")
	start(nil, "", 0)
	start(&first, " a b", 1)
	w.submit("x", 1)
	w.settle()
	start(&first, " a b", 1)
	if r := w.ask(engine.Event{Kind: engine.Shares, Queues: &second}, ""); r.Err != nil || now() != " c" {
		t.Fatalf("set while it runs: %q, %v", now(), r.Err)
	}
	if err := w.plane.recover(); err != nil { // as after a disk that was full
		t.Fatal(err)
	}
	if w.step(); now() != " c" {
		t.Fatalf("back at what is durable the queues are %q", now())
	}
	w.submit("y", 1)
	w.settle()
	start(nil, " c", 2)
	start(&first, " a b", 3)
	if err := w.plane.Balance(); err != nil {
		t.Error(err)
	}
	w.finishAll()
	w.verify()
	wrong := queue.Flat("a")
	wrong.Queues[1].Limit = []queue.Amount{{Model: "tpu", Milli: 1}}
	w.config.Queues = &wrong
	if _, err := Open(w.config); err == nil || !strings.Contains(err.Error(), "tpu") {
		t.Errorf("queues of a device model that is not there: %v", err)
	}
}
