package oobleck

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Setting is what the templates of a family have in common.
type Setting struct {
	Sequence parallel.Sequence
	Samples  int  // of a microbatch
	Way      int8 // in which all layers run
	Nodes    int  // of which pipelines are made
	// Alone asks for one pipeline with a rank for each device: what a run of as many workers as
	// it has stages can carry out. Then nothing can be lost.
	Alone bool
}

// Template is a pipeline over so many nodes. It names no node: any nodes can carry it, which is why
// it can be made before anything has failed.
type Template struct {
	Sizes []int   // devices of each stage, none over several nodes
	Cuts  []int32 // first layer of each stage but the first
	// First and More are how long it takes with microbatches: First + n * More. A pipeline fills
	// once and then ends a microbatch each time that its slowest stage does, so two simulations
	// tell the time of any number of them.
	First, More float64
}

// Family is the templates of a model: of each number of nodes, from the least on which it fits to
// one below twice as many. With these sizes, and not with one fewer, every larger number of nodes
// is a sum: whatever number a failure leaves, pipelines can be made that use all of them.
type Family struct {
	Setting
	Least     int
	Templates []*Template // by the number of nodes, from Least on; nil where none fits

	inNode  int // devices
	batches int // microbatches of a step
	layers  int
	ways    []int8
	alone   *parallel.Simulator // of one pipeline
}

// NewFamily makes the templates, or says why the model fits on no number of nodes.
func NewFamily(x *parallel.Simulator, s Setting) (*Family, parallel.Why) {
	first := x.On.Nodes[0]
	for i, n := range x.On.Nodes {
		if n != first {
			return nil, parallel.Why(fmt.Sprintf("node %d is unlike node 0: templates are for nodes of one kind, with as many devices and as fast links", i))
		}
	}
	model := *x.Model
	f := &Family{Setting: s, inNode: int(first.Count), batches: model.Batch / s.Samples, layers: model.Profile.Layers(), alone: parallel.NewSimulator(&model, x.On)}
	f.ways = x.AllIn(s.Way, 1)
	search := newSearch(f, x)
	why := parallel.Why("")
	for n := 1; n <= s.Nodes && (f.Least == 0 || n < 2*f.Least); n++ {
		// Fewer nodes than there are make no pipeline that stands alone.
		if s.Alone && n < s.Nodes {
			search.extend(n * f.inNode)
			continue
		}
		t, not := f.best(search, n)
		if why == "" {
			why = not
		}
		switch {
		case t != nil && f.Least == 0:
			f.Least, f.Templates = n, []*Template{t}
		case f.Least > 0:
			f.Templates = append(f.Templates, t)
		}
	}
	if f.Least == 0 {
		return nil, why
	}
	return f, ""
}

// Of is the template of so many nodes, nil where there is none.
func (f *Family) Of(nodes int) *Template {
	if nodes < f.Least || nodes >= f.Least+len(f.Templates) {
		return nil
	}
	return f.Templates[nodes-f.Least]
}

// best is the template of so many nodes. A pipeline over a part of the nodes gets about that part of
// the batch, and is measured by it: of the divisions that no other beats both in the slowest
// stage and in the way through all, the one that is fastest with its share of the batch.
func (f *Family) best(s *search, nodes int) (best *Template, why parallel.Why) {
	s.extend(nodes * f.inNode)
	share := float64(max(1, f.batches*nodes/f.Nodes))
	for _, t := range s.templates(nodes * f.inNode) {
		if f.Alone && len(t.Sizes) != nodes*f.inNode {
			continue
		}
		if not := f.time(t, nodes); not != "" {
			if why == "" {
				why = not
			}
			continue
		}
		if best == nil || t.takes(share) < best.takes(share) {
			best = t
		}
	}
	if best == nil && why == "" {
		why = parallel.Why(fmt.Sprintf("%d layers on %d nodes of %d devices: no stage of them fits", f.layers, nodes, f.inNode))
	}
	return best, why
}

// takes is how long so many microbatches take.
func (t *Template) takes(microbatches float64) float64 { return t.First + t.More*microbatches }

// time simulates a template alone, without the exchange of gradients: who it is exchanged with
// depends on the mix. It is played with twice and four times as many microbatches as it has stages.
func (f *Family) time(t *Template, nodes int) parallel.Why {
	var took [2]float64
	group := consecutive([]int{nodes})[0]
	few := 2 * len(t.Sizes)
	for i := range took {
		n := few * (i + 1)
		f.alone.Model.Batch = n * f.Samples
		p := parallel.Plan{Samples: f.Samples, Sequence: f.Sequence, Pipelines: []parallel.Pipeline{f.pipeline(t, group, n)}}
		r, why := f.alone.Simulate(&p)
		if why != "" {
			return why
		}
		took[i] = float64(r.Parts[0].Timing.Makespan)
	}
	t.More = max(1e-3, (took[1]-took[0])/float64(few)) // for layers that take no time
	t.First = took[0] - t.More*float64(few)
	return ""
}

// pipeline puts a template on nodes. All devices of a stage share its layers, so that none of them
// holds a layer whole.
func (f *Family) pipeline(t *Template, nodes []int32, microbatches int) parallel.Pipeline {
	one := parallel.Pipeline{Microbatches: microbatches, Cuts: t.Cuts, Ways: f.ways}
	next := 0
	for _, size := range t.Sizes {
		r := parallel.Rank{Tensor: size, Replicas: 1}
		for range size {
			r.Devices = append(r.Devices, nodes[next/f.inNode]*int32(f.inNode)+int32(next%f.inNode))
			next++
		}
		one.Ranks = append(one.Ranks, r)
	}
	return one
}

