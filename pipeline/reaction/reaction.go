package reaction

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Run is a run as it is when something broke, or became whole again: all that a price depends on. No
// clock is read, and nothing is kept from one failure to the next but what was simulated.
type Run struct {
	// Sound is how long a step takes where nothing is broken: what all prices are measured by.
	Sound unit.Duration
	// Full is the plan for all devices that it is to have, Now the one by which it goes. Either may
	// have devices that are away.
	Full, Now parallel.Plan
	// X has the devices as they are, slow ones slow, with the spares. Without it the run has ended, or nobody
	// can simulate its plan. Sizes are those with which such a run, or one that is planned for one size
	// alone, could start again.
	X     *parallel.Simulator
	Sizes []Size
	Away  []int32 // devices that are not there
	// Empty are devices that came back and hold nothing yet.
	Empty []int32
	// Sequences are orders to choose from, and Plan plans for devices without some.
	Sequences []parallel.Sequence
	Plan      func(without []int32) (parallel.Candidate, parallel.Why)
	// Recover cuts anew as somebody does who knows more of the plan than its stages, such as the
	// planner that made it; nil where nobody does.
	Recover func(lost []int32) (parallel.Recovery, parallel.Why)
	// Links are the uplinks of the nodes when nothing is broken; nil says that all are alike.
	Links []unit.Mbps
	// Passes bounds how many passes of a schedule of all pipelines are simulated; 0 is any.
	Passes int
	Left   unit.Duration // of work, at the pace of sound devices
	Since  unit.Duration // of work that no checkpoint has
	Repair unit.Duration // until what is broken is whole, in the mean
	Start  unit.Duration // until processes have begun again and found each other
	Store  unit.Duration // to write a checkpoint, or to read it
	Telling
	// Drifted says that layers or devices take other times than those that the plan was cut for.
	Drifted bool

	found
}

// found is what a run has looked up.
type found struct {
	detours map[string]unit.Duration // that were simulated
	sick    []bool                   // the nodes that have something broken
}

// Telling is what it takes to give a run that goes on another plan.
type Telling struct {
	Change unit.Duration // besides the copies
	// Copying has the devices with the links over which copies go, where the simulator leaves links out.
	Copying *parallel.Devices
	// Anew says that who takes up other devices begins again from a checkpoint, as nothing can be sent
	// to them, and Deaf that it writes none when it is told to stop.
	Anew, Deaf bool
	// Alive says that processes which are left of a run that has ended wait to be kept.
	Alive bool
	// Devices is how many the run has in all, where there are several for each that its plans list.
	Devices int
	// Slow is how many times as long a step takes by now as it should, of a run without X that goes on.
	Slow float64
}

// Option is one way to go on, and its price.
type Option struct {
	Name string        `json:"name"`
	Plan parallel.Plan `json:"plan"`
	// Step is how long one takes then, until the repair.
	Step  unit.Duration `json:"step_us"`
	Pause unit.Duration `json:"pause_us"` // until the run goes on
	Redo  unit.Duration `json:"redo_us"`  // work that is done again
	// Price is the expected device-seconds lost: of all devices, for the pause, for what is done
	// again, and for the slower steps until the repair or the end.
	Price float64 `json:"price_device_s"`
	// Why says why it cannot be.
	Why parallel.Why `json:"why,omitempty"`

	smaller bool // it leaves devices, of which Plan lists no more than it has
}

// The ways to go on, from the one that changes least to the one that loses most. The first five need
// nothing but the devices that the run has; a swap needs idle ones, and the last two a checkpoint,
// which always is there.
const (
	Ride    = "ride through"
	Route   = "re-route"
	Reshape = "reshape"
	Recut   = "re-cut"
	Drop    = "drop a replica"
	Swap    = "swap a spare"
	Restart = "restart"
	Wait    = "wait"
)

// Options are the ways to go on of these names, or all, the cheapest first, and then those that
// cannot be. Of equal prices the one that changes least comes first.
func (r *Run) Options(names ...string) (all []Option) {
	switch {
	case r.X == nil && r.Slow > 0:
		return cheapest(named(r.held(), names))
	case r.X == nil:
		return cheapest(named(r.again(), names))
	}
	r.findBad()
	for _, way := range []struct {
		name string
		make func() (Option, parallel.Why)
	}{
		{Ride, r.ride}, {Route, r.route}, {Reshape, r.reshape}, {Recut, r.recut}, {Drop, r.drop}, {Swap, r.swap}, {Restart, r.restart}, {Wait, r.wait},
	} {
		if len(names) > 0 && !slices.Contains(names, way.name) {
			continue
		}
		o, why := way.make()
		o.Name, o.Why = way.name, why
		if why == "" && r.Drifted {
			r.Sound = min(r.Sound, o.Step) // what has become faster could be had: to go on as before loses that
		}
		all = append(all, o)
	}
	for i := range all {
		if all[i].Why == "" {
			all[i].Price = r.price(&all[i])
		}
	}
	return cheapest(all)
}

