package taskgraph

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"pgregory.net/rapid"
)

func run(t testing.TB, g *Graph) Timeline {
	t.Helper()
	line, err := Run(g)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestClosedForms(t *testing.T) {
	const ms = unit.Millisecond
	chain := func(g *Graph) {
		a := g.AddTask(Task{Resource: g.AddResource(Resource{}), Duration: 3 * ms})
		b := g.AddTask(Task{Resource: g.AddResource(Resource{}), Duration: 4 * ms}, a)
		g.AddTask(Task{Resource: 0, Duration: 5 * ms}, b)
	}
	fork := func(g *Graph) {
		r := g.AddResource(Resource{})
		root := g.AddTask(Task{Resource: r, Duration: ms})
		b := g.AddTask(Task{Resource: g.AddResource(Resource{}), Duration: 7 * ms}, root)
		c := g.AddTask(Task{Resource: g.AddResource(Resource{}), Duration: 2 * ms}, root)
		g.AddTask(Task{Resource: r, Duration: ms}, b, c)
	}
	// One byte per microsecond shared by 100, 200 and 300 bytes; nothing takes no time.
	shared := func(g *Graph) {
		l := g.AddResource(Resource{Kind: Fluid, Bandwidth: 8})
		for _, bytes := range []int64{100, 200, 300, 0} {
			g.AddTask(Task{Resource: l, Bytes: bytes})
		}
	}
	// The urgent transfer comes after 50 bytes of the other and holds it up for 100;
	// both arrive 7 later than their last byte leaves.
	urgent := func(g *Graph) {
		l := g.AddResource(Resource{Kind: Fluid, Bandwidth: 8, Latency: 7})
		g.AddTask(Task{Resource: l, Bytes: 200, Priority: 1})
		at := g.AddTask(Task{Resource: g.AddResource(Resource{}), Duration: 50})
		g.AddTask(Task{Resource: l, Bytes: 100}, at)
	}
	unlimited := func(g *Graph) {
		l := g.AddResource(Resource{Kind: Fluid, Latency: 3})
		a := g.AddTask(Task{Resource: l, Bytes: 1 << 40})
		g.AddTask(Task{Resource: l, Bytes: 1 << 40}, a)
	}
	// The first to run is the lowest priority, then the lowest id.
	priority := func(g *Graph) {
		r := g.AddResource(Resource{Kind: Prioritised})
		root := g.AddTask(Task{Resource: r, Duration: 1})
		g.AddTask(Task{Resource: r, Duration: 10, Priority: 2}, root)
		g.AddTask(Task{Resource: r, Duration: 20, Priority: 1}, root)
		g.AddTask(Task{Resource: r, Duration: 30, Priority: 1}, root)
	}
	for _, c := range []struct {
		name  string
		build func(*Graph)
		ends  []unit.Time
		busy  []unit.Duration
	}{
		{"chain", chain, []unit.Time{3000, 7000, 12000}, []unit.Duration{8000, 4000}},
		{"fork and join", fork, []unit.Time{1000, 8000, 3000, 9000}, []unit.Duration{2000, 7000, 2000}},
		{"shared link", shared, []unit.Time{300, 500, 600, 0}, []unit.Duration{600}},
		{"urgent class", urgent, []unit.Time{307, 50, 157}, []unit.Duration{300, 50}},
		{"unlimited link", unlimited, []unit.Time{3, 6}, []unit.Duration{0}},
		{"priority then id", priority, []unit.Time{1, 61, 21, 51}, []unit.Duration{61}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g Graph
			c.build(&g)
			line := run(t, &g)
			if !slices.Equal(line.End, c.ends) || !slices.Equal(line.Busy, c.busy) || line.Makespan != unit.Duration(slices.Max(c.ends)) {
				t.Errorf("ends %v busy %v makespan %v, want %v and %v", line.End, line.Busy, line.Makespan, c.ends, c.busy)
			}
		})
	}
}

