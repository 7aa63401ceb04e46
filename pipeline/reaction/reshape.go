package reaction

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
)

// The ways that keep the devices and change who does what: who gets how many microbatches, in which
// order, and which layers.

// share divides the microbatches of the batch among pipelines, so that the slowest is done as early
// as can be: each goes to the pipeline that is done first with it. How long one takes more is what
// its slowest rank takes.
func (r *Run) share(p parallel.Plan) (parallel.Plan, parallel.Why) {
	all, together := r.X.Model.Batch/p.Samples, p.Experts() // pipelines that have experts together take as many each
	p.Pipelines = slices.Clone(p.Pipelines)
	if len(p.Pipelines)%together > 0 || all%together > 0 {
		return p, parallel.Why(fmt.Sprintf("%d pipelines and %d microbatches, where %d have experts together: expected multiples", len(p.Pipelines), all, together))
	}
	// From here on a group counts as one pipeline does, of which each has one.
	groups, micros := len(p.Pipelines)/together, all/together
	give := func(group, n int) {
		for i := group * together; i < (group+1)*together; i++ {
			p.Pipelines[i].Microbatches = n
		}
	}
	// Even shares first, to time them: what a microbatch takes does not depend on how many come.
	for g := range groups {
		give(g, micros/groups)
	}
	give(0, micros/groups+micros%groups)
	if micros < groups {
		return p, "fewer microbatches than pipelines"
	}
	timed, why := r.X.Simulate(&p)
	if why != "" {
		return p, why
	}
	// A pipeline fills once, and then is done with a microbatch each time its slowest rank is.
	first, more, has := make([]float64, groups), make([]float64, groups), make([]int, groups)
	for g := range groups {
		n, part := float64(p.Pipelines[g*together].Microbatches), timed.Parts[g*together]
		more[g] = float64(slices.Max(part.Timing.Busy)) / n
		first[g] = float64(part.Timing.Makespan) - more[g]*n
		has[g] = 1
	}
	for range micros - groups {
		next := 0
		for g := range groups {
			if first[g]+more[g]*float64(has[g]+1) < first[next]+more[next]*float64(has[next]+1) {
				next = g
			}
		}
		has[next]++
	}
	for g := range groups {
		give(g, has[g])
	}
	return p, ""
}

// route gives pipelines microbatches by their speed; where a rank is away, its stage is done by the
// ranks that hold the same stage in the other pipelines.
func (r *Run) route() (Option, parallel.Why) {
	if r.stopped() {
		return r.detour(false)
	}
	p, why := r.share(r.Now)
	if why != "" {
		return Option{}, why
	}
	return r.tell(p, 0)
}

// reshape takes another order, with the microbatches by speed; where a rank is away, backward passes
// are split as well, so that the detours fill the gaps (as ReCycle does).
func (r *Run) reshape() (best Option, why parallel.Why) {
	if r.stopped() {
		return r.detour(true)
	}
	why = "there is no other order with as many stages"
	for _, q := range r.Sequences {
		p := r.Now
		if p.Sequence = q; q.Name == r.Now.Sequence.Name {
			continue
		}
		shared, not := r.share(p)
		if not != "" {
			continue
		}
		if o, not := r.tell(shared, 0); not == "" && (why != "" || o.Step < best.Step) {
			best, why = o, ""
		}
	}
	return best, why
}

// Unlike detours, a new cut moves weights, and unlike a dropped copy it keeps all that is sound at
// work. It is for failures that last.

// recut takes the cheaper of two cuts: that of the pipelines as they are, and what somebody knows who
// plans.
func (r *Run) recut() (Option, parallel.Why) {
	own, why := r.pieces()
	if r.Recover == nil || !r.stopped() {
		return own, why
	}
	known, not := r.Recover(r.gone())
	if not == "" && !known.Restart {
		if o, not := r.goOn(known.Plan, known.Takes); not == "" && (why != "" || r.price(&o) < r.price(&own)) {
			return o, ""
		}
	}
	return own, why
}