// cheapest puts ways in the order of their prices, and those last that cannot be.
func cheapest(all []Option) []Option {
	slices.SortStableFunc(all, func(a, b Option) int {
		can, other := min(1, len(a.Why)), min(1, len(b.Why))
		return cmp.Or(can-other, cmp.Compare(a.Price, b.Price))
	})
	return all
}

// price is the device-seconds that a way costs, of all devices of the full plan: one that is left
// idle is paid for as well as one that waits. What is slower is so until the repair; then the run
// goes back to its full plan, which takes a start once more where the devices were others.
func (r *Run) price(o *Option) float64 {
	// What runs as fast as before costs nothing more, however long the repair takes; a plan that is
	// even faster earns nothing, as the full plan could have been that.
	slower := max(0, 1-float64(r.Sound)/float64(max(1, o.Step)))
	lasts := max(0, min(r.Repair, r.Left)-o.Pause)
	lost := (o.Pause + o.Redo).Seconds() + slower*lasts.Seconds()
	full := len(r.Full.Devices())
	if back := o.smaller || len(o.Plan.Devices()) < full; back && r.Left > r.Repair {
		lost += r.Start.Seconds()
	}
	return lost * float64(cmp.Or(r.Devices, full))
}

// stopped reports whether the run stands, as a device of its plan is away or holds nothing.
func (r *Run) stopped() bool { return r.uses(r.Now.Devices()) }

// gone are the devices that hold nothing of the plan by which the run goes.
func (r *Run) gone() []int32 { return slices.Concat(r.Away, r.Empty) }

func (r *Run) uses(devices []int32) bool {
	return slices.ContainsFunc(devices, func(d int32) bool { return slices.Contains(r.Away, d) || slices.Contains(r.Empty, d) })
}

// goOn is a way that needs no checkpoint, as what the lost devices held is on others. Where the run stands, the step at work is lost, half of it
// in the mean, and those that are left have to find each other.
func (r *Run) goOn(p parallel.Plan, pause unit.Duration) (Option, parallel.Why) {
	result, why := r.X.Simulate(&p)
	o := Option{Plan: p, Step: result.Step, Pause: pause}
	if r.stopped() {
		o.Redo = r.Sound / 2
		o.Pause = max(pause, r.Start)
	}
	return o, why
}

// tell is a way by which a run that goes on is told another plan.
func (r *Run) tell(p parallel.Plan, copies unit.Duration) (Option, parallel.Why) {
	return r.goOn(p, r.Change+copies)
}

// copying simulates the links over which copies go.
func (r *Run) copying() *parallel.Simulator {
	if r.Copying == nil {
		return r.X
	}
	return r.X.Like(r.X.Model, r.Copying)
}

// ride changes nothing: where what is slow is soon as fast as before, any change costs more.
func (r *Run) ride() (Option, parallel.Why) {
	if r.stopped() {
		return Option{}, "a device of the plan is away: expected only slow ones"
	}
	return r.goOn(r.Now, 0)
}

// drop leaves out the pipelines that have something broken; the others share their part of the
// batch. A single slow device takes its whole pipeline with it.
func (r *Run) drop() (Option, parallel.Why) {
	if why := r.spread(); why != "" {
		return Option{}, why
	}
	p, why := r.rest()
	if why != "" {
		return Option{}, why
	}
	return r.goOn(p, r.Start)
}

// rest is the plan of the pipelines that are sound.
func (r *Run) rest() (parallel.Plan, parallel.Why) {
	p := r.Now
	p.Pipelines = slices.DeleteFunc(slices.Clone(p.Pipelines), func(one parallel.Pipeline) bool { return r.broken(&one) })
	if len(p.Pipelines) == 0 || len(p.Pipelines) == len(r.Now.Pipelines) {
		return p, parallel.Why(fmt.Sprintf("%d of %d pipelines are sound: expected some, and not all", len(p.Pipelines), len(r.Now.Pipelines)))
	}
	return r.share(p)
}

// spread says why what lost devices held is nowhere but in the checkpoint.
func (r *Run) spread() parallel.Why {
	if !r.stopped() {
		return ""
	}
	return r.X.Spread(&r.Now, r.gone())
}

// A swap moves whole nodes, as the devices of one share every layer: of a node with one slow device
// the other seven wait for that one, and are idle spares afterwards until it is repaired.

