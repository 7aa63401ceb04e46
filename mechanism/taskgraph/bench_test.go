package taskgraph

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
)

// pipelined is one iteration as pipelines run it: each rank computes F, I and W of each
// microbatch, ahead by the ranks behind it, and sends go over a link each way between
// neighbours. 64 ranks and 512 microbatches make 162,816 tasks.
func pipelined(ranks, micros int32) *Graph {
	g := &Graph{Resources: make([]Resource, 0, 3*ranks)}
	for range ranks {
		g.AddResource(Resource{Kind: Ordered})
	}
	for range 2 * (ranks - 1) {
		g.AddResource(Resource{Kind: Fluid, Bandwidth: 100_000, Latency: 5})
	}
	return g.pipeline(ranks, micros, ranks)
}

// slotted is the same with 4 send slots and a receive slot on each rank, and each send
// over the links of both.
func slotted(ranks, micros int32) *Graph {
	g := &Graph{}
	for range ranks {
		g.AddResource(Resource{Kind: Ordered})
	}
	for range ranks {
		g.AddResource(Resource{Kind: Prioritised, Slots: 4})
		g.AddResource(Resource{Kind: Prioritised})
		g.AddResource(Resource{Kind: Fluid, Bandwidth: 100_000, Latency: 5})
		g.AddResource(Resource{Kind: Fluid, Bandwidth: 100_000})
	}
	for r := range ranks - 1 {
		here, there := ranks+4*r, ranks+4*(r+1)
		g.AddResource(Resource{Kind: Joint, Parts: []int32{here, there + 1, here + 2, there + 3}})
		g.AddResource(Resource{Kind: Joint, Parts: []int32{there, here + 1, there + 2, here + 3}})
	}
	return g.pipeline(ranks, micros, 5*ranks)
}

// pipeline adds the tasks; the sends between the first two ranks are on resources
// links and links+1, and so on.
func (g *Graph) pipeline(ranks, micros, links int32) *Graph {
	const forward, input, weight = 1000, 1100, 900 // µs
	sends := 2 * (ranks - 1) * micros
	g.Tasks, g.Edges = make([]Task, 0, 3*ranks*micros+sends), make([]Edge, 0, 2*sends)
	tasks := make([]int32, 2*ranks*micros) // F and I
	for r := range ranks {
		f, i := tasks[2*r*micros:(2*r+1)*micros], tasks[(2*r+1)*micros:(2*r+2)*micros]
		ahead := min(ranks-1-r, micros)
		for k := range micros + ahead {
			if k < micros {
				f[k] = g.AddTask(Task{Resource: r, Duration: forward, Pool: r, AllocKiB: 96})
			}
			if k >= ahead {
				i[k-ahead] = g.AddTask(Task{Resource: r, Duration: input, Pool: r, FreeKiB: 64})
				g.AddTask(Task{Resource: r, Duration: weight, Pool: r, FreeKiB: 32})
			}
		}
	}
	send := func(link, from, to int32) {
		t := g.AddTask(Task{Resource: link, Bytes: 1 << 20}, from)
		g.Edges = append(g.Edges, Edge{t, to})
	}
	for r := range ranks - 1 {
		for k := range micros {
			send(links+2*r, tasks[2*r*micros+k], tasks[2*(r+1)*micros+k])
			send(links+2*r+1, tasks[(2*r+3)*micros+k], tasks[(2*r+1)*micros+k])
		}
	}
	return g
}

// BenchmarkPipeline times 64 ranks, the making of the graph included.
func BenchmarkPipeline(b *testing.B) {
	for _, c := range []struct {
		name   string
		make   func(ranks, micros int32) *Graph
		micros int32
	}{{"links", pipelined, 128}, {"links", pipelined, 512}, {"slots and two hops", slotted, 128}, {"slots and two hops", slotted, 512}} {
		b.Run(fmt.Sprint(c.name, "/micros=", c.micros), func(b *testing.B) {
			b.ReportAllocs()
			tasks := 0
			for b.Loop() {
				g := c.make(64, c.micros)
				run(b, g)
				tasks = len(g.Tasks)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tasks), "ns/task")
			b.ReportMetric(float64(tasks), "tasks")
		})
	}
}

// BenchmarkNaive has 8 ranks and 64 microbatches, 2,432 tasks, on both clocks.
func BenchmarkNaive(b *testing.B) {
	g := pipelined(8, 64)
	for b.Loop() {
		began := time.Now()
		line := run(b, g)
		fast := time.Since(began)
		began = time.Now()
		want := runNaive(g)
		b.ReportMetric(float64(time.Since(began))/float64(fast), "times")
		if !slices.Equal(line.End, want.End) {
			b.Fatal("the naive clock ends the tasks at other times")
		}
	}
}

// BenchmarkLink has 20,000 transfers on one link.
func BenchmarkLink(b *testing.B) {
	var g Graph
	r, link := g.AddResource(Resource{}), g.AddResource(Resource{Kind: Fluid, Bandwidth: 100_000})
	for i := range int64(20_000) {
		at := g.AddTask(Task{Resource: r, Duration: unit.Duration(i % 3)})
		g.AddTask(Task{Resource: link, Bytes: 1 + i*7919%100_000, Priority: int32(i % 2)}, at)
	}
	for b.Loop() {
		run(b, &g)
	}
}

// BenchmarkMesh has 64 ports that each send to 16 others at once, again and again.
func BenchmarkMesh(b *testing.B) {
	var g Graph
	const ports = 64
	for range 2 * ports {
		g.AddResource(Resource{Kind: Fluid, Bandwidth: 100_000})
	}
	for from := range int32(ports) {
		for k := range int32(16) {
			pair := g.AddResource(Resource{Kind: Joint, Parts: []int32{from, ports + (from+k*k+1)%ports}})
			last := g.AddTask(Task{Resource: pair, Bytes: int64(from*k) * 1000})
			for i := range int64(8) {
				last = g.AddTask(Task{Resource: pair, Bytes: 1000_000 + i*7919}, last)
			}
		}
	}
	for b.Loop() {
		run(b, &g)
	}
	b.ReportMetric(float64(len(g.Tasks)*b.N)/b.Elapsed().Seconds(), "tasks/s")
}
