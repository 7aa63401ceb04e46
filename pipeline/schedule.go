package pipeline

import (
	"slices"
	"strings"
)

// Schedule is one iteration: which rank holds which stage, and what each rank does in which
// order. It says nothing of time; Time does.
type Schedule struct {
	Microbatches int32
	// Routes hold the rank of each stage that a microbatch passes; microbatch k takes route
	// k mod len(Routes). One route is a pipeline as most know it, straight or folded where a
	// rank holds several stages. Several are copies of stages: pipelines in both directions
	// over the same ranks, or a stage on several ranks that take turns.
	Routes [][]int32
	// Orders hold the passes of each rank.
	Orders [][]Op
	// Wave is after how many of its microbatches a stage takes new weights; the passes of a
	// microbatch all use those that its forward pass used. 0 is once an iteration, when the
	// pipeline is empty.
	Wave int32
}

// Straight is the route on which stage s stands on rank s.
func Straight(ranks int) []int32 { return Folded(ranks, ranks, false) }

// Folded is the route that goes over the ranks again and again until all stages have a
// place: from the first rank each time or, where it turns, back the way that it came.
func Folded(ranks, stages int, turns bool) []int32 {
	route := make([]int32, stages)
	for s := range route {
		if route[s] = int32(s % ranks); turns && s/ranks%2 == 1 {
			route[s] = int32(ranks-1) - route[s]
		}
	}
	return route
}

// BothWays are the routes of a pipeline down the ranks and of one up.
func BothWays(ranks int) [][]int32 {
	return [][]int32{Straight(ranks), Folded(ranks, 2*ranks, true)[ranks:]}
}

// Stages is how many a microbatch passes.
func (s *Schedule) Stages() int {
	if len(s.Routes) == 0 {
		return 0
	}
	return len(s.Routes[0])
}

// Rank is where a microbatch meets a stage.
func (s *Schedule) Rank(stage, micro int32) int32 { return s.Routes[micro%int32(len(s.Routes))][stage] }

// mostPasses bounds the size of a schedule, so that a mistyped number of microbatches is
// answered and not simulated.
const mostPasses = 1 << 18

// Sized says whether so many ranks and microbatches may make a schedule.
func Sized(ranks, microbatches int64) Why {
	if ranks < 1 || microbatches < 1 || ranks*microbatches > mostPasses {
		return whyf("%d stages and %d microbatches: expected at least 1 of each and no more than %d in all stages together",
			ranks, microbatches, mostPasses)
	}
	return ""
}

// Check says what is wrong: each microbatch must pass each stage of its route once forward
// and later once backward, there and nowhere else. One that passes a stage in halves passes all so.
func (s *Schedule) Check() Why {
	stages := s.Stages()
	if why := Sized(int64(len(s.Orders)), int64(s.Microbatches)); why != "" {
		return why
	}
	if stages < 1 || int64(stages)*int64(s.Microbatches) > 4*mostPasses || s.Wave < 0 {
		return whyf("%d stages, waves of %d: expected at least 1 stage, no more than %d passes forward and no negative wave", stages, s.Wave, 4*mostPasses)
	}
	for i, route := range s.Routes {
		if len(route) != stages {
			return whyf("route %d has %d stages, route 0 has %d: expected as many", i, len(route), stages)
		}
		if least, most := slices.Min(route), slices.Max(route); least < 0 || int(most) >= len(s.Orders) {
			return whyf("route %d: expected ranks 0 to %d", i, len(s.Orders)-1)
		}
	}
	done := make([]byte, stages*int(s.Microbatches)) // what each pass forward has become
	halves := make([]int32, s.Microbatches)          // stages that a microbatch passes in halves
	for r := range s.Orders {
		if why := s.checkOrder(r, done, halves); why != "" {
			return why
		}
	}
	for i, was := range done {
		if was != byte(Backward) && was != byte(Weight) {
			return whyf("stage %d, microbatch %d: expected a pass forward and one backward, the last is %q", i/int(s.Microbatches), i%int(s.Microbatches), was)
		}
	}
	// What a stage sends in halves the next takes up in halves, so nobody has to put two together.
	for k, passed := range halves {
		if passed != 0 && int(passed) != stages {
			return whyf("microbatch %d passes %d of %d stages in halves: expected all or none", k, passed, stages)
		}
	}
	return ""
}

// before are the passes that each kind may follow; 0 is none, and what is no kind follows nothing.
var before = [256]string{Forward: "\x00", FirstHalf: "\x00", SecondHalf: "G", Recompute: "FH", Backward: "FHR", Input: "FHR", Weight: "I"}

func (s *Schedule) checkOrder(r int, done []byte, halves []int32) Why {
	order := s.Orders[r]
	for i, op := range order {
		may := before[op.Kind]
		if may == "" || op.Stage < 0 || int(op.Stage) >= s.Stages() || op.Micro < 0 || op.Micro >= s.Microbatches {
			return whyf("rank %d, operation %d is %v: expected one of %s, stages 0 to %d and microbatches 0 to %d", r, i, op, Kinds, s.Stages()-1, s.Microbatches-1)
		}
		if at := s.Rank(op.Stage, op.Micro); int(at) != r {
			return whyf("rank %d, operation %d is %v: microbatch %d meets stage %d on rank %d", r, i, op, op.Micro, op.Stage, at)
		}
		was := &done[int(op.Stage)*int(s.Microbatches)+int(op.Micro)]
		if strings.IndexByte(may, *was) < 0 {
			return whyf("rank %d, operation %d is %v: expected each microbatch once as F or as G and then H, later as B or as I and then W", r, i, op)
		}
		if *was = byte(op.Kind); op.Kind == SecondHalf {
			halves[op.Micro]++
		}
		if op.Paired && (i+1 == len(order) || order[i+1].Paired || order[i+1].Micro == op.Micro) {
			return whyf("rank %d, operation %d is %v: expected one of another microbatch after it, to run with it", r, i, op)
		}
	}
	return ""
}