// swap puts sound nodes that are idle in the place of those that are broken, in the full plan, and
// sends them what they need. Where all of the full plan is sound it goes back to that.
func (r *Run) swap() (Option, parallel.Why) {
	on, full := r.X.On, r.Full.Devices()
	var taken, bad []int32
	for _, d := range full {
		if n := on.NodeOf(d); !slices.Contains(taken, n) {
			if taken = append(taken, n); r.bad(n) {
				bad = append(bad, n)
			}
		}
	}
	if r.Drifted && len(bad) == 0 {
		return Option{}, "no device is broken"
	}
	devices, first := make([]int32, on.Len()), make([]int32, len(on.Nodes))
	for d := int32(on.Len()) - 1; d >= 0; d-- {
		devices[d], first[on.NodeOf(d)] = d, d
	}
	for n := range int32(len(on.Nodes)) {
		if len(bad) == 0 {
			break
		}
		if slices.Contains(taken, n) || r.bad(n) || on.Nodes[n].Count < on.Nodes[bad[0]].Count {
			continue
		}
		for i := range on.Nodes[bad[0]].Count {
			devices[first[bad[0]]+i] = first[n] + i
		}
		bad = bad[1:]
	}
	if len(bad) > 0 {
		return Option{}, parallel.Why(fmt.Sprintf("%d broken nodes of the full plan have no spare", len(bad)))
	}
	p := r.Full.On(devices)
	if r.Anew {
		result, why := r.X.Simulate(&p)
		return r.begin(p, result.Step), why
	}
	moved, why := r.X.Recovery(&r.Now, &p, r.gone())
	if why == "" {
		if slices.Equal(p.Devices(), r.Now.Devices()) && !r.stopped() {
			return r.goOn(p, moved.Takes) // other cuts and shares among the same
		}
		return r.goOn(p, r.Start+moved.Takes)
	}
	result, why := r.X.Simulate(&p) // nobody has what is needed, but the checkpoint has
	return Option{Plan: p, Step: result.Step, Pause: r.Start + r.Store, Redo: r.Since}, why
}

// restart plans anew without what is broken: the only way where the pipelines that are left cannot
// take on the work of the others, or hold no copy of a layer. Where the run does not stand it writes a checkpoint
// first, and nothing is done again.
func (r *Run) restart() (Option, parallel.Why) {
	without := slices.Clone(r.Away)
	for d := range int32(r.X.On.Len()) {
		if r.bad(r.X.On.NodeOf(d)) && !slices.Contains(without, d) {
			without = append(without, d)
		}
	}
	slices.Sort(without)
	c, why := r.Plan(without)
	if r.spread() != "" {
		// The pipelines that are left cannot go on, but they can begin again without the others.
		if p, not := r.rest(); not == "" {
			if result, not := r.X.Simulate(&p); not == "" && (why != "" || result.Step < c.Result.Step) {
				c, why = parallel.Candidate{Plan: p, Result: result}, ""
			}
		}
	}
	if why != "" {
		return r.less(why)
	}
	return r.begin(c.Plan, c.Result.Step), ""
}

// begin is a way by which other processes begin from a checkpoint, which a run writes first that does not
// stand.
func (r *Run) begin(p parallel.Plan, step unit.Duration) Option {
	o := Option{Plan: p, Step: step, Pause: r.Start + r.Store, Redo: r.Since}
	if !r.stopped() && !r.Deaf {
		o.Pause, o.Redo = o.Pause+r.Store, 0
	}
	return o
}

// wait stands until the repair, and restarts. It is what a run with one copy and no spare can do, and
// what all other ways have to beat.
func (r *Run) wait() (Option, parallel.Why) {
	if !slices.ContainsFunc(r.Now.Devices(), func(d int32) bool { return slices.Contains(r.Away, d) }) {
		return Option{}, "no device of the plan is away: there is nothing to wait for"
	}
	return Option{Plan: r.Now, Step: r.Sound, Pause: r.Repair + r.Start + r.Store, Redo: r.Since}, ""
}

// findBad finds the nodes that are bad: those with a device that is away or slow, or a link slower than
// when nothing is broken. Where nobody says how fast that was, all were as fast as the fastest is: the
// nodes of a large run are mostly alike.
func (r *Run) findBad() {
	on, fastest := r.X.On, unit.Mbps(0)
	for _, n := range on.Nodes {
		fastest = max(fastest, n.Out)
	}
	r.sick = make([]bool, len(on.Nodes))
	for i, n := range on.Nodes {
		sound := fastest
		if r.Links != nil {
			sound = r.Links[i]
		}
		r.sick[i] = n.Out < sound
	}
	for _, d := range r.Away {
		r.sick[on.NodeOf(d)] = true
	}
	for d, speed := range on.Speeds {
		if speed < 1 {
			r.sick[on.NodeOf(int32(d))] = true
		}
	}
}

// bad reports whether a node has something broken.
func (r *Run) bad(node int32) bool { return r.sick[node] }

// broken reports whether a pipeline has a node that is.
func (r *Run) broken(one *parallel.Pipeline) bool {
	return slices.ContainsFunc(one.Ranks, func(k parallel.Rank) bool {
		return slices.ContainsFunc(k.Devices, func(d int32) bool { return r.bad(r.X.On.NodeOf(d)) })
	})
}
