package taskgraph

import (
	"reflect"
	"slices"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"pgregory.net/rapid"
)

// random draws a graph of every kind of resource; no transfer goes over more than so
// many links.
func random(t *rapid.T, links int) *Graph {
	g := &Graph{}
	small := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
	for range 1 + small("ordered", 2) {
		g.AddResource(Resource{})
	}
	for range 1 + small("prioritised", 2) {
		g.AddResource(Resource{Kind: Prioritised, Slots: int32(small("slots", 3))})
	}
	serial := len(g.Resources)
	for range 1 + small("links", 3) {
		g.AddResource(Resource{Kind: Fluid, Bandwidth: unit.Mbps(small("bandwidth", 50)), Latency: unit.Duration(small("latency", 9))})
	}
	single := len(g.Resources)
	for range small("joint", 4) {
		all := rapid.Permutation(ids(0, serial)).Draw(t, "serial parts")[:small("held", min(3, serial))]
		parts := append(slices.Clone(all), rapid.Permutation(ids(serial, single)).Draw(t, "hops")[:small("hop", min(links, single-serial))]...)
		if len(parts) > 0 {
			g.AddResource(Resource{Kind: Joint, Parts: parts})
		}
	}
	g.Memory = [][]Memory{nil, {{Pool: 0, AllocKiB: 3}, {Pool: 1, FreeKiB: 2}}}
	g.Pools = []Pool{{}, {LimitKiB: 20}, {Parts: []int32{0, 1}, LimitKiB: 40}}
	for i := range small("tasks", 25) {
		task := Task{Resource: int32(small("resource", len(g.Resources)-1)), Priority: int32(small("priority", 2) - 1), Pool: int32(small("pool", 3)),
			AllocKiB: int64(small("alloc", 9)), FreeKiB: int64(small("free", 9)), Memory: int32(small("memory", 1))}
		g.Tasks = append(g.Tasks, task)
		if g.overLinks(int32(i)) {
			g.Tasks[i].Bytes = int64(max(0, small("bytes", 1000)-100))
		} else {
			g.Tasks[i].Duration = unit.Duration(small("duration", 30))
		}
		for range small("edges", min(i, 2)) {
			g.Edges = append(g.Edges, Edge{int32(small("before", i-1)), int32(i)})
		}
	}
	return g
}

func ids(from, to int) (all []int32) {
	for i := from; i < to; i++ {
		all = append(all, int32(i))
	}
	return all
}

// TestEqualsNaive holds the clock against the oracle: exactly, where no transfer
// needs two links.
func TestEqualsNaive(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		g := random(t, 1)
		line, err := Run(g)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := Run(g); !reflect.DeepEqual(again, line) {
			t.Fatalf("a second run differs: %v and %v", again, line)
		}
		checkPath(t, g, &line)
		checkOver(t, g, &line)
		want := runNaive(g)
		line.Critical, line.Over = nil, nil
		if !reflect.DeepEqual(line, want) {
			t.Fatalf("%+v\ngot  %+v\nwant %+v", g, line, want)
		}
	})
}

// TestHopsEqualNaive has transfers over several links, whose rates the two clocks
// find by different sums: each instant is right within a microsecond.
func TestHopsEqualNaive(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		g := random(t, 4)
		line, err := Run(g)
		if err != nil {
			t.Fatal(err)
		}
		checkPath(t, g, &line)
		want := runNaive(g)
		near := func(got, want []unit.Time) bool {
			return slices.EqualFunc(got, want, func(a, b unit.Time) bool { return a-b <= 1 && b-a <= 1 })
		}
		if !near(line.Start, want.Start) || !near(line.End, want.End) {
			t.Fatalf("%+v\ngot  %+v\nwant %+v", g, line, want)
		}
		for r := range line.Busy {
			if d := line.Busy[r] - want.Busy[r]; d > 50 || d < -50 { // a microsecond for each task
				t.Fatalf("busy: got %v, want %v", line.Busy, want.Busy)
			}
		}
	})
}

// checkPath: the critical path leads from zero to the makespan, and each step begins
// with what it waited for.
func checkPath(t *rapid.T, g *Graph, line *Timeline) {
	path := line.Critical
	at := unit.Time(0)
	for i, step := range path {
		start := line.Start[step.Task]
		switch {
		case (step.Wait == Nothing) != (i == 0), (step.Wait == Room) != (step.Resource >= 0):
			t.Fatalf("step %d of %+v", i, path)
		case step.Wait == Room && (start > at || start < line.Start[path[i-1].Task]), step.Wait != Room && start != at:
			t.Fatalf("step %d of %+v starts at %d, but the one before ends at %d", i, path, start, at)
		case (step.Wait == Predecessor || step.Wait == Wire) && !slices.Contains(g.Edges, Edge{path[i-1].Task, step.Task}):
			t.Fatalf("step %d of %+v waits for no predecessor", i, path)
		}
		at = line.End[step.Task]
	}
	if at != unit.Time(line.Makespan) {
		t.Fatalf("the path %+v ends at %d, not at %d", path, at, line.Makespan)
	}
}

// checkOver: a pool is reported once, and exactly where its peak exceeds its limit.
func checkOver(t *rapid.T, g *Graph, line *Timeline) {
	reported := make([]int, len(g.Pools))
	for _, x := range line.Over {
		if reported[x.Pool]++; x.At != line.Start[x.Task] {
			t.Fatalf("%+v: the task starts at %d", x, line.Start[x.Task])
		}
	}
	for p, pool := range g.Pools {
		if over := pool.LimitKiB > 0 && line.PeakKiB[p] > pool.LimitKiB; over != (reported[p] == 1) || reported[p] > 1 {
			t.Fatalf("pool %d with a peak of %d and a limit of %d is reported %d times", p, line.PeakKiB[p], pool.LimitKiB, reported[p])
		}
	}
}
