package parallel

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Recoverer also knows how a run goes on without some devices.
type Recoverer interface {
	Planner
	// Recover returns a plan on the devices that are left, of the same batch, and what has to
	// be sent before it runs; or why only a restart helps.
	Recover(x *Simulator, p *Plan, lost []int32, l Limits) (Recovery, Why)
}

// Recovery is how a run goes on.
type Recovery struct {
	Candidate
	// Restart says that it goes on from the last checkpoint: nothing is sent between devices, and
	// what was done since is done again.
	Restart bool
	Copies  []Copy
	// Takes is how long the copies are under way, each device sending and receiving one at a time.
	Takes unit.Duration
}

// Copy is weights that one device sends to another, with the state of their optimiser.
type Copy struct {
	Layer    int32
	From, To int32
	KiB      int64
}

// Restart plans anew for the devices that are left, as if there had never been others. Whatever
// was lost is in the checkpoint, at the price of what was done since; the run goes on from a checkpoint.
func Restart(x *Simulator, planner Planner, lost []int32, l Limits) (Recovery, Why) {
	// The planner sees devices that are numbered without gaps; the run goes on with the numbers
	// that they had.
	left, was := x.On.Without(lost)
	all, why := planner.Plans(x.Like(x.Model, left), l)
	if why != "" {
		return Recovery{}, why
	}
	plan := all[0].Plan.On(was)
	result, why := x.Simulate(&plan)
	return Recovery{Candidate: Candidate{plan, result}, Restart: true}, why
}

// Recovery is that of a run which goes on by another plan. The copies begin as early as they can, in
// the order of the layers, with what its devices do not hold
// yet sent by those that are left; or why that is nowhere.
func (x *Simulator) Recovery(before, after *Plan, lost []int32) (r Recovery, why Why) {
	if r.Result, why = x.Simulate(after); why != "" {
		return r, why
	}
	r.Plan = *after
	if r.Copies, why = x.Copies(before, after, lost); why != "" {
		return r, why
	}
	// Links are not shared: as in a step, each device has its part of the uplink of its node.
	sends, receives := make([]unit.Duration, x.On.Len()), make([]unit.Duration, x.On.Len())
	for _, c := range r.Copies {
		end := max(sends[c.From], receives[c.To]) + x.On.Between([]int32{c.From}, []int32{c.To}).Takes(c.KiB)
		sends[c.From], receives[c.To], r.Takes = end, end, max(r.Takes, end)
	}
	return r, ""
}

// A recovery is told from two plans alone: what the devices held under the one, and what they need
// under the other. So any planner can recover, and to take in devices that come is the same as
// to go on without some.

// shard is the part of a layer that a device holds: one of so many equal ones.
type shard struct {
	device       int32
	at, of       int
	kib          int64
	first, count int // in the finest parts of any
}

// Copies are what has to be sent before a run goes on by another plan: of each layer, the parts
// that a device needs and did not hold, and of a part that it held half only the other half. Who holds a part and has sent least so far sends it, one
// in the same node first.
func (x *Simulator) Copies(before, after *Plan, lost []int32) (all []Copy, why Why) {
	if why := x.Spread(before, lost); why != "" {
		return nil, why
	}
	apart := before.Experts() > 1 || after.Experts() > 1
	held, why := x.shards(before, apart)
	if why != "" {
		return nil, why
	}
	need, why := x.shards(after, apart)
	if why != "" {
		return nil, why
	}
	// Whoever has sent least sends next, so that all copies of a layer take part: a single one would
	// be what everybody waits for.
	sent := make([]int64, x.On.Len())
	own := make([]*shard, x.On.Len()) // of the layer, by device
	for layer := range need {
		held[layer] = slices.DeleteFunc(held[layer], func(s shard) bool { return slices.Contains(lost, s.device) })
		// Parts of a third and of a half are counted in sixths.
		finest := 1
		for _, s := range slices.Concat(held[layer], need[layer]) {
			finest = multiple(finest, s.of)
		}
		for _, list := range [][]shard{held[layer], need[layer]} {
			for i := range list {
				list[i].count = finest / list[i].of
				list[i].first = list[i].at * list[i].count
			}
		}
		clear(own)
		for i := range held[layer] {
			own[held[layer][i].device] = &held[layer][i]
		}
		for _, s := range need[layer] {
			if o := own[s.device]; o != nil && o.first <= s.first && s.first+s.count <= o.first+o.count {
				continue // most devices have what they need
			}
			some, why := x.fetch(int32(layer%x.Model.Profile.Layers()), &s, held[layer], sent)
			if why != "" {
				return nil, why
			}
			all = append(all, some...)
		}
	}
	return all, ""
}

