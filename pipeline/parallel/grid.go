package parallel

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
)

// Grid goes through the plans of like pipelines: the sizes of tensor, pipeline and data
// parallelism, of a microbatch, the orders, and ways to run all layers.
//
// How it searches: sizes of tensor parallelism and ways to run the layers are tried while the
// busiest device alone, with nothing around it, would be faster than the best plan so far.
// Pipelines and microbatches are made longer for as long as that makes a step faster, or as a
// plan does not fit. There a step of few microbatches is simulated, which goes on as it did, unless what
// it takes at least is more than the best plan so far; what is best by that is simulated whole, and
// nothing else counts.
type Grid struct {
	// Tensors, Ranks and Samples are the sizes to try; none means those that divide.
	Tensors, Ranks, Samples []int
	Sequences               []Sequence
	// Cut says where the layers are cut; none is into stages of times as equal as can be.
	Cut pipeline.Partitioner
	// Make, where there is one, makes plans of those shapes that are best as they are cut here,
	// and of those behind them by no more than Gain, as a part.
	Make func(s *Shape) ([]Candidate, Why)
	Gain float64
	// Together keeps all copies in one group, whatever sites there are.
	Together bool
	// Mixed says that Make chooses how each layer runs: shapes that differ in that are one.
	Mixed bool

	x *Simulator
	n int // devices
	// lacked is by how much the plan that lacked least memory did, and why says so.
	lacked int64
	why    Why
	// bar is the step from which on a plan is not worth being simulated.
	bar unit.Duration
}

// Trier is a sequence that simulates many orders to choose one of them.
type Trier interface {
	pipeline.Ordering
	// Tries is how many orders it simulates, or in the time of how many it writes its own.
	Tries(ranks, microbatches int) int
}

// mostTried is how many passes forward a sequence may simulate to choose its orders: one that
// would simulate more is left out.
const mostTried = 1 << 15

// family is plans that differ in the length of the pipeline, the size of a microbatch and the
// sequence.
type family struct {
	tensor  int
	experts int
	way     int8
	least   unit.Duration // no plan of it is faster
}

// estimate is a plan by a short step, or, where it is outdone, by what a step takes at least.
type estimate struct {
	shape   Shape
	step    unit.Duration
	outdone bool
}

// sure is by how much an estimate is hardly ever further off.
const sure = 1.02

// behind is how long a plan may take that can still be better than one of an estimate.
func (g *Grid) behind(best unit.Duration) float64 { return sure * (1 + g.Gain) * float64(best) }

// Search simulates what could be best, and returns what fits, the fastest first; or why nothing
// does.
func (g *Grid) Search(x *Simulator, l Limits) (all []Candidate, why Why) {
	one := g.limited(x, l)
	g = &one
	families, why := g.families(l)
	quick, slow := g.apart()
	var short []estimate
	best := unit.Forever
	for _, q := range quick {
		// Of each sequence one plan is wanted, so the first is simulated whatever it takes. The family
		// that was best by another sequence comes first, since it tells soonest what the others have to beat.
		g.bar = unit.Forever
		ahead := -1
		for i, f := range families {
			if f.least >= best {
				continue
			}
			found, not := g.lengthen(f, q, l)
			why = cmp.Or(why, not)
			for _, e := range found {
				if short = append(short, e); e.step < best {
					best, ahead = e.step, i
				}
			}
			if len(found) > 0 && g.Make == nil && best != unit.Forever {
				g.bar = unit.Duration(g.behind(best))
			}
		}
		if ahead > 0 {
			f := families[ahead]
			copy(families[1:], families[:ahead])
			families[0] = f
		}
	}
	ascend := func(a, b estimate) int { return cmp.Compare(a.step, b.step) }
	slices.SortStableFunc(short, ascend)
	// A sequence that simulates many orders would cost as much as all others together, so it is tried where
	// the others are best.
	if n := len(short); n > 0 {
		for _, q := range slow {
			s := short[0].shape
			s.Sequence = q
			if e, _, not := g.short(s); not == "" {
				short = append(short, e)
			}
		}
		slices.SortStableFunc(short, ascend)
	}
	all, not := g.whole(short)
	if len(all) > 0 {
		return all, ""
	}
	return nil, cmp.Or(not, g.why, why, whyf("no sizes of tensor, pipeline and data parallelism divide %d devices and a batch of %d", g.n, x.Model.Batch))
}

