package parallel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/overlap"
)

// Experts that are spread stand over the copies of a stage: of so many neighbours each has a part of
// them, and tokens go to the experts that they chose and come back, in the forward pass and again in
// the backward one. Splitting a layer's products (tensor) splits each expert as well. What is hidden of
// the tokens' way is what chunks of them hide behind each other's computation; all that chunks
// leave is added to the passes of the layer. Tokens are taken to choose all experts equally often.

// Mixture is the part of a layer that are experts of which each token passes some. It is among the
// layer's own figures, as they are where every copy of the layer has all experts.
type Mixture struct {
	Count                         int // experts; 0 says that the layer has none
	Forward, Again, Input, Weight unit.Duration
	ParamKiB                      int64
	// SendKiB is what a device sends of its tokens to experts, as much to each device; as much comes back.
	SendKiB int64
	// GatherKiB is what is summed up besides among the devices of the layer, as ReduceKiB of a layer, where each of
	// them sends its own part of the tokens: then the experts' parts need the tokens of all.
	GatherKiB int64
	// Launch is what every piece of work takes besides, so that small chunks cost more.
	Launch unit.Duration
}

// heldKiB are the weights of experts that a device holds where they are spread over so many copies.
func (m *Mixture) heldKiB(copies int) int64 { return (m.ParamKiB + int64(copies) - 1) / int64(copies) }

// Experts is how many each layer has that has any, over so many devices: their greatest common divisor;
// 0 is none.
func (x *Simulator) Experts(tensor int) (count int) {
	for i := range x.Model.Profile.Layers() {
		if all, why := x.Ways(i, 0, tensor, 1); why == "" {
			for a, b := all[0].Mixture.Count, count; ; a, b = b%a, a {
				if a == 0 {
					count = b
					break
				}
			}
		}
	}
	return count
}

// experts are over how many copies those of a mixture may be spread, ascending; 0 is what is said of
// each copy having them all. Who makes plans of shapes alone spreads none.
func (g *Grid) experts(tensor int, l Limits) (all []int) {
	if g.Make != nil || l.Experts == 1 {
		return []int{0}
	}
	for _, n := range sizes(nil, max(1, g.x.Experts(tensor))) {
		if l.Experts > 1 && n != l.Experts {
			continue
		}
		if n == 1 {
			n = 0
		}
		all = append(all, n)
	}
	return all
}

// group is a rank with the devices of all copies over which its experts are spread, one copy after the
// other.
func (p *Plan) group(i, r int) Rank {
	rank := p.Pipelines[i].Ranks[r]
	if rank.Experts <= 1 {
		return rank
	}
	first := i - i%rank.Experts
	rank.Devices = make([]int32, 0, rank.Experts*rank.Tensor)
	for _, one := range p.Pipelines[first : first+rank.Experts] {
		rank.Devices = append(rank.Devices, one.Ranks[r].Devices...)
	}
	return rank
}

// spot is where the devices over which experts are spread stand, as the worst placed of them sees it.
type spot struct {
	nodes, perNode int
	between        Link
}

// spot is that of a group, one device of each copy: the others do the same beside it, each with its part
// of the uplink of its node.
func (x *Simulator) spot(group *Rank) (s spot) {
	var nodes, counts []int
	var first []int32 // of each node
	for at := 0; at < len(group.Devices); at += group.Tensor {
		d := group.Devices[at]
		k := slices.Index(nodes, int(x.On.NodeOf(d)))
		if k < 0 {
			nodes, counts, first = append(nodes, int(x.On.NodeOf(d))), append(counts, 0), append(first, d)
			k = len(nodes) - 1
		}
		counts[k]++
	}
	s.nodes, s.perNode = len(nodes), slices.Min(counts)
	for a := range first {
		for b := range first[:a] {
			s.between = slower(s.between, x.On.Between(first[a:a+1], first[b:b+1]))
		}
	}
	return s
}

// slower has the bandwidth of the slower of two links, and the longer latency.
func slower(a, b Link) Link {
	return Link{Bandwidth: least(a.Bandwidth, b.Bandwidth), Latency: max(a.Latency, b.Latency)}
}

// trip names what becomes of the tokens of a layer in a pass.
type trip struct {
	kind            int32
	compute, launch unit.Duration
	kib             int64
	at              spot
}

// tokens is by how much longer the passes of a layer take, whose experts are spread over a group, than if
// each device had all of them.
func (x *Simulator) tokens(group *Rank, m *Mixture) (forward, back unit.Duration, why Why) {
	if len(group.Devices) <= group.Tensor { // nobody knows yet where the others stand
		return 0, 0, ""
	}
	at := x.spot(group)
	kind := x.On.Nodes[x.On.NodeOf(group.Devices[0])].Kind
	takes := func(compute unit.Duration) unit.Duration {
		t := trip{kind, compute, m.Launch, m.SendKiB, at}
		more, seen := x.trips[t]
		if !seen && why == "" {
			more, why = x.trip(&t)
			x.trips[t] = more
		}
		return more
	}
	forward, back = takes(m.Forward), takes(m.Input)
	if m.Again > 0 { // they go once more
		back += takes(m.Again)
	}
	return forward, back, why
}

