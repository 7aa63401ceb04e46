package zerobubble

import (
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/pipelinetest"
)

// authors is what zb.py of sail-sg/zero-bubble-pipeline-parallelism (commit 39f2c186) makes of pipelines:
// the best order of its initial_solution, timed by our clock. Links take their latency alone, each
// activation counts one and the limit is so many times the ranks. Where there are fewer stages than ranks the last is all others.
var authors = []struct {
	ranks, microbatches int
	latency             unit.Duration
	pending             float64
	stages              [][3]unit.Duration // forward, inputs, weights
	takes               unit.Duration
}{
	{4, 13, 9, 1.5, [][3]unit.Duration{{8, 33, 27}, {11, 49, 22}, {10, 32, 27}, {3, 43, 5}}, 1163},
	{3, 6, 0, 1.5, [][3]unit.Duration{{28, 33, 26}}, 578},
	{5, 9, 0, 1, [][3]unit.Duration{{33, 37, 32}, {45, 21, 6}, {18, 4, 45}, {12, 28, 5}, {18, 2, 41}}, 934},
	{5, 14, 0, 1.5, [][3]unit.Duration{{14, 24, 40}, {31, 11, 9}, {1, 16, 46}, {10, 29, 7}, {5, 41, 10}}, 1152},
	{7, 18, 2, 1.5, [][3]unit.Duration{{50, 39, 33}, {31, 19, 40}, {48, 2, 27}, {2, 28, 34}, {50, 7, 23}, {31, 46, 4}, {35, 37, 14}}, 2204},
	{7, 14, 8, 1.5, [][3]unit.Duration{{9, 35, 39}, {49, 45, 49}, {39, 42, 3}, {23, 38, 21}, {34, 10, 29}, {43, 36, 48}, {21, 11, 30}}, 2106},
	{5, 20, 0, 1.5, [][3]unit.Duration{{31, 30, 10}, {45, 32, 16}, {32, 11, 35}, {39, 48, 1}, {11, 21, 30}}, 1950},
	{7, 14, 0, 1, [][3]unit.Duration{{21, 50, 46}, {25, 37, 49}, {4, 19, 7}, {47, 32, 29}, {33, 2, 34}, {35, 9, 2}, {16, 6, 15}}, 1777},
	{7, 23, 0, 1.5, [][3]unit.Duration{{18, 48, 50}}, 2902},
	{3, 11, 1, 1.5, [][3]unit.Duration{{14, 19, 37}, {35, 46, 2}, {15, 50, 12}}, 997},
	{4, 13, 0, 1, [][3]unit.Duration{{10, 48, 18}, {46, 27, 7}, {4, 28, 7}, {2, 19, 5}}, 1134},
	{8, 25, 0, 1, [][3]unit.Duration{{10, 21, 30}, {11, 41, 14}, {35, 22, 27}, {50, 47, 16}, {13, 15, 11}, {27, 23, 40}, {28, 20, 20}, {11, 41, 14}}, 2910},
	{16, 64, 5, 1, [][3]unit.Duration{{100, 110, 90}}, 21300},
	{16, 64, 5, 2, [][3]unit.Duration{{100, 110, 90}}, 20775},
	{16, 128, 5, 1, [][3]unit.Duration{{100, 110, 90}}, 40500},
	{16, 128, 5, 2, [][3]unit.Duration{{100, 110, 90}}, 39975},
	{32, 128, 5, 1, [][3]unit.Duration{{100, 110, 90}}, 42740},
	{32, 128, 5, 2, [][3]unit.Duration{{100, 110, 90}}, 41655},
	{64, 512, 5, 1, [][3]unit.Duration{{100, 110, 90}}, 162420},
	{64, 512, 5, 2, [][3]unit.Duration{{100, 110, 90}}, 160215},
}

// beside notes what the automatic order takes of what the authors' does.
func beside(r pipelinetest.Range) {
	for _, x := range authors {
		c := pipeline.Like(x.ranks)
		for i := range c.Stages {
			s := x.stages[min(i, len(x.stages)-1)]
			c.Stages[i].Forward, c.Stages[i].Input, c.Stages[i].Weight = s[0], s[1], s[2]
		}
		c.Latency = x.latency
		s, why := New(Config{x.pending}).Schedule(x.ranks, x.microbatches, &c)
		t, not := s.Time(c)
		if why+not != "" {
			panic(why + not) // there is an order for any costs
		}
		r.Note("authors", float64(t.Makespan), float64(x.takes))
	}
}
