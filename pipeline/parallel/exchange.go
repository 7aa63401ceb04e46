package parallel

import (
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// exchange is when all gradients have been summed up over the devices that hold the same
// weights. Layers that the same ranks hold go together, from when the last of these has ended its
// passes. Where pipelines are cut alike each rank has one such sum. Where they are not it has
// several, one at a time: what can begin first goes first, of several the last layers. From the
// last layers to the first in each case, every sum would wait for the one before. Of the first sum
// of all its ranks, what Gradients hides behind the passes of the last microbatch was sent before.
func (x *Simulator) exchange(p *Plan, r *Result) (last unit.Duration) {
	ready := make([][]unit.Duration, len(p.Pipelines))
	for i, part := range r.Parts {
		ready[i] = make([]unit.Duration, len(part.Timing.Spans))
		for k, spans := range part.Timing.Spans {
			for _, s := range spans {
				ready[i][k] = max(ready[i][k], unit.Duration(s.End)/part.iterations)
			}
			last = max(last, ready[i][k])
		}
	}
	var left []sum
	borders := x.borders(p)
	for b := len(borders) - 1; b > 0; b-- {
		h := x.owners(p, r, borders[b-1], borders[b])
		ring, worth := x.reduce(&h)
		took := ring.Takes(int64(math.Ceil((float64(h.kib) + worth*float64(h.expertKiB)) * x.Model.State.Gradients)))
		if took == 0 {
			continue
		}
		one := sum{owners: h.owners, takes: took, exposed: took}
		if x.Gradients != nil {
			ring.Layers, ring.Memory = x.behind(p, r, h.owners, worth, borders[b-1], borders[b])
			merged := x.Gradients.Merge(&ring)
			if t, why := merged.Time(&ring); why == "" {
				one.exposed, one.hidden = t.Exposed(), t.Overlap
			}
		}
		left = append(left, one)
	}
	sent := map[owner]bool{}
	for len(left) > 0 {
		next, begin := 0, unit.Forever
		for i := range left {
			if at := left[i].begin(ready); at < begin {
				next, begin = i, at
			}
		}
		end := begin + left[next].exposed
		if slices.ContainsFunc(left[next].owners, func(o owner) bool { return sent[o] }) {
			end = begin + left[next].takes
		} else {
			r.hidden += unit.Duration(len(left[next].owners)) * left[next].hidden
		}
		for _, o := range left[next].owners {
			ready[o.pipeline][o.rank], sent[o] = end, true
		}
		last = max(last, end)
		left = slices.Delete(left, next, next+1)
	}
	return last
}

// sum is the gradients of some layers, over all that hold them. It occupies its owners, one at a
// time, because they send with the links that the next sum would take.
type sum struct {
	owners []owner
	takes  unit.Duration
	// exposed is the part behind the last pass, and hidden that during passes, if it is the first
	// sum of its owners: another has their links before.
	exposed, hidden unit.Duration
}

// begin is when the last of the owners is ready: a sum needs all of them, as its ring goes through
// each.
func (s *sum) begin(ready [][]unit.Duration) (at unit.Duration) {
	for _, o := range s.owners {
		at = max(at, ready[o.pipeline][o.rank])
	}
	return at
}

// borders are the layers at which a stage of any pipeline begins, and the end of the last.
func (x *Simulator) borders(p *Plan) []int32 {
	all := []int32{0, int32(x.Model.Profile.Layers())}
	for i := range p.Pipelines {
		all = append(all, p.Pipelines[i].Cuts...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// owner is a rank that holds some layers.
type owner struct{ pipeline, rank int }

// held is who holds some layers: the ranks, a device of each of their replicas (the others do the same
// with their parts), and what the fullest device has of weights, the experts that are spread apart.
type held struct {
	owners         []owner
	devices        []int32
	kib, expertKiB int64
	experts        int // over how many copies
}

// owners are the ranks that hold the layers from first to end.
func (x *Simulator) owners(p *Plan, r *Result, first, end int32) (h held) {
	for i := range p.Pipelines {
		one := &p.Pipelines[i]
		stage, starts := slices.BinarySearch(one.Cuts, first)
		if starts {
			stage++
		}
		for _, route := range r.Parts[i].Schedule.Routes {
			o := owner{i, int(route[stage])}
			if slices.Contains(h.owners[max(0, len(h.owners)-len(r.Parts[i].Schedule.Routes)):], o) {
				continue
			}
			h.owners = append(h.owners, o)
			rank, kib, experts := &one.Ranks[o.rank], int64(0), int64(0)
			h.experts = rank.Experts
			for l := first; l < end; l++ {
				if layer, why := x.Layer(int(l), x.On.Nodes[x.On.NodeOf(rank.Devices[0])].Kind, rank.Tensor, p.Samples/rank.Replicas, one.Ways); why == "" {
					kib += layer.ParamKiB
					if rank.Experts > 1 {
						kib -= layer.Mixture.ParamKiB
						experts += layer.Mixture.heldKiB(rank.Experts)
					}
				}
			}
			h.kib, h.expertKiB = max(h.kib, kib), max(h.expertKiB, experts)
			for at := 0; at < len(rank.Devices); at += rank.Tensor {
				h.devices = append(h.devices, rank.Devices[at])
			}
		}
	}
	return h
}

// behind are the layers from first to end as the last microbatch passes them, and what activations
// may take meanwhile. Of unlike owners the shortest pass and the most gradients of each layer count,
// as if all ended at the same time: less is hidden behind that than behind what they do. A KiB of experts
// that are spread is worth so many of others.
func (x *Simulator) behind(p *Plan, r *Result, owners []owner, worth float64, first, end int32) (layers []pipeline.Stage, memory unit.MiB) {
	for i, o := range owners {
		one := &p.Pipelines[o.pipeline]
		rank := p.group(o.pipeline, o.rank)
		if has := x.On.Kind(rank.Devices[0]).Room(); has > 0 {
			left := max(1, has-unit.MiB(r.Parts[o.pipeline].Timing.Peak[o.rank].ParamKiB>>10))
			if memory == 0 || left < memory {
				memory = left
			}
		}
		for l := first; l < end; l++ {
			layer, _, why := x.Stage(&rank, Slice{int(l), int(l) + 1, one.Ways}, p.Samples, len(p.Pipelines))
			if why != "" { // it was timed before
				continue
			}
			kib := float64(layer.ParamKiB)
			if rank.Experts > 1 {
				way, _ := x.Layer(int(l), x.On.Nodes[x.On.NodeOf(rank.Devices[0])].Kind, rank.Tensor, p.Samples, one.Ways) // timed, too
				kib += (worth - 1) * float64(way.Mixture.heldKiB(rank.Experts))
			}
			layer.ParamKiB = int64(math.Ceil(kib * x.Model.State.Gradients))
			if i == 0 {
				layers = append(layers, layer)
				continue
			}
			all := &layers[l-first]
			all.Forward, all.Input, all.Weight = min(all.Forward, layer.Forward), min(all.Input, layer.Input), min(all.Weight, layer.Weight)
			all.ParamKiB = max(all.ParamKiB, layer.ParamKiB)
		}
	}
	return layers, memory
}

// update is how long the optimiser works on the fullest device: it reads and writes once what
// it holds for the weights.
func (x *Simulator) update(p *Plan, r *Result) (longest unit.Duration) {
	for i, part := range r.Parts {
		for k, rank := range p.Pipelines[i].Ranks {
			kind := x.On.Kind(rank.Devices[0])
			if speed := kind.reached(kind.MemoryGBs); speed > 0 {
				bytes := 2 * 1024 * float64(part.Timing.Peak[k].ParamKiB)
				longest = max(longest, unit.Duration(math.Ceil(bytes/(speed*1e3)))) // a GB/s is 1,000 bytes in a microsecond
			}
		}
	}
	return longest
}
