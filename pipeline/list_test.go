package pipeline_test

import (
	"math/rand/v2"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// drawnSchedule is one of any kind, straight, folded, turning or in both directions, whose
// ranks choose at random among what they could begin, with the costs for which it was made.
func drawnSchedule(t testing.TB, r *rand.Rand) (pipeline.Schedule, pipeline.Costs) {
	ranks, m := 1+r.IntN(6), 1+r.IntN(12)
	routes := [][][]int32{
		{pipeline.Straight(ranks)},
		{pipeline.Folded(ranks, ranks*(1+r.IntN(3)), false)},
		{pipeline.Folded(ranks, ranks*(1+r.IntN(3)), true)},
		pipeline.BothWays(ranks),
	}[r.IntN(4)]
	s := pipeline.NewSchedule(ranks, m, routes...)
	c := pipeline.Like(s.Stages())
	c.Latency, c.Bandwidth = unit.Duration(r.IntN(3)), unit.Mbps(r.IntN(2)*10_000)
	for i := range c.Stages {
		c.Stages[i] = pipeline.Stage{Forward: unit.Duration(r.IntN(9)), Input: unit.Duration(r.IntN(9)), Weight: unit.Duration(r.IntN(9)),
			ParamKiB: r.Int64N(20), OutputKiB: r.Int64N(9), ActivationKiB: r.Int64N(9)}
	}
	c.ParamCopies = 1 + r.Int64N(4)
	if why := s.List(&c, r.IntN(2) == 0, func(_ *pipeline.Chooser, ready []pipeline.Choice) int { return r.IntN(len(ready)) }); why != "" {
		t.Fatal(why)
	}
	return s, c
}

// TestRandomSchedules: whatever ranks choose, the schedule is complete and runs; it takes no
// less than any rank's work or any microbatch's way, and the peak of memory is what an
// account over time finds.
func TestRandomSchedules(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	for range 2000 {
		s, c := drawnSchedule(t, r)
		got, why := s.Time(c)
		if why != "" {
			t.Fatal(why)
		}
		for rank, busy := range got.Busy {
			if got.Makespan < busy || got.Idle(rank) < got.Bubble[rank] {
				t.Fatalf("rank %d works for %d and stands still for %d of %d", rank, busy, got.Bubble[rank], got.Makespan)
			}
			if want := accounted(&s, &c, &got, rank); got.Peak[rank].Total() != want {
				t.Fatalf("rank %d: the peak is %d KiB, an account over time finds %d", rank, got.Peak[rank].Total(), want)
			}
		}
		for k := range s.Microbatches {
			way := unit.Duration(0)
			for stage := range c.Stages {
				way += c.Stages[stage].Forward + c.Stages[stage].Input
				if at := int32(stage); stage > 0 && s.Rank(at, k) != s.Rank(at-1, k) {
					way += 2 * c.Latency
				}
			}
			if got.Makespan < way {
				t.Fatalf("microbatch %d takes %d, the iteration %d", k, way, got.Makespan)
			}
		}
	}
}

// TestOverlaps: what went on at once on a rank is what is counted instant by instant.
func TestOverlaps(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 13))
	some := pipeline.Overlap{}
	for range 1000 {
		s, c := drawnSchedule(t, r)
		c.Bandwidth = unit.Mbps(r.IntN(2) * 5000)
		for _, order := range s.Orders { // some passes forward run at once with the backward one behind them
			for i := 1; i < len(order); i++ {
				order[i-1].Paired = order[i-1].Kind == pipeline.Forward && order[i].Kind == pipeline.Backward && order[i-1].Micro != order[i].Micro && r.IntN(2) == 0
			}
		}
		got, why := s.Time(c)
		if why != "" {
			continue // the pairs wait for one another
		}
		for rank, o := range got.Overlaps() {
			want := pipeline.Overlap{}
			for now := range unit.Time(got.Makespan) {
				passes, transfers := 0, 0
				for _, p := range got.Spans[rank] {
					if p.Start <= now && now < p.End {
						passes++
					}
				}
				for _, x := range got.Transfers {
					if (int(x.Ranks[0]) == rank || int(x.Ranks[1]) == rank) && x.Start <= now && now < x.End {
						transfers++
					}
				}
				want.ComputeCompute += unit.Duration(max(0, passes-1))
				want.ComputeTransfer += unit.Duration(min(passes, transfers, 1))
				want.TransferTransfer += unit.Duration(min(max(0, transfers-1), 1))
			}
			if o != want {
				t.Fatalf("rank %d: %+v at once, instant by instant %+v", rank, o, want)
			}
			some = some.Plus(o)
		}
	}
	if some.ComputeCompute == 0 || some.ComputeTransfer == 0 || some.TransferTransfer == 0 {
		t.Errorf("nothing was tried: %+v", some)
	}
}

// accounted is the peak of a rank's memory by what holds at the start of each pass.
func accounted(s *pipeline.Schedule, c *pipeline.Costs, t *pipeline.Timing, rank int) (most int64) {
	params, counted := int64(0), map[int32]bool{}
	for _, chunk := range s.Chunks(rank) {
		if !counted[chunk.Stage] {
			params += c.ParamCopies * c.Stages[chunk.Stage].ParamKiB
		}
		counted[chunk.Stage] = true
	}
	order := s.Orders[rank]
	for i := range order {
		held := params
		for j, op := range order[:i+1] {
			kept := c.Stages[op.Stage].ActivationKiB
			switch op.Kind {
			case pipeline.Forward:
			case pipeline.FirstHalf:
				kept /= 2
			case pipeline.SecondHalf:
				kept -= kept / 2
			default:
				continue
			}
			// Kept unless a later pass of the same microbatch has ended before this one begins.
			given := false
			for k := j + 1; k < i; k++ {
				if o := order[k]; o.Stage == op.Stage && o.Micro == op.Micro && (o.Kind == pipeline.Backward || o.Kind == pipeline.Weight) {
					given = true
				}
			}
			if !given {
				held += kept
			}
		}
		most = max(most, held)
	}
	return max(most, params)
}

// BenchmarkTime is 64 ranks and 512 microbatches with passes forward and backward in halves,
// and what they send: 162,816 tasks, with the graph.
func BenchmarkTime(b *testing.B) {
	const ranks, m = 64, 512
	s := pipeline.NewSchedule(ranks, m, pipeline.Straight(ranks))
	for r := range ranks {
		line, mine := s.Line(r), s.Chunks(r)[0]
		for range ranks - 1 - r {
			line.Do("F", mine)
		}
		for line.Do("FIW", mine) {
		}
		for line.Do("IW", mine) {
		}
	}
	c := pipeline.Like(ranks)
	c.Latency, c.Bandwidth = 1, 1000
	for b.Loop() {
		if _, why := s.Time(c); why != "" {
			b.Fatal(why)
		}
	}
}
