package adapipe

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// choice is what there is to choose from: layers on each rank, ways of a layer, and how much of
// them fits.
type choice struct {
	layers   [][][]pipeline.Stage // by rank, layer and way; like ranks share theirs
	like     []int                // by rank: the first like it
	sums     []*parallel.Sums     // by rank, for what layers hold in any way
	inFlight []int32
	memory   []int64 // KiB
}

// newChoice asks the profile for the ways of each layer on each kind of rank.
func newChoice(x *parallel.Simulator, s *parallel.Shape, keep bool) (*choice, parallel.Why) {
	order, why := s.Sequence.Order.Schedule(s.Ranks, s.Microbatches, nil)
	if why != "" {
		return nil, why
	}
	c := &choice{inFlight: order.InFlight()}
	ranks := s.Plan().Pipelines[0].Ranks
	for r := range ranks {
		device := ranks[r].Devices[0]
		c.like = append(c.like, slices.IndexFunc(ranks, func(other parallel.Rank) bool { return x.On.Alike(other.Devices, ranks[r].Devices) }))
		memory := int64(math.MaxInt64)
		if has := x.On.Kind(device).Room(); has > 0 {
			memory = int64(has) << 10
		}
		c.memory = append(c.memory, memory)
		if like := c.like[r]; like < r {
			c.layers, c.sums = append(c.layers, c.layers[like]), append(c.sums, c.sums[like])
			continue
		}
		sums, why := x.Sums(&ranks[r], s.Samples, s.Copies, nil)
		if why != "" {
			return nil, why
		}
		c.sums = append(c.sums, sums)
		all := make([][]pipeline.Stage, x.Model.Profile.Layers())
		for i := range all {
			ways, why := x.Ways(i, x.On.Nodes[x.On.NodeOf(device)].Kind, s.Tensor, s.Samples)
			if why != "" {
				return nil, why
			}
			if keep {
				ways = ways[:1]
			}
			for w := range ways {
				one, _, _ := x.Stage(&ranks[r], parallel.Slice{First: i, End: i + 1, Ways: slices.Repeat([]int8{int8(w)}, len(all))}, s.Samples, s.Copies)
				all[i] = append(all[i], one)
			}
		}
		c.layers = append(c.layers, all)
	}
	return c, ""
}

// beam is how many cuts of the last stages are kept for each layer at which they can begin, the
// best by the closed form. Eight layers on four devices have no more.
const beam = 16

// cuts are those that could be best, by the closed form.
func (c *choice) cuts(microbatches int) []form {
	stages, n := len(c.like), len(c.layers[0])
	costs := c.costs()
	behind := make([][]form, n+1)
	behind[n] = []form{{}}
	for stage := stages - 1; stage >= 0; stage-- {
		next := make([][]form, n+1)
		for first := range n {
			if first < stage || stage == 0 && first > 0 {
				continue
			}
			for end := first + 1; end <= n; end++ {
				one := costs[stage][first][end]
				if one.forward == unit.Forever {
					continue
				}
				for i := range behind[end] {
					next[first] = append(next[first], behind[end][i].before(one, int32(first), stages-1-stage, microbatches, stages))
				}
			}
			// What those cut so far would take if nothing stood before them: by that those behind the
			// same layer are compared, which all have the same before them.
			slices.SortStableFunc(next[first], func(a, b form) int { return cmp.Compare(a.step, b.step) })
			if stage > 0 {
				next[first] = next[first][:min(beam, len(next[first]))]
			}
		}
		behind = next
	}
	return behind[0]
}

// costs are those of all stages, by stage, first layer and end; Forever where nothing fits.
func (c *choice) costs() [][][]cost {
	n := len(c.layers[0])
	all := make([][][]cost, len(c.like))
	for stage := range all {
		all[stage] = make([][]cost, n)
		for first := range n {
			all[stage][first] = slices.Repeat([]cost{{forward: unit.Forever}}, n+1)
		}
	}
	for kind, like := range c.like {
		if kind != like {
			continue
		}
		for first := range n {
			// What there is to choose for layers depends on the stage by its memory alone: one list
			// of sets for all stages, which grows layer by layer.
			sets := []set{{}}
			for end := first + 1; end <= n; end++ {
				sets = extend(sets, c.layers[kind][end-1])
				for stage := range all {
					if c.like[stage] == kind {
						if i := c.fits(sets, stage, first, end); i >= 0 {
							all[stage][first][end] = sets[i].cost
						}
					}
				}
			}
		}
	}
	return all
}

// ways are those in which layers run that are cut so.
func (c *choice) ways(first []int32) []int8 {
	n := len(c.layers[0])
	ways := make([]int8, n)
	for stage, begin := range first {
		end := n
		if stage+1 < len(first) {
			end = int(first[stage+1])
		}
		// The lists of the costs once more, with the way back through them: to keep all of those
		// would take more memory than to make these few again takes time.
		steps := [][]set{{{}}}
		for i := int(begin); i < end; i++ {
			steps = append(steps, extend(steps[len(steps)-1], c.layers[stage][i]))
		}
		at := c.fits(steps[len(steps)-1], stage, int(begin), end)
		for i := end - 1; i >= int(begin); i-- {
			one := steps[i-int(begin)+1][at]
			ways[i], at = one.way, int(one.from)
		}
	}
	return ways
}

// fits is the fastest set that fits a stage, -1 where none does.
func (c *choice) fits(sets []set, stage, first, end int) int {
	held := c.sums[stage].Stage(first, end)
	room := c.memory[stage] - held.ParamKiB - held.StateKiB
	if room < 0 {
		return -1
	}
	i, exact := slices.BinarySearchFunc(sets, room/max(1, int64(c.inFlight[stage])), func(s set, most int64) int { return cmp.Compare(s.kept, most) })
	if !exact {
		i--
	}
	return i
}

// set is a way for each of some layers: what they keep of a microbatch, and what they cost.
type set struct {
	kept int64
	cost
	way  int8  // of the last of them
	from int32 // the set of those before
}

// mostSets is how many sets of the same layers are kept. Where there are more, the fastest of
// those go on that keep about as much; none is ever more than it says.
const mostSets = 1024

// extend are the sets with one more layer: those of which no other keeps less and is as fast,
// from the leanest to the fastest.
func extend(sets []set, ways []pipeline.Stage) (all []set) {
	for from, s := range sets {
		for w := range ways {
			l := &ways[w]
			all = append(all, set{s.kept + l.ActivationKiB, cost{s.forward + l.Forward, s.backward + l.Input + l.Weight}, int8(w), int32(from)})
		}
	}
	slices.SortStableFunc(all, func(a, b set) int { return cmp.Or(cmp.Compare(a.kept, b.kept), cmp.Compare(a.both(), b.both())) })
	least, kept := unit.Forever, all[:0]
	for _, s := range all {
		if s.both() < least {
			kept, least = append(kept, s), s.both()
		}
	}
	if len(kept) <= mostSets {
		return kept
	}
	// Buckets of equal width, of each of which the fastest stays. The leanest of all stays beside
	// them, so that what fits at all still does.
	lean, width := kept[0].kept, (kept[len(kept)-1].kept-kept[0].kept)/mostSets+1
	thin := kept[:0]
	for _, s := range kept {
		if n := len(thin); n > 1 && (thin[n-1].kept-lean)/width == (s.kept-lean)/width {
			thin[n-1] = s
			continue
		}
		thin = append(thin, s)
	}
	return thin
}