// apart are the sequences that go everywhere, and those that simulate many orders for one and are
// tried at the best sizes of the others; where there are no others they go everywhere.
func (g *Grid) apart() (quick, slow []Sequence) {
	for _, q := range g.Sequences {
		if _, tries := q.Order.(Trier); tries {
			slow = append(slow, q)
		} else {
			quick = append(quick, q)
		}
	}
	if len(quick) == 0 {
		return slow, nil
	}
	return quick, slow
}

// limited is the grid within limits.
func (g *Grid) limited(x *Simulator, l Limits) Grid {
	one := *g
	one.x, one.n = x, x.On.Len()
	if l.Devices > 0 {
		one.n = min(one.n, l.Devices)
	}
	if l.Tensor > 0 {
		one.Tensors = []int{l.Tensor}
	}
	if l.Ranks > 0 {
		one.Ranks = []int{l.Ranks}
	}
	// A trainer of as many workers as there are stages takes one device for each, one sample at a time.
	if l.Stages {
		one.Tensors, one.Ranks, one.Samples = []int{1}, []int{one.n}, []int{1}
	}
	return one
}

// whole simulates plans from the best estimate on: the best of each sequence, and those that
// could be better than the best of all. Where the time is over it is the best that can be made.
func (g *Grid) whole(short []estimate) (all []Candidate, why Why) {
	// Of each sequence one plan is wanted besides, so that it can be told why the others lost.
	type sizes struct {
		name                   string
		tensor, ranks, samples int
	}
	best, done, seen := unit.Forever, map[string]bool{}, map[sizes]bool{}
	for _, e := range short {
		if g.x.Over.Why() != "" {
			if len(all) > 0 {
				break
			}
			late := *g.x
			late.Over = nil
			g.x = &late
		}
		name := e.shape.Sequence.Name
		if done[name] && float64(e.step) > g.behind(best) {
			continue
		}
		of := sizes{name, e.shape.Tensor, e.shape.Ranks, e.shape.Samples}
		if g.Mixed && seen[of] {
			continue
		}
		seen[of] = true
		made, not := g.plans(&e.shape)
		if not != "" {
			why = cmp.Or(why, not)
			continue
		}
		done[name] = true
		for _, c := range made {
			all, best = append(all, c), min(best, c.Result.Step)
		}
	}
	slices.SortStableFunc(all, func(a, b Candidate) int { return cmp.Compare(a.Result.Step, b.Result.Step) })
	return all, why
}

// plans are those of a shape, or why there is none.
func (g *Grid) plans(s *Shape) ([]Candidate, Why) {
	if g.Make != nil {
		return g.Make(s)
	}
	return g.x.Candidates(s.Plan())
}

// families are those whose weights may fit, the most promising first.
func (g *Grid) families(l Limits) (all []family, why Why) {
	inNode := int(slices.MinFunc(g.x.On.Nodes, func(a, b Node) int { return cmp.Compare(a.Count, b.Count) }).Count)
	for _, tensor := range sizes(g.Tensors, inNode) {
		if g.n%tensor != 0 || tensor > inNode {
			why = cmp.Or(why, whyf("tensor %d does not divide %d devices in nodes of %d", tensor, g.n, inNode))
			continue
		}
		ways, not := g.x.Ways(g.x.Model.Profile.Layers()/2, 0, tensor, 1)
		if not != "" {
			why = cmp.Or(why, not)
			continue
		}
		if l.Stages {
			ways = ways[:1]
		}
		for w := range ways {
			f := family{tensor: tensor, way: int8(w)}
			if f.least, not = g.least(&f, l.Samples); not != "" {
				why = cmp.Or(why, not)
				continue
			}
			for _, f.experts = range g.experts(tensor, l) {
				all = append(all, f) // tokens on their way make it longer, which is left out of the least
			}
		}
	}
	slices.SortStableFunc(all, func(a, b family) int { return cmp.Compare(a.least, b.least) })
	return all, why
}

