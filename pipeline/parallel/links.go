package parallel

import (
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// What a plan does on the links between nodes, for those who share them: how much it sends in a step, and
// how long a step is with a part of the links. What is hidden behind passes shows in the second alone.

// leastShare is the smallest part of the uplinks for which a step is simulated, in thousandths, and closeEnough how
// far a straight line between two simulated parts may be off halfway.
const (
	leastShare  = 62
	closeEnough = .005
	deepest     = 5
)

// Shares are how long a step of a plan takes with parts of the uplinks of its nodes, from the whole down; between
// two of them it grows with one over the part. None says that no link counts.
func (x *Simulator) Shares(p *Plan) (all []workload.Share) {
	on := *x.On
	on.Nodes, on.Racks = slices.Clone(x.On.Nodes), slices.Clone(x.On.Racks)
	y := x.Like(x.Model, &on)
	step := func(milli int32) unit.Duration {
		part := func(whole unit.Mbps) unit.Mbps {
			if whole == 0 {
				return 0 // endless
			}
			return max(1, whole*unit.Mbps(milli)/1000)
		}
		for i := range on.Nodes {
			on.Nodes[i].Out = part(x.On.Nodes[i].Out)
		}
		for i := range on.Racks {
			on.Racks[i] = part(x.On.Racks[i])
		}
		if r, why := y.Simulate(p); why == "" {
			return r.Step
		}
		return 0
	}
	whole, least := workload.Share{Milli: 1000, Step: step(1000)}, workload.Share{Milli: leastShare, Step: step(leastShare)}
	if whole.Step == 0 || least.Step <= whole.Step {
		return nil
	}
	all = []workload.Share{whole}
	var between func(a, b workload.Share, depth int)
	between = func(a, b workload.Share, depth int) {
		// Halfway of one over the part, by which what is sent grows.
		mid := workload.Share{Milli: int32(math.Round(2 / (1/float64(a.Milli) + 1/float64(b.Milli))))}
		if mid.Milli < a.Milli && mid.Milli > b.Milli && depth > 0 {
			mid.Step = step(mid.Milli)
			line := float64(workload.StepAt([]workload.Share{a, b}, float64(mid.Milli)/1000))
			if math.Abs(line/float64(mid.Step)-1) > closeEnough {
				between(a, mid, depth-1)
				between(mid, b, depth-1)
				return
			}
		}
		all = append(all, b)
	}
	between(whole, least, deepest)
	return all
}

// Sent is by node how many KiB it sends to others in a step of a plan: activations and their gradients between
// stages, gradients of weights around their rings, and tokens to experts and back.
func (x *Simulator) Sent(c *Candidate) []int64 {
	sent, p := make([]int64, len(x.On.Nodes)), &c.Plan
	cross := func(from, to int32, kib float64) {
		if a := x.On.NodeOf(from); a != x.On.NodeOf(to) {
			sent[a] += int64(math.Ceil(kib))
		}
	}
	for i := range p.Pipelines {
		one, part := &p.Pipelines[i], c.Result.Parts[i]
		routes := part.Schedule.Routes
		for s := range part.Costs.Stages[1:] {
			each := float64(part.Costs.Stages[s].OutputKiB) * float64(one.Microbatches) / float64(len(routes))
			for _, route := range routes {
				a, b := one.Ranks[route[s]].Devices[0], one.Ranks[route[s+1]].Devices[0]
				cross(a, b, each)
				cross(b, a, each)
			}
		}
		x.tokensSent(p, i, cross)
	}
	borders := x.borders(p)
	for b := len(borders) - 1; b > 0; b-- {
		h := x.owners(p, &c.Result, borders[b-1], borders[b])
		ring := func(devices []int32, kib int64) {
			n := float64(len(devices))
			for k, d := range devices {
				tensor := float64(p.Pipelines[h.owners[0].pipeline].Ranks[h.owners[0].rank].Tensor) // each of them sends its part
				cross(d, devices[(k+1)%len(devices)], 2*(n-1)/n*tensor*float64(kib)*x.Model.State.Gradients)
			}
		}
		ring(h.devices, h.kib)
		if h.experts > 1 {
			for _, devices := range h.classes() {
				ring(devices, h.expertKiB)
			}
		}
	}
	return sent
}

// tokensSent tells what the devices of a pipeline send to experts on other copies.
func (x *Simulator) tokensSent(p *Plan, i int, cross func(from, to int32, kib float64)) {
	one, n := &p.Pipelines[i], int32(x.Model.Profile.Layers())
	shape, why := x.routes(p.Sequence, len(one.Ranks), one.Microbatches)
	if why != "" {
		return // it was simulated
	}
	for s, first := range append([]int32{0}, one.Cuts...) {
		end := n
		if s < len(one.Cuts) {
			end = one.Cuts[s]
		}
		for _, route := range shape.all {
			rank := p.group(i, int(route[s]))
			if rank.Experts <= 1 {
				continue
			}
			kib := 0.
			for l := first; l < end; l++ {
				if way, why := x.Layer(int(l), x.On.Nodes[x.On.NodeOf(rank.Devices[0])].Kind, rank.Tensor, p.Samples, one.Ways); why == "" && way.Mixture.Count > 0 {
					times := 4. // there and back, in both passes
					if way.Mixture.Again > 0 {
						times = 6
					}
					kib += times * float64(way.Mixture.SendKiB)
				}
			}
			// As much goes to each copy, by every device of the layer.
			kib *= float64(one.Microbatches) * float64(rank.Tensor) / float64(rank.Experts) / float64(len(shape.all))
			for at := 0; at < len(rank.Devices); at += rank.Tensor {
				cross(one.Ranks[route[s]].Devices[0], rank.Devices[at], kib)
			}
		}
	}
}