// TestMemory holds two amounts at once only where their tasks overlap: what ends
// at an instant frees before what starts then.
func TestMemory(t *testing.T) {
	var g Graph
	r := g.AddResource(Resource{})
	for range 3 {
		g.AddTask(Task{Resource: r, Duration: 5, AllocKiB: 10, FreeKiB: 10})
	}
	g.AddTask(Task{Resource: g.AddResource(Resource{}), Duration: 5, AllocKiB: 7, Pool: 1})
	g.AddTask(Task{Resource: r, AllocKiB: 4, Pool: 1})
	if line := run(t, &g); !slices.Equal(line.PeakKiB, []int64{10, 11}) {
		t.Errorf("peaks %v, want [10 11]", line.PeakKiB)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		want string
		g    Graph
	}{
		{"a <- b <- a", Graph{Resources: []Resource{{Kind: Prioritised}}, Tasks: []Task{{Name: "root"}, {Name: "a"}, {Name: "b"}, {Name: "later"}},
			Edges: []Edge{{0, 1}, {1, 2}, {2, 1}, {2, 3}}}},
		{"circle: task 0 <- task 1 <- task 0", Graph{Resources: []Resource{{}}, Tasks: []Task{{}, {}}, Edges: []Edge{{1, 0}}}},
		{"task 0 <- task 0", Graph{Resources: []Resource{{}}, Tasks: []Task{{}}, Edges: []Edge{{0, 0}}}},
		{"resource 3 does not exist", Graph{Tasks: []Task{{Resource: 3}}}},
		{"must not be negative", Graph{Resources: []Resource{{}}, Tasks: []Task{{Duration: -1}}}},
		{"years", Graph{Resources: []Resource{{}}, Tasks: []Task{{Duration: unit.Forever}}}},
		{"pool", Graph{Resources: []Resource{{}}, Tasks: []Task{{Pool: 1 << 30}}}},
		{"1 tasks", Graph{Resources: []Resource{{}}, Tasks: []Task{{}}, Edges: []Edge{{0, 1}}}},
		{"known kind", Graph{Resources: []Resource{{Kind: 9}}}},
	} {
		if _, err := Run(&c.g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}

// TestOrderedEqualsLongestPath checks random graphs on ordered resources against
// one pass over the tasks: each starts at the latest end of what it waits for.
func TestOrderedEqualsLongestPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := Graph{Resources: make([]Resource, rapid.IntRange(1, 4).Draw(t, "resources"))}
		n := rapid.IntRange(0, 30).Draw(t, "tasks")
		want, free := make([]unit.Time, n), make([]unit.Time, len(g.Resources))
		for i := range n {
			task := Task{Resource: int32(rapid.IntRange(0, len(g.Resources)-1).Draw(t, "resource")),
				Duration: unit.Duration(rapid.IntRange(0, 9).Draw(t, "duration"))}
			start := free[task.Resource]
			g.AddTask(task)
			for range rapid.IntRange(0, min(i, 3)).Draw(t, "edges") {
				before := rapid.IntRange(0, i-1).Draw(t, "before")
				g.Edges = append(g.Edges, Edge{int32(before), int32(i)})
				start = max(start, want[before])
			}
			want[i] = start.Add(task.Duration)
			free[task.Resource] = want[i]
		}
		line, err := Run(&g)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(line.End, want) {
			t.Fatalf("ends %v, want %v", line.End, want)
		}
		if again, _ := Run(&g); !reflect.DeepEqual(again, line) {
			t.Fatalf("a second run differs: %v and %v", again, line)
		}
	})
}

// TestLinkEqualsNaive checks the counters per class against a simulation that
// updates every transfer at every change, with ends rounded up to a microsecond.
func TestLinkEqualsNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bandwidth := rapid.IntRange(1, 500).Draw(t, "bandwidth")
		g := Graph{Resources: []Resource{{Kind: Fluid, Bandwidth: unit.Mbps(bandwidth)}}}
		n := rapid.IntRange(1, 12).Draw(t, "transfers")
		arrive, bits, class := make([]float64, n), make([]float64, n), make([]int32, n)
		for i := range n {
			at, bytes := rapid.IntRange(0, 200).Draw(t, "arrive"), rapid.Int64Range(1, 5000).Draw(t, "bytes")
			class[i] = int32(rapid.IntRange(-1, 1).Draw(t, "class"))
			arrive[i], bits[i] = float64(at), 8*float64(bytes)
			delay := g.AddTask(Task{Resource: g.AddResource(Resource{}), Duration: unit.Duration(at)})
			g.AddTask(Task{Bytes: bytes, Priority: class[i]}, delay)
		}
		line, err := Run(&g)
		if err != nil {
			t.Fatal(err)
		}
		want := naive(float64(bandwidth), arrive, bits, class)
		for i := range n {
			if got := line.End[2*i+1]; float64(got) != want[i] {
				t.Fatalf("transfer %d ends at %v, want %v", i, got, want[i])
			}
		}
	})
}

// naive gives the ends of transfers on one link.
func naive(bandwidth float64, arrive, bits []float64, class []int32) []float64 {
	left, end, now := slices.Clone(bits), make([]float64, len(bits)), 0.0
	for over := 0; over < len(bits); {
		var on []int
		step := 1e18
		for i := range bits {
			switch {
			case left[i] < 0:
			case arrive[i] > now:
				step = min(step, arrive[i]-now)
			case len(on) > 0 && class[i] > class[on[0]]:
			case len(on) > 0 && class[i] < class[on[0]]:
				on = []int{i}
			default:
				on = append(on, i)
			}
		}
		for _, i := range on {
			step = min(step, math.Ceil(left[i]*float64(len(on))/bandwidth-1e-3))
		}
		now += step
		for _, i := range on {
			if left[i] -= step * bandwidth / float64(len(on)); left[i]*float64(len(on))/bandwidth <= 1e-3 {
				left[i], end[i] = -1, now
				over++
			}
		}
	}
	return end
}

// BenchmarkRun times a pipeline of 16 devices and 256 microbatches, transfers
// between them included: tasks per second is what counts.
func BenchmarkRun(b *testing.B) {
	const devices, micro = 16, 256
	var g Graph
	for i := range devices {
		g.AddResource(Resource{Name: fmt.Sprint("device", i)})
		g.AddResource(Resource{Name: fmt.Sprint("link", i), Kind: Fluid, Bandwidth: 100_000, Latency: 5})
	}
	for range micro {
		var before []int32
		for d := range int32(devices) {
			work := g.AddTask(Task{Resource: 2 * d, Duration: 1000 + unit.Duration(d), Pool: d, AllocKiB: 9}, before...)
			before = []int32{g.AddTask(Task{Resource: 2*d + 1, Bytes: 1 << 20}, work)}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		run(b, &g)
	}
	b.ReportMetric(float64(len(g.Tasks)*b.N)/b.Elapsed().Seconds(), "tasks/s")
}
