package mlfs

import (
	"os"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/schedule/las"
	"github.com/musterdl/muster/strategies/schedule/tiresias"
)

func backfill() schedule.Order { return fifo.New(fifo.Default()) }
func attained() schedule.Order { return las.New(las.Default()) }

// patient is LAS as one would tune it where a restart takes a minute.
func patient() schedule.Order {
	return las.New(las.Config{Quantum: 30 * unit.Minute, Growth: 1, MinimumRun: 5 * unit.Minute})
}

func queues() schedule.Order    { return tiresias.New(tiresias.Default()) }
func heuristic() schedule.Order { return New(Default()) }
func learned() schedule.Order   { return NewLearned(Default()) }

// uncontrolled is MLF-H without MLF-C.
func uncontrolled() schedule.Order {
	c := Default()
	c.Overload = 0
	return New(c)
}

func seeds(most int) int {
	if os.Getenv("MUSTER_LONG") == "1" {
		return most
	}
	return 2
}

// The acceptance line: under an overload of 1.3 in which a fifth of the jobs pass their
// target on the way, MLF-H with MLF-C takes at most .9 of Tiresias' mean JCT, and nobody
// is ended above his target.
func TestOverload(t *testing.T) {
	n := seeds(20)
	base, _ := overload.mean(t, 1, n, false, queues)
	plain, _ := overload.mean(t, 1, n, false, uncontrolled)
	full, _ := overload.mean(t, 1, n, false, heuristic)
	rl, _ := overload.mean(t, 1, n, false, learned)
	t.Logf("mean JCT over Tiresias: mlfs %.3f, without load control %.3f, mlfs-learned %.3f; %d of %d jobs ended early, %d of them above their target",
		full.jct/base.jct, plain.jct/base.jct, rl.jct/base.jct, full.shed, n*480, full.short)
	if full.jct > .9*base.jct || full.short > 0 || full.shed == 0 || full.jct > plain.jct {
		t.Errorf("%+v, Tiresias %+v, without load control %+v", full, base, plain)
	}
}

// The learned ranking on histories that it never saw: no worse than MLF-H by 2 %, than
// LAS by 2 %, and at least 15 % better than FIFO with backfill.
func TestLearned(t *testing.T) {
	n := seeds(20)
	for name, m := range map[string]mix{"silent": kinds()[0], "reporting": kinds()[1]} {
		rl, _ := m.mean(t, 1, n, false, learned)
		for _, x := range []struct {
			name  string
			order func() schedule.Order
			most  float64
		}{{"FIFO with backfill", backfill, .85}, {"LAS", attained, 1.02}, {"LAS with a quantum of 30 min", patient, 1.02}, {"MLF-H", heuristic, 1.02}, {"Tiresias", queues, 1}} {
			o, _ := m.mean(t, 1, n, false, x.order)
			t.Logf("%s: %.3f of %s", name, rl.jct/o.jct, x.name)
			if rl.jct > x.most*o.jct {
				t.Errorf("%s: mean JCT is %.3f of %s, at most %g was to be", name, rl.jct/o.jct, x.name, x.most)
			}
		}
	}
}