// pieces cuts each pipeline that has something broken anew: ranks that are away have no layers, and
// slow ones fewer.
func (r *Run) pieces() (Option, parallel.Why) {
	if why := r.spread(); why != "" {
		return Option{}, why
	}
	p := r.Now
	p.Pipelines = slices.Clone(p.Pipelines)
	// The other pipelines keep their cuts: their layers need not move for somebody else's failure.
	changed := false
	for i := range p.Pipelines {
		one := &p.Pipelines[i]
		if !r.broken(one) && !r.Drifted {
			continue
		}
		changed = true
		one.Ranks = slices.DeleteFunc(slices.Clone(one.Ranks), func(k parallel.Rank) bool { return r.uses(k.Devices) })
		if len(one.Ranks) == 0 {
			return Option{}, "a pipeline has no rank left"
		}
		shape, why := p.Sequence.Order.Schedule(len(one.Ranks), one.Microbatches, nil)
		if why != "" || len(shape.Routes) != 1 {
			return Option{}, "an order of several routes is not cut by ranks"
		}
		cuts, why := r.cut(&p, one, shape.Routes[0])
		if why != "" {
			return Option{}, why
		}
		one.Cuts = cuts
	}
	if !changed {
		return Option{}, "no pipeline has anything broken, and its layers take the times that it was cut for"
	}
	p, why := r.share(p)
	if why != "" {
		return Option{}, why
	}
	moved, why := r.copying().Recovery(&r.Now, &p, r.gone())
	if why != "" {
		return Option{}, why
	}
	return r.tell(p, moved.Takes)
}

// cut makes the slowest stage as fast as can be, each on the rank that it stands on.
func (r *Run) cut(p *parallel.Plan, one *parallel.Pipeline, route []int32) ([]int32, parallel.Why) {
	sums := make([]*parallel.Sums, len(route))
	for stage, rank := range route {
		var why parallel.Why
		if sums[stage], why = r.X.Sums(&one.Ranks[rank], p.Samples, len(p.Pipelines), one.Ways); why != "" {
			return nil, why
		}
	}
	// As many microbatches are in flight as there are stages to come.
	chain := pipeline.Chain{Layers: r.X.Model.Profile.Layers(), Link: func(_, _, _ int) unit.Duration { return 0 },
		Stage: func(stage, first, end int) unit.Duration {
			return sums[stage].Takes(first, end, int32(len(route)-stage))
		}}
	cut := chain.Slowest(len(route))
	if cut.Cost == unit.Forever {
		return nil, "the layers cannot be cut for the ranks that are left"
	}
	return cut.First, ""
}

// detour has the microbatches of a pipeline without some ranks pass these stages in the other
// pipelines, in turn, and simulates all pipelines as one schedule. Nothing is sent: every rank
// holds what it did.
func (r *Run) detour(split bool) (Option, parallel.Why) {
	if why := r.spread(); why != "" {
		return Option{}, why
	}
	p := r.Now
	p.Pipelines = slices.Clone(p.Pipelines)
	ranks := len(p.Pipelines[0].Ranks)
	if p.Experts() > 1 {
		return Option{}, "experts are spread over the copies: those of a rank that is away are on no rank beside it"
	}
	for i := range p.Pipelines {
		if one := &p.Pipelines[i]; len(one.Ranks) != ranks || !slices.Equal(one.Cuts, p.Pipelines[0].Cuts) || len(one.Cuts) != ranks-1 {
			return Option{}, "pipelines are not alike, or a rank has several stages: a stage has no like one to go to"
		}
	}
	before, why := r.X.Simulate(&p) // as if nobody were away
	if why != "" {
		return Option{}, why
	}
	// Which of like pipelines lack a rank does not matter: those that lack none come last.
	lacks := func(one *parallel.Pipeline) (all []int) {
		for s := range one.Ranks {
			if r.uses(one.Ranks[s].Devices) {
				all = append(all, s)
			}
		}
		return all
	}
	slices.SortStableFunc(p.Pipelines, func(a, b parallel.Pipeline) int { return slices.Compare(lacks(&b), lacks(&a)) })
	whole := slices.IndexFunc(p.Pipelines, func(one parallel.Pipeline) bool { return len(lacks(&one)) == 0 })
	if whole < 0 {
		return Option{}, "no pipeline is whole"
	}
	if passes := 2 * r.X.Model.Batch / p.Samples * ranks; r.Passes > 0 && passes > r.Passes {
		return Option{}, parallel.Why(fmt.Sprintf("not simulated: %d passes in one schedule of all pipelines, expected %d at most", passes, r.Passes))
	}
	var missing [][]int
	for i := range whole {
		missing = append(missing, lacks(&p.Pipelines[i]))
	}
	d := detour{pipelines: len(p.Pipelines), missing: missing, micros: r.X.Model.Batch / p.Samples, split: split, costs: slowest(&before)}
	key := fmt.Sprint(d.pipelines, d.missing, d.micros, split, d.costs)
	took, seen := r.detours[key]
	if !seen {
		memory := int64(r.X.On.Kind(p.Pipelines[0].Ranks[0].Devices[0]).Room()) << 10
		if took, why = d.simulate(memory); why != "" {
			return Option{}, why
		}
		if r.detours == nil {
			r.detours = map[string]unit.Duration{}
		}
		r.detours[key] = took
	}
	return Option{Plan: r.Now, Pause: r.Start, Redo: r.Sound / 2, Step: took + before.Exposed + before.Update}, ""
}