// search divides layers and devices among stages, by dynamic programming over the first layers on
// the first devices. The time of a pipeline is nearly the way through all stages and, for each
// further microbatch, the slowest of them. Which of two divisions is better depends on how many
// microbatches come, so that both figures are kept, and a division goes only where another beats
// it in both. The simulation chooses among the few that are left.
type search struct {
	f *Family
	x *parallel.Simulator
	// fronts hold by devices and layers, both counted from the first, what no other way to divide
	// them beats.
	fronts [][][]division
	// stages are how long a microbatch takes of the layers from first to end on so many devices:
	// the same few are asked for on any devices.
	stages map[[3]int]unit.Duration
}

// division is some first layers on some first devices.
type division struct {
	through, slowest unit.Duration
	size, layers     int // devices of the last stage, and layers before it
	before           int // of the front there
}

func newSearch(f *Family, x *parallel.Simulator) *search {
	s := &search{f: f, x: x, fronts: [][][]division{make([][]division, f.layers+1)}, stages: map[[3]int]unit.Duration{}}
	s.fronts[0][0] = []division{{}}
	return s
}

// extend divides the layers among up to so many devices: what was found for fewer stays, and is
// built upon. So the templates of all numbers of nodes cost one search, though nobody knows
// before which number is the least. A stage takes a divisor of the devices of
// a node, as a node can be halved and halved again.
func (s *search) extend(devices int) {
	for d := len(s.fronts); d <= devices; d++ {
		at := make([][]division, s.f.layers+1)
		for size := 1; size <= s.f.inNode; size++ {
			// Sizes that divide what is before them keep a stage within a node.
			if s.f.inNode%size != 0 || d%size != 0 || s.f.Alone && size > 1 {
				continue
			}
			link := s.link(d-size, size)
			for end := 1; end <= s.f.layers; end++ {
				for first := range end {
					if before := s.fronts[d-size][first]; len(before) > 0 {
						at[end] = s.join(at[end], before, division{size: size, layers: first}, end, link)
					}
				}
			}
		}
		for end := range at {
			at[end] = front(at[end])
		}
		s.fronts = append(s.fronts, at)
	}
}

// join adds a stage to each division before it.
func (s *search) join(to, before []division, last division, end int, link func(layer int) unit.Duration) []division {
	takes := s.stage(last.layers, end, last.size)
	if takes == unit.Forever {
		return to
	}
	if last.layers > 0 {
		last.through = link(last.layers)
	}
	for i, b := range before {
		to = append(to, division{b.through + takes + last.through, max(b.slowest, takes), last.size, last.layers, i})
	}
	return to
}

// front keeps what no other division beats, the shortest way through first. Of equal ones the
// first stays, so that the same model always has the same templates.
func front(all []division) []division {
	slices.SortStableFunc(all, func(a, b division) int {
		return cmp.Or(cmp.Compare(a.through, b.through), cmp.Compare(a.slowest, b.slowest))
	})
	kept := all[:0]
	for _, d := range all {
		if len(kept) == 0 || d.slowest < kept[len(kept)-1].slowest {
			kept = append(kept, d)
		}
	}
	return slices.Clip(kept)
}

// stage is how long a microbatch takes of some layers on so many devices of a node, both ways, or
// Forever where the weights and one microbatch do not fit.
func (s *search) stage(first, end, size int) unit.Duration {
	key := [3]int{first, end, size}
	if takes, seen := s.stages[key]; seen {
		return takes
	}
	takes := unit.Forever
	rank := parallel.Rank{Tensor: size, Replicas: 1, Devices: make([]int32, size)}
	costs, _, why := s.x.Stage(&rank, parallel.Slice{First: first, End: end, Ways: s.f.ways}, s.f.Samples, 1)
	// How many microbatches are kept depends on the stages that follow, which are not known yet: the
	// simulation says in the end what does not fit.
	if has := int64(s.x.On.Kind(0).Room()) << 10; why == "" && (has == 0 || costs.ParamKiB+costs.StateKiB+costs.ActivationKiB <= has) {
		takes = costs.Forward + costs.Input + costs.Weight
	}
	s.stages[key] = takes
	return takes
}

// link is how long the output before a layer is under way to a stage on so many devices, and its
// gradient back.
func (s *search) link(at, size int) func(layer int) unit.Duration {
	return func(layer int) unit.Duration {
		costs, _, why := s.x.Stage(&parallel.Rank{Tensor: size, Replicas: 1, Devices: make([]int32, size)}, parallel.Slice{First: layer - 1, End: layer, Ways: s.f.ways}, s.f.Samples, 1)
		if why != "" {
			return 0
		}
		return 2 * s.x.On.Between([]int32{int32(at - 1)}, []int32{int32(at)}).Takes(costs.OutputKiB)
	}
}

// templates are the divisions of all layers among so many devices.
func (s *search) templates(devices int) (all []*Template) {
	for i := range s.fronts[devices][s.f.layers] {
		t := &Template{}
		for d, layers := devices, s.f.layers; d > 0; {
			last := s.fronts[d][layers][i]
			t.Sizes = append(t.Sizes, last.size)
			if last.layers > 0 {
				t.Cuts = append(t.Cuts, int32(last.layers))
			}
			d, layers, i = d-last.size, last.layers, last.before
		}
		slices.Reverse(t.Sizes)
		slices.Reverse(t.Cuts)
		all = append(all, t)
	}
	return all
}
