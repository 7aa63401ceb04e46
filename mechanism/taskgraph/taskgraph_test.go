package taskgraph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
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
	// Three tasks in two slots.
	slots := func(g *Graph) {
		r := g.AddResource(Resource{Kind: Prioritised, Slots: 2})
		for range 3 {
			g.AddTask(Task{Resource: r, Duration: 10})
		}
	}
	// The second send starts when the first has left its slot, before that has arrived.
	sends := func(g *Graph) {
		slot := g.AddResource(Resource{Kind: Prioritised})
		link := g.AddResource(Resource{Kind: Fluid, Bandwidth: 8, Latency: 7})
		r := g.AddResource(Resource{Kind: Joint, Parts: []int32{slot, link}})
		g.AddTask(Task{Resource: r, Bytes: 100})
		g.AddTask(Task{Resource: r, Bytes: 100})
	}
	// What the narrow link leaves of the wide one goes to the other transfer; an urgent
	// one on the wide link alone holds up both.
	hops := func(g *Graph) {
		narrow, wide := g.AddResource(Resource{Kind: Fluid, Bandwidth: 8, Latency: 1}), g.AddResource(Resource{Kind: Fluid, Bandwidth: 24, Latency: 2})
		g.AddTask(Task{Resource: g.AddResource(Resource{Kind: Joint, Parts: []int32{narrow, wide}}), Bytes: 100, Priority: 1})
		g.AddTask(Task{Resource: wide, Bytes: 100, Priority: 1})
		at := g.AddTask(Task{Resource: g.AddResource(Resource{}), Duration: 20})
		g.AddTask(Task{Resource: wide, Bytes: 30}, at)
	}
	// Each of two tasks needs both resources: the more urgent one takes both. What
	// needs one that is free does not wait for those that also need another.
	both := func(g *Graph) {
		a, b := g.AddResource(Resource{Kind: Prioritised}), g.AddResource(Resource{Kind: Prioritised})
		g.AddTask(Task{Resource: b, Duration: 5})
		g.AddTask(Task{Resource: g.AddResource(Resource{Kind: Joint, Parts: []int32{a, b}}), Duration: 10, Priority: 2})
		g.AddTask(Task{Resource: g.AddResource(Resource{Kind: Joint, Parts: []int32{b, a}}), Duration: 20, Priority: 1})
		g.AddTask(Task{Resource: a, Duration: 5, Priority: 3})
	}
	// The first task of an order waits for its other resource, and is looked at again
	// when another task of the order becomes ready: it runs once nevertheless.
	again := func(g *Graph) {
		a, b := g.AddResource(Resource{}), g.AddResource(Resource{Kind: Prioritised})
		both, other := g.AddResource(Resource{Kind: Joint, Parts: []int32{a, b}}), g.AddResource(Resource{})
		g.AddTask(Task{Resource: both, Duration: 10, Priority: 1})
		g.AddTask(Task{Resource: b, Duration: 10})
		at := g.AddTask(Task{Resource: other, Duration: 5})
		g.AddTask(Task{Resource: a, Duration: 1}, at)
		at = g.AddTask(Task{Resource: other, Duration: 10})
		g.AddTask(Task{Resource: b, Duration: 10}, at)
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
		{"slots", slots, []unit.Time{10, 10, 20}, []unit.Duration{20}},
		{"slot and link", sends, []unit.Time{107, 207}, []unit.Duration{200, 200, 0}},
		{"two hops", hops, []unit.Time{113, 62, 20, 32}, []unit.Duration{100, 110, 0, 20}},
		{"called twice", again, []unit.Time{20, 10, 5, 21, 15, 30}, []unit.Duration{11, 30, 0, 15}},
		{"both or none", both, []unit.Time{5, 35, 25, 5}, []unit.Duration{35, 35, 0, 0}},
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

// TestClasses has a rank pass two microbatches. F keeps activations; I frees most of
// them and leaves W its inputs, so that both classes together peak below the sum of
// their peaks.
func TestClasses(t *testing.T) {
	const activations, inputs = 0, 1
	g := Graph{
		Pools:  []Pool{{}, {LimitKiB: 3}, {Parts: []int32{activations, inputs}, LimitKiB: 20}},
		Memory: [][]Memory{nil, {{Pool: inputs, AllocKiB: 2}}, {{Pool: activations, FreeKiB: 1}}},
	}
	r := g.AddResource(Resource{})
	for range 2 {
		g.AddTask(Task{Resource: r, Duration: 5, Pool: activations, AllocKiB: 10})
	}
	for range 2 {
		g.AddTask(Task{Resource: r, Duration: 5, Pool: activations, FreeKiB: 9, Memory: 1})
	}
	for range 2 {
		g.AddTask(Task{Resource: r, Duration: 5, Pool: inputs, FreeKiB: 2, Memory: 2})
	}
	line := run(t, &g)
	if !slices.Equal(line.PeakKiB, []int64{20, 4, 22}) {
		t.Errorf("peaks %v, want [20 4 22]", line.PeakKiB)
	}
	if want := []Excess{{Pool: 2, Task: 2, At: 10}, {Pool: 1, Task: 3, At: 15}}; !slices.Equal(line.Over, want) {
		t.Errorf("over the limit: %v, want %v", line.Over, want)
	}
}

// TestCritical follows a microbatch over two ranks, the second of which has other work
// before and after; a third rank is never in the way.
func TestCritical(t *testing.T) {
	var g Graph
	first, second := g.AddResource(Resource{}), g.AddResource(Resource{})
	link := g.AddResource(Resource{Kind: Fluid, Bandwidth: 8, Latency: 7})
	a := g.AddTask(Task{Resource: first, Duration: 10})
	g.AddTask(Task{Resource: second, Duration: 5})
	send := g.AddTask(Task{Resource: link, Bytes: 100}, a)
	g.AddTask(Task{Resource: g.AddResource(Resource{}), Duration: 116}, a)
	b := g.AddTask(Task{Resource: second, Duration: 3}, send)
	c := g.AddTask(Task{Resource: second, Duration: 4})
	d := g.AddTask(Task{Resource: first, Duration: 9}, c)
	line := run(t, &g)
	want := []Step{{a, Nothing, -1}, {send, Predecessor, -1}, {b, Wire, -1}, {c, Room, second}, {d, Predecessor, -1}}
	if got := line.Critical; !slices.Equal(got, want) {
		t.Errorf("path %v, want %v", got, want)
	}
	if want := []unit.Duration{114, 112, 0, 0}; line.Makespan != 133 || !slices.Equal(line.Idle, want) {
		t.Errorf("makespan %d, idle %d, want 133 and %d", line.Makespan, line.Idle, want)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		want string
		g    Graph
	}{
		{"a <- b <- a", Graph{Resources: []Resource{{Kind: Prioritised}}, Tasks: make([]Task, 4), Edges: []Edge{{0, 1}, {1, 2}, {2, 1}, {2, 3}},
			Label: func(t int32) string { return []string{"root", "a", "b", "later"}[t] }}},
		{"circle: task 0 <- task 1 <- task 0", Graph{Resources: []Resource{{}}, Tasks: []Task{{}, {}}, Edges: []Edge{{1, 0}}}},
		{"task 0 <- task 0", Graph{Resources: []Resource{{}}, Tasks: []Task{{}}, Edges: []Edge{{0, 0}}}},
		{"resource 3 does not exist", Graph{Tasks: []Task{{Resource: 3}}}},
		{"must not be negative", Graph{Resources: []Resource{{}}, Tasks: []Task{{Duration: -1}}}},
		{"years", Graph{Resources: []Resource{{}}, Tasks: []Task{{Duration: unit.Forever}}}},
		{"pool", Graph{Resources: []Resource{{}}, Tasks: []Task{{Pool: 1 << 30}}}},
		{"1 tasks", Graph{Resources: []Resource{{}}, Tasks: []Task{{}}, Edges: []Edge{{0, 1}}}},
		{"known kind", Graph{Resources: []Resource{{Kind: 9}}}},
		{"Fluid resource only", Graph{Resources: []Resource{{Latency: 1}}}},
		{"2 slots", Graph{Resources: []Resource{{Slots: 2}}}},
		{"0 parts", Graph{Resources: []Resource{{Kind: Joint}}}},
		{"not Joint itself", Graph{Resources: []Resource{{Kind: Joint, Parts: []int32{0}}}}},
		{"named once", Graph{Resources: []Resource{{}, {Kind: Joint, Parts: []int32{0, 0}}}}},
		{"expected a duration", Graph{Resources: []Resource{{}}, Tasks: []Task{{Bytes: 1}}}},
		{"over links: expected bytes", Graph{Resources: []Resource{{Kind: Fluid}}, Tasks: []Task{{Duration: 1}}}},
		{"memory 1: expected one of the 0 rows", Graph{Resources: []Resource{{}}, Tasks: []Task{{Memory: 1}}}},
		{"memory row 0: pool 9", Graph{Memory: [][]Memory{{{Pool: 9}}}}},
		{"limit -1", Graph{Pools: []Pool{{LimitKiB: -1}}}},
		{"earlier pool", Graph{Pools: []Pool{{Parts: []int32{1}}, {}}}},
		{"part of no other", Graph{Pools: []Pool{{}, {Parts: []int32{0}}, {Parts: []int32{0}}}}},
	} {
		if _, err := Run(&c.g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
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