// slowest is what the stages of the slowest pipeline take, and its links: with all pipelines in one
// schedule, what is slow in one holds up the microbatches of all.
func slowest(before *parallel.Result) pipeline.Costs {
	at := 0
	for i, part := range before.Parts {
		if part.Timing.Makespan > before.Parts[at].Timing.Makespan {
			at = i
		}
	}
	return before.Parts[at].Costs
}

// detour is like pipelines, the first of which lack ranks.
type detour struct {
	pipelines int
	missing   [][]int // stages
	micros    int
	split     bool
	costs     pipeline.Costs
}

// simulate lists the orders of a schedule of all pipelines and times it. A rank keeps no more
// microbatches than one and the stages from its own to the last: more would wait for room, or for
// ever.
func (d *detour) simulate(memory int64) (unit.Duration, parallel.Why) {
	stages, broken := len(d.costs.Stages), len(d.missing)
	// A route says where a microbatch meets each stage, and microbatches take the routes in turn: as
	// many rounds as there are whole pipelines, so that each of these takes over as much.
	var routes [][]int32
	for turn := range d.pipelines - broken {
		for i := range d.pipelines {
			route := make([]int32, stages)
			for s := range route {
				at := i
				if i < broken && slices.Contains(d.missing[i], s) {
					at = broken + (turn+i)%(d.pipelines-broken)
				}
				route[s] = int32(at*stages + s)
			}
			routes = append(routes, route)
		}
	}
	s := pipeline.NewSchedule(stages*d.pipelines, d.micros, routes...)
	// Ranks of different pipelines send to each other as those of one do: they are in other nodes in
	// both cases.
	costs := d.costs
	costs.Links = make([][]parallel.Link, len(s.Orders))
	held := make([][]pipeline.Chunk, len(s.Orders))
	for rank := range held {
		held[rank] = s.Chunks(rank)
		costs.Links[rank] = make([]parallel.Link, len(s.Orders))
		for other := range held {
			costs.Links[rank][other] = d.costs.Links[rank%stages][other%stages]
		}
	}
	why := s.List(&costs, d.split, func(c *pipeline.Chooser, ready []pipeline.Choice) int {
		kept := int32(0)
		for _, h := range held[c.Rank] {
			kept += c.Keeps(h)
		}
		return pipeline.Urgent(ready, func(chunk pipeline.Chunk) bool { return int(kept) <= stages-int(chunk.Stage) })
	})
	if why != "" {
		return 0, why
	}
	timing, why := s.Time(costs)
	if why != "" {
		return 0, why
	}
	for _, peak := range timing.Peak {
		if memory > 0 && peak.Total() > memory {
			return 0, "a rank that takes more microbatches has no memory for them"
		}
	}
	return timing.Makespan, ""
}
