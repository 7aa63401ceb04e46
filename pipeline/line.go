package pipeline

import "slices"

// Chunk is a stage as one route meets it on a rank. A rank has several where its pipeline is
// folded, or runs in both directions.
type Chunk struct{ Route, Stage int32 }

// NewSchedule is one whose orders are still to be written, line by line.
func NewSchedule(ranks, microbatches int, routes ...[]int32) Schedule {
	return Schedule{Microbatches: int32(microbatches), Routes: routes, Orders: make([][]Op, ranks)}
}

// Chunks lists what a rank holds, route by route and then by stage.
func (s *Schedule) Chunks(rank int) (held []Chunk) {
	for i, route := range s.Routes {
		for stage, r := range route {
			if int(r) == rank {
				held = append(held, Chunk{int32(i), int32(stage)})
			}
		}
	}
	return held
}

// holds lists the stages that a rank holds, ascending.
func (s *Schedule) holds(rank int) (held []int32) {
	for _, c := range s.Chunks(rank) {
		held = append(held, c.Stage)
	}
	slices.Sort(held)
	return slices.Compact(held)
}

// Line writes the order of one rank. It counts microbatches by itself: each kind of pass of
// a chunk takes those of its route in turn, and gradients of weights those whose gradients of
// inputs have waited longest.
type Line struct {
	// Halved are how many microbatches pass forward in halves, the first of all.
	Halved int32

	schedule *Schedule
	order    *[]Op
	held     []Chunk // as Chunks lists them
	done     []progress
	first    []int32 // of held, by route
}

// progress is how far a chunk is.
type progress struct {
	forward, again, backward int32 // passes so far; of those backward both whole ones and first halves
	waiting                  []int32
}

// count is that of a kind, other than Weight.
func (p *progress) count(k Kind) *int32 {
	switch k {
	case Forward:
		return &p.forward
	case Recompute:
		return &p.again
	}
	return &p.backward
}

// Line starts to write the order of a rank.
func (s *Schedule) Line(rank int) *Line {
	held := s.Chunks(rank)
	s.Orders[rank] = make([]Op, 0, 2*len(held)*int(s.Microbatches)/len(s.Routes))
	l := &Line{schedule: s, order: &s.Orders[rank], held: held, done: make([]progress, len(held)), first: make([]int32, len(s.Routes))}
	for i := len(held) - 1; i >= 0; i-- {
		l.first[held[i].Route] = int32(i)
	}
	return l
}

// of is how far a chunk is, one that the rank holds.
func (l *Line) of(c Chunk) *progress {
	i := l.first[c.Route]
	for l.held[i] != c {
		i++
	}
	return &l.done[i]
}

// Done counts the passes of a kind and chunk so far; a whole backward pass is both halves.
func (l *Line) Done(k Kind, c Chunk) int32 {
	p := l.of(c)
	if k == Weight {
		return p.backward - int32(len(p.waiting))
	}
	return *p.count(k)
}

// Keeps is how many microbatches of a chunk are between their forward and backward passes.
func (l *Line) Keeps(c Chunk) int32 {
	p := l.of(c)
	return p.forward - p.backward
}

// Next is the microbatch that the next pass of a kind would take, and whether there is one.
func (l *Line) Next(k Kind, c Chunk) (micro int32, there bool) {
	if k == Weight {
		if waiting := l.of(c).waiting; len(waiting) > 0 {
			return waiting[0], true
		}
		return 0, false
	}
	micro = c.Route + l.Done(k, c)*int32(len(l.schedule.Routes))
	return micro, micro < l.schedule.Microbatches
}

// Do appends a pass of each kind that the text names, such as "FB", and reports whether
// there was a microbatch left for each; where there is none nothing is appended.
func (l *Line) Do(passes string, c Chunk) bool {
	all := true
	for _, letter := range []byte(passes) {
		kind := Kind(letter)
		micro, there := l.Next(kind, c)
		if all = all && there; !there {
			continue
		}
		if kind == Forward && micro < l.Halved {
			*l.order = append(*l.order, Op{Kind: FirstHalf, Stage: c.Stage, Micro: micro}, Op{Kind: SecondHalf, Stage: c.Stage, Micro: micro})
		} else {
			*l.order = append(*l.order, Op{Kind: kind, Stage: c.Stage, Micro: micro})
		}
		p := l.of(c)
		if kind == Weight {
			p.waiting = p.waiting[1:]
			continue
		}
		*p.count(kind)++
		if kind == Input {
			p.waiting = append(p.waiting, micro)
		}
	}
	return all
}

// Alternate is 1F1B: it appends so many forward passes, then one forward and one backward in
// turn, and what is left of these.
func (l *Line) Alternate(c Chunk, ahead int) {
	for range ahead {
		l.Do("F", c)
	}
	for l.Do("FB", c) {
	}
	for l.Do("B", c) {
	}
}

// Pair appends a pass of one chunk and one of another, to run at once where both are there.
func (l *Line) Pair(passA string, a Chunk, passB string, b Chunk) {
	_, there := l.Next(Kind(passB[0]), b)
	if l.Do(passA, a) && there {
		(*l.order)[len(*l.order)-1].Paired = true
	}
	l.Do(passB, b)
}