// least is what a step takes where all devices, each as the fastest kind, are always busy, with microbatches as large as may
// be: what a pass takes besides its samples is least then.
func (g *Grid) least(f *family, most int) (unit.Duration, Why) {
	samples := g.x.Model.Batch
	if most > 0 {
		samples = min(samples, most)
	}
	if len(g.Samples) > 0 {
		samples = slices.Max(g.Samples)
	}
	first, fastest := int32(0), unit.Forever
	for _, node := range g.x.On.Nodes {
		rank := Rank{Tensor: f.tensor, Replicas: 1, Devices: make([]int32, f.tensor)}
		for i := range rank.Devices {
			rank.Devices[i] = first
		}
		s, _, why := g.x.Stage(&rank, Slice{0, g.x.Model.Profile.Layers(), g.x.AllIn(f.way, f.tensor)}, samples, 1)
		if why != "" {
			return 0, why
		}
		if first += node.Count; s.Forward+s.Input+s.Weight < fastest {
			fastest = s.Forward + s.Input + s.Weight
		}
		if len(g.x.On.Kinds) == 1 {
			break
		}
	}
	return unit.Duration(float64(fastest) / float64(samples) * float64(g.x.Model.Batch) * float64(f.tensor) / float64(g.n)), ""
}

// AllIn has all layers run in one way; a layer that has fewer runs in its last.
func (x *Simulator) AllIn(way int8, tensor int) []int8 {
	if way == 0 {
		return nil
	}
	// An embedding keeps nothing that it could compute again, so it may have one way where blocks have
	// three.
	ways := make([]int8, x.Model.Profile.Layers())
	for i := range ways {
		if all, why := x.Ways(i, 0, tensor, 1); why == "" {
			ways[i] = min(way, int8(len(all)-1))
		}
	}
	return ways
}