// trip plays one in as many chunks as a chunker says.
func (x *Simulator) trip(t *trip) (more unit.Duration, why Why) {
	e := overlap.Experts{Compute: t.compute, Launch: t.launch, KiB: t.kib, Nodes: t.at.nodes, PerNode: t.at.perNode,
		Within: x.On.Kinds[t.kind].Inside, Between: t.at.between}
	choice := overlap.Choice{Chunks: 1, Kind: overlap.Pairwise}
	if why = e.Check(); why == "" && x.Tokens != nil {
		choice = x.Tokens.Chunk(&e)
	}
	took, why := e.Time(choice)
	return took.Iteration - t.compute, why
}

// even says whether groups of so many neighbours have as many devices on each of their nodes.
func (d *Devices) even(devices int) bool {
	in := int(d.Nodes[0].Count)
	for _, n := range d.Nodes {
		if int(n.Count) != in {
			return false
		}
	}
	return in%devices == 0 || devices%in == 0
}

// checkExperts says all that is wrong with how experts are spread.
func (p *Plan) checkExperts(m *Model, on *Devices) Why {
	if p.Experts() == 1 {
		return ""
	}
	var all []string
	wrong := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	first, x, most, unlike := &p.Pipelines[0], NewSimulator(m, on), p.Experts(), 0
	for i := range p.Pipelines {
		one := &p.Pipelines[i]
		like := len(one.Ranks) == len(first.Ranks) && slices.Equal(one.Cuts, first.Cuts) && slices.Equal(one.Ways, first.Ways) &&
			one.Microbatches == p.Pipelines[i-i%most].Microbatches
		for r := 0; like && r < len(one.Ranks); r++ {
			like = one.Ranks[r].Replicas == 1 && one.Ranks[r].Tensor == first.Ranks[r].Tensor && one.Ranks[r].Experts == first.Ranks[r].Experts
		}
		if !like {
			unlike++
		}
	}
	if unlike > 0 { // who goes with whom is not known
		return whyf("%d of %d pipelines are unlike others with which they have experts together, or have replicas of their own: expected like ones", unlike, len(p.Pipelines))
	}
	for r := range first.Ranks {
		rank := &first.Ranks[r]
		e := rank.Experts
		if r > 0 && e == first.Ranks[r-1].Experts && rank.Tensor == first.Ranks[r-1].Tensor || e == 0 || e == 1 {
			continue // it was said
		}
		divides := e > 0 && len(p.Pipelines)%e == 0
		if !divides {
			wrong("experts over %d of %d copies: expected a divisor of the copies", e, len(p.Pipelines))
		}
		if count := x.Experts(rank.Tensor); e < 0 || count == 0 || count%e != 0 {
			wrong("%d experts over %d copies: expected a divisor of the experts", count, e)
		}
		if divides && !x.shared(p, r) {
			wrong("experts of rank %d over %d copies of %d devices each: expected as many on each of their nodes", r, e, rank.Tensor)
		}
	}
	return Why(strings.Join(all, "; "))
}

// Experts is over how many copies those of any rank are spread at most; 1 is that each has them all.
func (p *Plan) Experts() (most int) {
	most = 1
	for i := range p.Pipelines {
		for r := range p.Pipelines[i].Ranks {
			most = max(most, p.Pipelines[i].Ranks[r].Experts, -p.Pipelines[i].Ranks[r].Experts)
		}
	}
	return most
}

// shared says whether each node of a group of a rank has as many of its devices.
func (x *Simulator) shared(p *Plan, r int) bool {
	for i := 0; i < len(p.Pipelines); i += p.Pipelines[i].Ranks[r].Experts {
		group := p.group(i, r)
		if s := x.spot(&group); s.nodes*s.perNode != group.Experts {
			return false
		}
	}
	return true
}

// classes are the devices that have the same experts, where these are spread.
func (h *held) classes() [][]int32 {
	all := make([][]int32, h.experts)
	for k, o := range h.owners { // each has one device here, as it has no replicas
		all[o.pipeline%h.experts] = append(all[o.pipeline%h.experts], h.devices[k])
	}
	return all
}

// reduce is what it takes to sum up gradients, of layers of which a device holds so much: what the experts are
// among them goes around a smaller ring, of the copies that have the same ones. It tells how many KiB of
// the others take as long as one of theirs.
func (x *Simulator) reduce(h *held) (ring overlap.Costs, worth float64) {
	ring, worth = x.On.ring(h.devices), 1
	if h.experts <= 1 {
		return ring, worth
	}
	var own overlap.Costs
	for _, devices := range h.classes() {
		c := x.On.ring(devices)
		own.Start, own.MicrosPerKiB = max(own.Start, c.Start), max(own.MicrosPerKiB, c.MicrosPerKiB)
	}
	ring.Start += own.Start
	if worth = 0; ring.MicrosPerKiB > 0 {
		worth = own.MicrosPerKiB / ring.MicrosPerKiB
	}
	return ring, worth
}
