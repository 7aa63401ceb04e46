package plane

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/plan"
)

// switchTo asks for another strategy; "" is the one before.
func (w *bench) switchTo(name string) error {
	w.t.Helper()
	s := Switch{Undo: name == ""}
	if name != "" {
		var err error
		if s.To, err = catalogue.Resolve(name); err != nil {
			w.t.Fatal(err)
		}
	}
	m := w.plane.switching(s, &Switched{})
	w.step(m)
	return (<-m.reply).Err
}

// TestSwitch: strategies are switched and gone back from, over restarts with and
// without a snapshot; a start that names none goes on with the last one, and one that
// names another wins, and can be undone too.
func TestSwitch(t *testing.T) {
	w := newBench(t, t.TempDir(), "fifo")
	defer w.close()
	w.submit("a", 3)
	w.submit("b", 2)
	w.settle()
	for _, x := range []struct{ do, want, err string }{
		{"undo", "fifo", "no other strategy"},
		{"switch tiresias", "tiresias", ""},
		{"switch tiresias", "tiresias", "decides already"},
		{"switch srtf", "srtf", ""},
		{"start", "srtf", ""},
		{"undo", "tiresias", ""},
		{"snapshot", "tiresias", ""},
		{"start", "tiresias", ""},
		{"start las", "las", ""},
		{"undo", "tiresias", ""},
		{"start", "tiresias", ""},
		{"undo", "fifo", ""},
		{"undo", "fifo", "no other strategy"},
		{"start fifo", "fifo", ""},
		{"switch fifo-strict+declared", "fifo-strict+declared", ""},
		{"start", "fifo-strict+declared", ""},
		{"undo", "fifo", ""},
	} {
		verb, name, _ := strings.Cut(x.do, " ")
		var err error
		switch verb {
		case "undo", "switch":
			err = w.switchTo(name)
		case "snapshot":
			w.plane.lastSnapshot()
		case "start":
			w.config.Strategy = catalogue.Composition{}
			if name != "" {
				w.strategy(name)
			}
			w.start()
		}
		if (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
			t.Errorf("%s: %v, expected %q", x.do, err, x.err)
		}
		if got := w.plane.Strategy(); got != x.want {
			t.Fatalf("after %s, %s decides, expected %s", x.do, got, x.want)
		}
		w.settle()
	}
	if n := w.plane.engine.View().Jobs(); n != 2 {
		t.Errorf("there are %d jobs of 2", n)
	}
	w.finishAll()
	w.verify()
}

// TestSwitchDecides: from the switch on the new strategy decides, and a second one in
// the same batch is refused.
func TestSwitchDecides(t *testing.T) {
	w := newBench(t, t.TempDir(), "fifo-strict")
	defer w.close()
	w.submit("first", 3)
	w.settle()
	wide, small := w.submit("wide", 4), w.submit("small", 1)
	if w.phase(small) != plan.Waiting {
		t.Fatalf("nobody passes the first in the queue, but small is %s", w.phase(small))
	}
	to := [2]message{}
	for i, name := range []string{"fifo", "las"} {
		c, err := catalogue.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		to[i] = w.plane.switching(Switch{To: c}, &Switched{})
	}
	w.step(to[:]...)
	if a, b := <-to[0].reply, <-to[1].reply; a.Err != nil || b.Err == nil || w.plane.Strategy() != "fifo" {
		t.Errorf("two strategies at once: %v and %v, %s decides", a.Err, b.Err, w.plane.Strategy())
	}
	if w.phase(small) != plan.Active || w.phase(wide) != plan.Waiting {
		t.Errorf("under fifo small is %s and wide is %s", w.phase(small), w.phase(wide))
	}
	w.finishAll()
	w.verify()
}

// TestFirstStrategy: where none was ever named, one decides all the same, and a journal
// that begins with another goes on with that.
func TestFirstStrategy(t *testing.T) {
	w := newBench(t, t.TempDir(), "las")
	defer w.close()
	w.config.Strategy = catalogue.Composition{}
	w.start()
	if got := w.plane.Strategy(); got != "las" {
		t.Errorf("%s goes on", got)
	}
	dir := t.TempDir()
	w.close()
	w.open(dir)
	w.start()
	if got := w.plane.Strategy(); got != catalogue.House {
		t.Errorf("%s begins", got)
	}
	n := 0
	if err := w.journal.Replay(1, func(store.Batch) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("%d batches, %v", n, err)
	}
	w.verify()
}