// Spread says why what lost devices held of the optimiser's state is nowhere, or nothing where it is
// on others.
func (x *Simulator) Spread(before *Plan, lost []int32) Why {
	// Each device of a pipeline then has a part of the moments that no other has.
	if s := x.Model.State; s.Sharded && s.Optimizer > 0 && len(before.Pipelines) > 1 && len(lost) > 0 {
		return whyf("the state of the optimiser is spread over the copies: what the lost devices held of it is nowhere; expected each copy to hold all, or a restart")
	}
	return ""
}

// multiple is the least common one.
func multiple(a, b int) int {
	n := a
	for n%b != 0 {
		n += a
	}
	return n
}

// fetch is what a device has to be sent of a layer, and by whom. It goes by the finest parts, as
// one plan may split a layer over two devices and the other over eight.
func (x *Simulator) fetch(layer int32, need *shard, held []shard, sent []int64) (all []Copy, why Why) {
	for part := need.first; part < need.first+need.count; part++ {
		var from *shard
		for i := range held {
			s := &held[i]
			if part < s.first || part >= s.first+s.count {
				continue
			}
			if s.device == need.device { // it has the part itself, and nothing is sent
				from = s
				break
			}
			if from == nil || cmp.Or(x.away(s, need)-x.away(from, need), cmp.Compare(sent[s.device], sent[from.device])) < 0 {
				from = s
			}
		}
		if from == nil {
			return nil, whyf("layer %d is on no device that is left: expected a copy of it, or a restart", layer)
		}
		if from.device == need.device {
			continue
		}
		// Rounded so that the parts add up to the whole.
		kib := need.kib * int64(part-need.first+1) / int64(need.count)
		kib -= need.kib * int64(part-need.first) / int64(need.count)
		sent[from.device] += kib
		if last := len(all) - 1; last >= 0 && all[last].From == from.device {
			all[last].KiB += kib
			continue
		}
		all = append(all, Copy{Layer: layer, From: from.device, To: need.device, KiB: kib})
	}
	return all, ""
}

// away is 0 in one node and 1 outside.
func (x *Simulator) away(a, b *shard) int {
	if x.On.NodeOf(a.device) == x.On.NodeOf(b.device) {
		return 0
	}
	return 1
}

// shards are what devices hold of each layer and, where some are spread, behind those of each layer's
// experts apart.
func (x *Simulator) shards(p *Plan, apart bool) ([][]shard, Why) {
	n := x.Model.Profile.Layers()
	all := make([][]shard, n)
	if apart {
		all = make([][]shard, 2*n)
	}
	for i := range p.Pipelines {
		one := &p.Pipelines[i]
		shape, why := x.routes(p.Sequence, len(one.Ranks), one.Microbatches)
		if why != "" {
			return nil, why
		}
		first := int32(0)
		for stage, end := range append(slices.Clone(one.Cuts), int32(n)) {
			// A stage may stand on several ranks, one for each route, and a rank be on several routes.
			var ranks []int32
			for _, route := range shape.all {
				ranks = append(ranks, route[stage])
			}
			slices.Sort(ranks)
			for _, r := range slices.Compact(ranks) {
				rank := &one.Ranks[r]
				kind := x.On.Nodes[x.On.NodeOf(rank.Devices[0])].Kind
				for layer := first; layer < end; layer++ {
					l, why := x.Layer(int(layer), kind, rank.Tensor, p.Samples/rank.Replicas, one.Ways)
					if why != "" {
						return nil, why
					}
					kept := func(kib int64) int64 {
						return int64(math.Ceil(float64(kib) * (x.Model.State.Weights + x.Model.State.Optimizer)))
					}
					copies, whole := max(1, rank.Experts), l.ParamKiB
					if apart {
						whole -= l.Mixture.ParamKiB
					}
					for d, device := range rank.Devices {
						s := shard{device: device, at: d % rank.Tensor, of: rank.Tensor, kib: kept(whole)}
						all[layer] = append(all[layer], s)
						if apart && l.Mixture.Count > 0 { // of each copy another part, of which each device has its own
							s.at, s.of, s.kib = s.at*copies+i%copies, s.of*copies, kept(l.Mixture.heldKiB(copies))
							all[n+int(layer)] = append(all[n+int(layer)], s)
						}
					}
				}
			}
			first = end
		}
	}
	return all, ""
}
