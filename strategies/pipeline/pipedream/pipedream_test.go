package pipedream

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"pgregory.net/rapid"
)

// TestNoBubble: a run of K iterations takes as long as all of its work and one way there and
// back; with a flush each of them has that way.
func TestNoBubble(t *testing.T) {
	for _, o := range []pipeline.Ordering{New(Config{5}), NewHet(HetConfig{FlushAfter: 5})} {
		for p := 1; p <= 6; p++ {
			for _, m := range []int{1, p, 3 * p} {
				s, _ := o.Schedule(p, m, nil)
				got, why := s.Time(pipeline.Like(p))
				if want := 3 * unit.Duration(5*m+p-1); why != "" || got.Makespan != want {
					t.Errorf("%T, %d ranks, %d microbatches: %v (%s), want %v", o, p, m, got.Makespan, why, want)
				}
			}
		}
	}
}

// held follows a rank's order: before each forward pass, how many microbatches have
// finished.
func held(order []pipeline.Op, see func(op pipeline.Op, finished int)) {
	finished := 0
	for _, op := range order {
		see(op, finished)
		if op.Kind == pipeline.Backward {
			finished++
		}
	}
}

// TestVersions: stage s of n holds n-s versions of its weights, by the orders alone and by
// the account of memory.
func TestVersions(t *testing.T) {
	for n := 1; n <= 8; n++ {
		s, _ := New(Config{2}).Schedule(n, 2*n, nil)
		c := pipeline.Like(n)
		c.ParamCopies = 1
		for i := range c.Stages {
			c.Stages[i].ParamKiB = 100
		}
		got, why := s.Time(c)
		if why != "" {
			t.Fatal(why)
		}
		for stage, order := range s.Orders {
			uses, most := map[int32]int{}, 0
			held(order, func(op pipeline.Op, finished int) {
				if op.Kind == pipeline.Backward {
					delete(uses, op.Micro)
					return
				}
				uses[op.Micro] = finished
				versions := map[int]bool{}
				for _, v := range uses {
					versions[v] = true
				}
				most = max(most, len(versions))
			})
			if want := n - stage; most != want || got.Peak[stage].StashKiB != int64(100*(want-1)) {
				t.Errorf("stage %d of %d: %d versions, %d KiB of old ones, want %d", stage, n, most, got.Peak[stage].StashKiB, want)
			}
		}
	}
}

// TestSameVersion trains a product of scalar weights, one a stage, in the order of the passes'
// times: each backward pass uses the weight of its forward pass. What comes out is, to the
// last bit, the rule of PipeDream: microbatch k sees at stage s of n the weight of n-s-1
// microbatches ago.
func TestSameVersion(t *testing.T) {
	const n, m, rate = 4, 20, 0.01
	s, _ := New(Config{1}).Schedule(n, m, nil)
	got, why := s.Time(pipeline.Like(n))
	if why != "" {
		t.Fatal(why)
	}
	type event struct {
		op pipeline.Op
		at pipeline.Span
	}
	var events []event
	for r, order := range s.Orders {
		for i, op := range order {
			events = append(events, event{op, got.Spans[r][i]})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at.End, b.at.End) })
	sample := func(k int32) (x, y float64) { return 1 + float64(k)/7, math.Sin(float64(k)) }
	var newest [n]float64
	var kept, input, gradient [n + 1][m]float64
	for i := range newest {
		newest[i] = 1 + float64(i)/10
	}
	for k := range int32(m) {
		input[0][k], _ = sample(k)
	}
	for _, e := range events {
		stage, k := e.op.Stage, e.op.Micro
		if e.op.Kind == pipeline.Forward {
			kept[stage][k] = newest[stage]
			input[stage+1][k] = input[stage][k] * newest[stage]
			if stage == n-1 {
				_, y := sample(k)
				gradient[n][k] = input[n][k] - y
			}
			continue
		}
		gradient[stage][k] = gradient[stage+1][k] * kept[stage][k]
		newest[stage] -= rate * gradient[stage+1][k] * input[stage][k]
	}
	var history [n][m + 1]float64 // of each stage, after so many microbatches
	for i := range history {
		history[i][0] = 1 + float64(i)/10
	}
	for k := range m {
		var w, a [n + 1]float64
		a[0], _ = sample(int32(k))
		for i := range n {
			w[i] = history[i][max(0, k-(n-1-i))]
			a[i+1] = a[i] * w[i]
		}
		_, y := sample(int32(k))
		g := a[n] - y
		for i := n - 1; i >= 0; i-- {
			history[i][k+1] = history[i][k] - rate*g*a[i]
			g *= w[i]
		}
	}
	for i := range n {
		if newest[i] != history[i][m] {
			t.Errorf("stage %d ends with %v, the rule says %v", i, newest[i], history[i][m])
		}
	}
}

// TestStaleness: under HetPipe a microbatch lacks the updates of no more than 2 Nm - 2 before it, which
// is (D+1)(s+1) + s - 1 with s = Nm - 1 and D = 0, and some lack as many; no more than Nm are
// under way. One at a time lacks none.
func TestStaleness(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		p, nm := rapid.IntRange(1, 6).Draw(t, "ranks"), rapid.IntRange(1, 12).Draw(t, "in flight")
		s, _ := NewHet(HetConfig{3, nm}).Schedule(p, 2*nm, nil)
		if s.Wave != int32(nm) {
			t.Fatalf("waves of %d", s.Wave)
		}
		if _, why := s.Time(pipeline.Like(p)); why != "" {
			t.Fatal(why)
		}
		for r, order := range s.Orders {
			most, under := 0, 0
			held(order, func(op pipeline.Op, finished int) {
				if op.Kind == pipeline.Forward {
					most = max(most, int(op.Micro)-finished/nm*nm)
					under = max(under, int(op.Micro)+1-finished)
				}
			})
			if bound := 2*nm - 2; most > bound || under > nm || r == 0 && nm > 1 && nm <= p && most != bound {
				t.Fatalf("%d ranks, %d in flight: on rank %d one lacks %d and %d are under way, at most %d", p, nm, r, most, under, bound)
			}
		}
	})
}
