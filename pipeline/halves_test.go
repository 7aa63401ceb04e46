package pipeline_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// halved has some microbatches of a schedule pass forward in halves.
func halved(s pipeline.Schedule, some map[int32]bool) pipeline.Schedule {
	orders := make([][]pipeline.Op, len(s.Orders))
	for r, order := range s.Orders {
		for _, op := range order {
			if op.Kind == pipeline.Forward && some[op.Micro] {
				op.Kind = pipeline.FirstHalf
				orders[r] = append(orders[r], op)
				op.Kind = pipeline.SecondHalf
			}
			orders[r] = append(orders[r], op)
		}
	}
	s.Orders = orders
	return s
}

// clocked is when passes end over links that take their latency alone, by going through all passes
// until none moves any more.
func clocked(s *pipeline.Schedule, c *pipeline.Costs) (makespan unit.Time) {
	ends := map[pipeline.Op]unit.Time{}
	// after is when what a pass of some kinds has made is on a rank; 0 where there is none.
	after := func(rank, stage, micro int32, kinds string) (at unit.Time) {
		if stage < 0 || int(stage) >= s.Stages() {
			return 0
		}
		for _, k := range kinds {
			if end, there := ends[pipeline.Op{Kind: pipeline.Kind(k), Stage: stage, Micro: micro}]; there {
				if s.Rank(stage, micro) != rank {
					end = end.Add(c.Latency)
				}
				at = max(at, end)
			}
		}
		return at
	}
	for moved := true; moved; {
		moved = false
		for r, order := range s.Orders {
			now := unit.Time(0)
			for _, op := range order {
				rank, st := int32(r), &c.Stages[op.Stage]
				takes := map[pipeline.Kind]unit.Duration{pipeline.Forward: st.Forward, pipeline.FirstHalf: st.Forward / 2, pipeline.SecondHalf: st.Forward - st.Forward/2,
					pipeline.Backward: st.Input + st.Weight, pipeline.Input: st.Input, pipeline.Weight: st.Weight}[op.Kind]
				switch op.Kind {
				case pipeline.Forward, pipeline.FirstHalf, pipeline.SecondHalf:
					now = max(now, after(rank, op.Stage-1, op.Micro, string(rune(op.Kind))))
				case pipeline.Backward, pipeline.Input:
					now = max(now, after(rank, op.Stage+1, op.Micro, "BI"))
				}
				now = now.Add(takes)
				moved = moved || ends[op] != now
				ends[op], makespan = now, max(makespan, now)
			}
		}
	}
	return makespan
}

// TestHalves: passes in halves take what the slow clock says, keep what an account over time finds,
// and over links that nothing fills never take longer than whole ones.
func TestHalves(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 13))
	faster := 0
	for range 1000 {
		s, c := drawnSchedule(t, r)
		c.Bandwidth = 0
		some := map[int32]bool{}
		for k := range s.Microbatches {
			some[k] = r.IntN(2) == 0
		}
		whole, why := s.Time(c)
		half := halved(s, some)
		got, not := half.Time(c)
		if why+not != "" {
			t.Fatal(why + not)
		}
		if want := clocked(&half, &c); got.Makespan != want.Sub(0) || got.Makespan > whole.Makespan {
			t.Fatalf("%v: %d, whole %d, by the slow clock %d", half.Orders, got.Makespan, whole.Makespan, want)
		}
		if got.Makespan < whole.Makespan {
			faster++
		}
		for rank := range half.Orders {
			if want := accounted(&half, &c, &got, rank); got.Peak[rank].Total() != want {
				t.Fatalf("rank %d: the peak is %d KiB, an account over time finds %d", rank, got.Peak[rank].Total(), want)
			}
		}
	}
	if faster == 0 {
		t.Error("halves never gained anything")
	}
}

// TestHalfSends: each half is sent by itself, in half the time, and the next stage begins with the
// first while the second is still computed.
func TestHalfSends(t *testing.T) {
	s := pipeline.NewSchedule(2, 1, pipeline.Straight(2))
	for r := range 2 {
		line := s.Line(r)
		line.Halved = 1
		line.Do("FB", s.Chunks(r)[0])
	}
	c := pipeline.Like(2)
	for i := range c.Stages {
		c.Stages[i] = pipeline.Stage{Forward: 200, Input: 100, Weight: 100, OutputKiB: 100}
	}
	c.Bandwidth = 8192 // 100 KiB in 100 us
	got, why := s.Time(c)
	if want := (pipeline.Span{Start: 150, End: 250}); why != "" || got.Spans[1][0] != want || len(got.Transfers) != 3 || got.Makespan != 350+200+100+200 {
		t.Errorf("%+v (%s), want the first half at 150 us on the second rank", got, why)
	}
}

// TestHalvesRefused: halves that are not both there, in turn and at every stage are no schedule.
func TestHalvesRefused(t *testing.T) {
	for _, c := range []struct{ want, orders string }{
		{"", `[["0G0","0H0","0B0"],["1G0","1H0","1I0","1W0"]]`},
		{"1 of 2 stages in halves", `[["0G0","0H0","0B0"],["1F0","1B0"]]`},
		{"operation 0 is 0H0", `[["0H0","0G0","0B0"],["1G0","1H0","1B0"]]`},
		{"operation 1 is 0B0", `[["0G0","0B0"],["1F0","1B0"]]`},
		{"operation 1 is 0F0", `[["0G0","0F0","0B0"],["1F0","1B0"]]`},
		{"operation 0 is 0G0&", `[["0G0&","0H0","0B0"],["1G0","1H0","1B0"]]`},
	} {
		s := pipeline.Schedule{Microbatches: 1, Routes: [][]int32{pipeline.Straight(2)}}
		if err := json.Unmarshal([]byte(c.orders), &s.Orders); err != nil {
			t.Fatal(err)
		}
		if why := s.Check(); c.want == "" && why != "" || !strings.Contains(string(why), c.want) {
			t.Errorf("%s: %q, want %q", c.orders, why, c.want)
		}
	}
}