// sizes are those that were asked for, or all up to a most that divide it.
func sizes(asked []int, most int) (all []int) {
	if len(asked) > 0 {
		return asked
	}
	for n := 1; n*n <= most; n++ {
		if most%n == 0 {
			all = append(all, n, most/n)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// lengthen tries a sequence on longer and longer pipelines of a family, with larger and larger
// microbatches on each.
func (g *Grid) lengthen(f family, q Sequence, l Limits) (found []estimate, why Why) {
	// A longer pipeline idles longer while it fills and drains, and holds less: the shortest that fits is
	// mostly the fastest, but where it has so many copies that their exchange takes long.
	last, ways := unit.Forever, g.x.AllIn(f.way, f.tensor)
	kept := int64(-1) // activations on a shorter pipeline that were too much for the memory
	for _, ranks := range sizes(g.Ranks, g.n/f.tensor) {
		copies := g.n / f.tensor / ranks
		if n := g.x.Model.Profile.Layers(); ranks > n {
			why = cmp.Or(why, whyf("%d ranks for %d layers: expected 1 to %d", ranks, n, n))
			break
		}
		if g.n/f.tensor%ranks != 0 || l.Copies > 0 && copies != l.Copies || g.x.Model.Batch%copies != 0 {
			continue
		}
		if f.experts > 1 && (copies%f.experts != 0 || !g.x.On.even(f.experts*f.tensor)) {
			why = cmp.Or(why, whyf("ep %d does not divide %d copies, or these do not fill nodes evenly", f.experts, copies))
			continue
		}
		// Larger microbatches are fewer, so the same holds for their size.
		fastest := unit.Forever
		s := Shape{Sequence: q, Tensor: f.tensor, Ranks: ranks, Copies: copies, Experts: f.experts, Ways: ways}
		more, activations, not := g.enlarge(&s, l)
		why = cmp.Or(why, not)
		for _, e := range more {
			if fastest = min(fastest, e.step); !e.outdone {
				found = append(found, e)
			}
		}
		if activations > 0 && kept >= 0 && activations >= kept && len(g.Ranks) == 0 {
			return found, why // they alone are too much, and a longer pipeline keeps as many
		}
		if activations > 0 {
			kept = activations
		}
		if fastest != unit.Forever && fastest >= last && len(g.Ranks) == 0 {
			break
		}
		last = min(last, fastest)
	}
	return found, why
}

// stood estimates a plan with its copies together and, where there are several sites, in groups of
// their own, the faster first. What devices hold is the same in all.
func (g *Grid) stood(s Shape) (all []estimate, activations int64, why Why) {
	e, activations, why := g.short(s)
	if why != "" {
		return nil, activations, why
	}
	all = append(all, e)
	if g.Together {
		return all, activations, ""
	}
	for _, s.Apart = range g.x.On.Apart(g.n, s.Copies) {
		if s.Experts > 1 && s.Copies/s.Apart%s.Experts != 0 {
			continue // copies that have experts together would be apart
		}
		if e, _, not := g.short(s); not == "" {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b estimate) int { return cmp.Compare(a.step, b.step) })
	return all, activations, ""
}

// enlarge tries larger and larger microbatches of a shape, for as long as they make it faster. Of the
// smallest it says what activations alone are too much for the memory.
func (g *Grid) enlarge(s *Shape, l Limits) (found []estimate, tooMuch int64, why Why) {
	share, fastest := g.x.Model.Batch/s.Copies, unit.Forever
	for _, samples := range sizes(g.Samples, share) {
		if l.Samples > 0 && samples > l.Samples || share%samples != 0 {
			continue
		}
		one := *s
		one.Samples, one.Microbatches = samples, share/samples
		some, activations, not := g.stood(one)
		if not != "" {
			why = cmp.Or(why, not)
			if samples == 1 {
				tooMuch = activations
			}
			break // a larger one keeps more
		}
		found = append(found, some...)
		e := some[0]
		if e.step >= fastest && len(g.Samples) == 0 {
			break
		}
		fastest = min(fastest, e.step)
	}
	return found, tooMuch, why
}

// short estimates a plan by a step of few microbatches: those that are left add what the
// busiest rank takes for them. Of what does not fit it says what activations alone are too much.
func (g *Grid) short(s Shape) (e estimate, activations int64, why Why) {
	if why = cmp.Or(s.tooMany(), g.x.Over.Why()); why != "" {
		return e, 0, why
	}
	// After two rounds of the pipeline each round is as the one before. What is left over of the last round
	// stays, since some sequences go by whole rounds only.
	few := min(s.Microbatches, 2*s.Ranks+s.Microbatches%s.Ranks)
	routes, why := g.x.routes(s.Sequence, s.Ranks, few)
	if why != "" {
		few = s.Microbatches
		if routes, why = g.x.routes(s.Sequence, s.Ranks, few); why != "" {
			return e, 0, why
		}
	}
	if why = routes.copied(&s); why != "" {
		return e, 0, why
	}
	if why = g.cut(&s, routes); why != "" {
		return e, 0, why
	}
	e.shape = s
	full := s.Microbatches
	s.Microbatches = few
	plan := s.Plan()
	if g.bar != unit.Forever {
		costs, _, why := g.x.costs(&plan, 0, routes)
		if e.step = routes.least(costs.Stages, s.Ranks, full); why == "" && e.step > g.bar {
			e.outdone = true
			return e, 0, ""
		}
	}
	r, why := g.x.simulate(&plan)
	if why != "" && g.Make != nil { // which may cut so that it fits
		if chain, _ := g.x.Chain(&s); chain != nil {
			if cut := chain.Slowest(routes.stages()); cut.Cost != unit.Forever {
				s.Cuts = cut.First
				plan = s.Plan()
				r, why = g.x.simulate(&plan)
			}
		}
	}
	if why != "" {
		has := int64(g.x.On.Kind(0).Room()) << 10
		for _, part := range r.Parts {
			for _, m := range part.Timing.Peak {
				if held := m.Total() - m.ParamKiB; held > has {
					activations = max(activations, held)
				}
			}
		}
		if over := r.PeakKiB() - has; over > 0 && has > 0 && (g.why == "" || over < g.lacked) {
			g.lacked, g.why = over, why
		}
		return e, activations, why
	}
	// In the middle of a step the busiest rank never waits, or the sequence would not keep its pipeline
	// full; where links are the bottleneck the short step says too little, and the whole one tells.
	busiest := slices.Max(r.Parts[0].Timing.Busy)
	e.step = r.Step + unit.Duration(int64(busiest)*int64(full-s.Microbatches)/int64(s.Microbatches))
	if len(g.x.On.Sites) > 1 { // a link between sites is what a pipeline waits for that goes over it
		e.step = max(e.step, r.Step+slowestLink(r.Parts[0])*unit.Duration(full-s.Microbatches))
	}
	return e, 0, ""
}

// tooMany says whether there are more passes to simulate, or a sequence would simulate more orders, than there is time for.
func (s *Shape) tooMany() Why {
	if why := pipeline.Sized(int64(s.Ranks), int64(s.Microbatches)); why != "" {
		return why
	}
	if t, tries := s.Sequence.Order.(Trier); tries && t.Tries(s.Ranks, s.Microbatches)*s.Ranks*s.Microbatches > mostTried {
		return whyf("%s tries %d orders of %d ranks and %d microbatches: more than there is time for", s.Sequence.Name, t.Tries(s.Ranks, s.Microbatches), s.Ranks, s.Microbatches)
	}
	return ""
}
