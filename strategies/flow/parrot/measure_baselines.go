package parrot

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/flow/fluid"
	"github.com/musterdl/muster/mechanism/maxmin"
)

// fair shares every port alike among its flows.
type fair struct{ filler maxmin.Filler }

// Share gives every flow its max-min part; the rates hold until a flow ends.
func (f *fair) Share(m *fluid.Moment, rates []float64) float64 {
	f.filler.Fill(m.Capacities, m.Flows, rates)
	return math.Inf(1)
}

// aalo is D-CLAS (Chowdhury and Stoica, SIGCOMM 2015): a coflow begins in the first
// queue and falls when it has sent 10 MB, 100 MB, and so on; queues are served in
// strict order, first come first served inside, the flows of a coflow max-min.
type aalo struct {
	filler maxmin.Filler
	queue  []int
	order  []int
}

const (
	firstQueueMB = 10
	queueRatio   = 10
	queues       = 10
)

// Share serves queue after queue, and within a queue who came first.
func (a *aalo) Share(m *fluid.Moment, rates []float64) float64 {
	a.queue, a.order = a.queue[:0], a.order[:0]
	for i, x := range m.Live {
		q := 0
		for bound := float64(firstQueueMB); q < queues-1 && x.SentMB >= bound*(1-1e-12); bound *= queueRatio {
			q++
		}
		a.queue, a.order = append(a.queue, q), append(a.order, i)
	}
	slices.SortFunc(a.order, func(x, y int) int {
		return cmp.Or(cmp.Compare(a.queue[x], a.queue[y]), cmp.Compare(m.Live[x].BeganSec, m.Live[y].BeganSec), cmp.Compare(x, y))
	})
	for class, i := range a.order {
		for j := m.Live[i].First; j < m.Live[i].End; j++ {
			m.Flows[j].Class = int32(class)
		}
	}
	a.filler.Fill(m.Capacities, m.Flows, rates)
	fall := math.Inf(1)
	for i, x := range m.Live { // when the next coflow falls
		rate := 0.0
		for _, r := range rates[x.First:x.End] {
			rate += r
		}
		if bound := firstQueueMB * math.Pow(queueRatio, float64(a.queue[i])); rate > 0 && a.queue[i] < queues-1 {
			fall = min(fall, (bound-x.SentMB)/rate)
		}
	}
	return fall
}

// guided gives every flow the part of its fair rate that Parrot guarantees, and the
// rest in strict order of a key: the order that the program approaches, without it.
type guided struct {
	key    func(x fluid.Live) float64
	filler maxmin.Filler
	fair   []float64
	rest   []float64
	order  []int
}

// Share serves a fair part to all and the rest by the order of the graph.
func (g *guided) Share(m *fluid.Moment, rates []float64) float64 {
	part := Default().FairPart
	g.fair = g.filler.Fill(m.Capacities, m.Flows, g.fair)
	g.rest = append(g.rest[:0], m.Capacities...)
	g.order = g.order[:0]
	for i, x := range m.Live {
		g.order = append(g.order, i)
		for j := x.First; j < x.End; j++ {
			for _, u := range m.Flows[j].Uses {
				g.rest[u.Link] = max(0, g.rest[u.Link]-part*g.fair[j])
			}
		}
	}
	slices.SortStableFunc(g.order, func(x, y int) int { return cmp.Compare(g.key(m.Live[x]), g.key(m.Live[y])) })
	for class, i := range g.order {
		for j := m.Live[i].First; j < m.Live[i].End; j++ {
			m.Flows[j].Class = int32(class)
		}
	}
	g.filler.Fill(g.rest, m.Flows, rates)
	for j := range rates {
		rates[j] += part * g.fair[j]
	}
	return math.Inf(1)
}
