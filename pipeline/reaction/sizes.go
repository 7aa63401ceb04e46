package reaction

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
)

// Size is a number of workers with which a run that has ended could start again from what was saved,
// and how long a step of its plan for so many takes.
type Size struct {
	Workers int
	Step    unit.Duration
	// Kept says that processes which are left hold all that so many workers need, and Copies how long they
	// send it to each other, where the layers are divided anew; else each stays with what it holds.
	Kept   bool
	Copies unit.Duration
}

// keeps is the way by which a run goes on with a size in processes that are left; none where it begins again.
func (s *Size) keeps() string {
	switch {
	case !s.Kept:
		return ""
	case s.Copies > 0:
		return Recut
	}
	return Drop
}

// Of is a plan of which no more is known than its size.
func Of(workers int) parallel.Plan {
	one := parallel.Rank{Tensor: workers, Replicas: 1}
	for d := range workers {
		one.Devices = append(one.Devices, int32(d))
	}
	return parallel.Plan{Pipelines: []parallel.Pipeline{{Ranks: []parallel.Rank{one}}}}
}

// again are the ways of a run that has ended: the same size on other devices, other sizes, or the same
// after the repair. One that lost a device before may have more than it had. Where processes wait that are left, and
// hold what a size needs, those copies go on that are whole: they only have to find each other; or the layers are cut anew, and sent. For the other ways that keep processes
// a run would need devices that are not one of its job's sizes.
func (r *Run) again() (all []Option) {
	for _, name := range []string{Ride, Route, Reshape, Recut, Drop} {
		o := Option{Name: name}
		switch {
		case !r.Alive:
			o.Why = "its processes have ended with the one that was lost"
		case name == Ride:
			o.Why = "a device of the plan is away: expected only slow ones"
		case name == Route, name == Reshape:
			o.Why = "what is left is no size of its job: a run has one of these, with the same part of its plan on each"
		case slices.ContainsFunc(r.Sizes, func(s Size) bool { return s.keeps() == name }):
			continue
		case name == Recut:
			o.Why = "no smaller size of its job has a plan that divides the layers in another way, and could be sent by those that are left"
		default:
			o.Why = "no smaller size of its job has each part of its plan where that is held by a process that is left"
		}
		all = append(all, o)
	}
	had, step := len(r.Now.Devices()), r.Sound
	for _, s := range r.Sizes {
		if s.Kept {
			o := Option{Name: s.keeps(), Plan: Of(s.Workers), Step: s.Step, Pause: r.Start + s.Copies, Redo: r.Since}
			o.Price = r.price(&o)
			all = append(all, o)
		}
		o := Option{Name: Restart, Plan: Of(s.Workers), Step: s.Step, Pause: r.Start + r.Store, Redo: r.Since}
		if s.Workers == had {
			o.Name, step = Swap, s.Step
		}
		o.Price = r.price(&o)
		all = append(all, o)
	}
	wait := Option{Name: Wait, Plan: r.Now, Step: step, Pause: r.Repair + r.Start + r.Store, Redo: r.Since}
	wait.Price = r.price(&wait)
	return append(all, wait)
}

// held are the ways of a run that is held up by slow devices and whose plan nobody can simulate: to go on
// like that, or to leave them, with as many workers on others or with fewer.
func (r *Run) held() (all []Option) {
	for _, name := range []string{Route, Reshape, Recut, Drop} {
		all = append(all, Option{Name: name, Why: "its plan was made elsewhere, and the planner is not asked where decisions are made"})
	}
	has := len(r.Now.Devices())
	for _, s := range r.Sizes {
		o := r.begin(Of(s.Workers), s.Step)
		switch o.Name = Restart; {
		case s.Workers > has:
			continue
		case s.Workers == has:
			o.Name = Swap
			ride := Option{Name: Ride, Plan: r.Now, Step: unit.Duration(r.Slow * float64(s.Step))}
			ride.Price = r.price(&ride)
			all = append(all, ride)
		}
		o.Price = r.price(&o)
		all = append(all, o)
	}
	return append(all, Option{Name: Wait, Why: "no device of the plan is away: there is nothing to wait for"})
}

// less is to begin again with the largest of the sizes, for a run that is planned for no other; why is why
// it is not.
func (r *Run) less(why parallel.Why) (Option, parallel.Why) {
	if len(r.Sizes) == 0 {
		return Option{}, why
	}
	size := slices.MaxFunc(r.Sizes, func(a, b Size) int { return a.Workers - b.Workers })
	o := r.begin(Of(size.Workers), size.Step)
	o.smaller = true
	return o, ""
}

// named keeps the ways of these names, or all where there are none.
func named(all []Option, names []string) []Option {
	if len(names) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(o Option) bool { return !slices.Contains(names, o.Name) })
}
