package proof

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// TestRandom runs random jobs with random troubles under a random strategy, some of
// the time with a switch to another and back: nothing is over-committed, every job
// ends, and restarts and the journal change nothing.
func TestRandom(t *testing.T) {
	rounds, restarts := 1, []int{1}
	if long {
		rounds, restarts = 15, []int{1, 7}
	}
	if full {
		rounds = 50
	}
	for round := range rounds {
		draws.Cases{Round: round, Few: 30}.Check(t, func(t *rapid.T) {
			s := draw(t)
			if err := prove(&s, restarts...); err != nil {
				t.Fatalf("%s on %s: %v", s.strategy, s.cluster.Name, err)
			}
		})
	}
}

// draw makes a scenario of 3 to 8 jobs, all of which can end.
func draw(t *rapid.T) scenario {
	nodes, devices := rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "devices")
	model := cluster.Model{Name: "gpu", Speed: 1, Memory: 16384}
	cuts := rapid.IntRange(0, 3).Draw(t, "cuts") == 0
	if cuts {
		model.Geometries = []cluster.Geometry{{Name: "whole"}, {Name: "halves", Parts: []cluster.Part{{Milli: 500, Memory: 8192}, {Milli: 500, Memory: 8192}}},
			{Name: "parts", Parts: []cluster.Part{{Milli: 430, Memory: 7000}, {Milli: 280, Memory: 4600}, {Milli: 280, Memory: 4600}}}}
	}
	s := scenario{cluster: cluster.Uniform(fmt.Sprintf("%dx%d cuts=%v", nodes, devices, cuts), nodes, devices, model, 2),
		until: unit.Time(14 * unit.Day), packed: int64(rapid.IntRange(300, 1000).Draw(t, "packed")), answer: inGo,
		failStart: map[string]int{}, lateStop: map[string]unit.Duration{}, finishAnyway: map[string]bool{}}
	for hour := range unit.Duration(48) {
		s.uncordon = append(s.uncordon, hour*unit.Hour)
	}
	for i := range rapid.IntRange(3, 8).Draw(t, "jobs") {
		s.jobs = append(s.jobs, s.drawJob(t, fmt.Sprint("j", i), nodes*devices))
	}
	s.jobs = sorted(s.jobs)
	s.strategy = rapid.SampledFrom(names).Draw(t, "strategy")
	for range rapid.IntRange(0, 2).Draw(t, "losses") {
		s.lose = append(s.lose, loss{node: plan.NodeID(rapid.IntRange(0, nodes-1).Draw(t, "node")), at: unit.Time(seconds(t, "lost at", 900)),
			lasts: unit.Second + seconds(t, "lost for", 400), whileStopping: rapid.Bool().Draw(t, "while stopping")})
	}
	for range rapid.IntRange(0, 2).Draw(t, "strays") {
		at := unit.Time(seconds(t, "strays at", 600))
		s.strays = append(s.strays, stray{at: at, until: at.Add(seconds(t, "strays for", 600)), device: plan.DeviceID(rapid.IntRange(-1, nodes*devices-1).Draw(t, "strays on")),
			layer: rapid.Int32Range(0, 4).Draw(t, "layer"), times: rapid.Float64Range(.5, 4).Draw(t, "times")})
	}
	for range rapid.IntRange(0, 1).Draw(t, "switch") {
		first := seconds(t, "switch at", 500)
		s.switches = []change{{unit.Time(first), rapid.SampledFrom(names).Draw(t, "to")}, {unit.Time(first + seconds(t, "switch back after", 500)), s.strategy}}
	}
	return s
}

func seconds(t *rapid.T, what string, most int) unit.Duration {
	return unit.Duration(rapid.IntRange(0, most).Draw(t, what)) * unit.Second
}

func (s *scenario) drawJob(t *rapid.T, name string, devices int) job {
	j := job{work: unit.Second + seconds(t, "work", 600)}
	j.spec = workload.Job{Name: name, Resources: workload.Resources{Gang: int32(rapid.IntRange(1, min(4, devices)).Draw(t, "gang")), Devices: 1, Share: 1000, Memory: unit.MiB(rapid.IntRange(0, 4).Draw(t, "memory")) << 10},
		Submit: unit.Time(seconds(t, "submit", 300)), Estimate: j.work, Checkpoint: workload.Checkpoint{OnRequest: true}}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		j.spec.Gang, j.spec.Share = 1, unit.Milli(rapid.SampledFrom([]int{100, 250, 400, 500, 900}).Draw(t, "share"))
	case 1:
		j.spec.Sizes = []int32{1, 2, 4}
		j.spec.Gang = 1
	case 2:
		j.spec.Deadline = seconds(t, "deadline", 2000)
	case 3:
		j.spec.Traffic = 5000
	case 5:
		if j.spec.Gang > 1 {
			layer := workload.Layer{Forward: 5 * unit.Millisecond, Backward: 10 * unit.Millisecond, ParamKiB: 100 << 10}
			j.spec.Pipeline = workload.Pipeline{Stages: j.spec.Gang, Microbatches: 4, Layers: slices.Repeat([]workload.Layer{layer}, 5)}
			j.spec.Sizes = rapid.SampledFrom([][]int32{nil, {j.spec.Gang, 2 * j.spec.Gang}}).Draw(t, "copies")
			if j.spec.Sizes != nil && 2*j.spec.Gang <= int32(devices) && rapid.Bool().Draw(t, "all copies") {
				j.spec.Gang *= 2
			}
		}
	case 4:
		j.spec.CPU, j.spec.HostMemory = 8000, 40<<10
	}
	s.failStart[name] = rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "fails")
	s.lateStop[name] = rapid.SampledFrom([]unit.Duration{0, 0, 25 * unit.Second, 100 * unit.Second}).Draw(t, "late")
	s.finishAnyway[name] = rapid.IntRange(0, 5).Draw(t, "finishes") == 0
	return j
}
