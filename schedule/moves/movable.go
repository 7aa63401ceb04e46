package moves

import (
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Movable calls f with the runs that may be moved: those that save when they are asked to, that
// no queue's protection and no budget of disruptions keeps where they are, and that a strategy
// has not arranged with others (by turns, guests, leases or shares that are not their own).
func Movable(v plan.View, f func(run plan.RunID)) {
	var hosts map[plan.JobID]bool
	for id := range plan.RunID(v.RunSlots()) {
		if r := v.Run(id); r.Status != plan.Gone && r.Terms.Share.Guest != plan.None {
			if hosts == nil {
				hosts = map[plan.JobID]bool{}
			}
			hosts[r.Terms.Share.Guest] = true
		}
	}
	for id := range plan.RunID(v.RunSlots()) {
		if r := v.Run(id); r.Status == plan.Running && !hosts[r.Job] && alone(v, id) && !protected(v, id) {
			f(id)
		}
	}
}

// protected reports whether a run is to be left where it is.
func protected(v plan.View, id plan.RunID) bool {
	r, tree := v.Run(id), v.Queues()
	j := v.Job(r.Job)
	days := int64(v.Now().Sub(j.Submit) / unit.Day)
	return !j.Checkpoint.OnRequest || r.Began.Add(tree.Protect) > v.Now() ||
		tree.Disruptions > 0 && int64(j.Preemptions) >= int64(tree.Disruptions)*(1+days)
}

// alone reports whether a run holds what its job asks for, on nodes of one model that
// take runs, and nobody has arranged anything else about it.
func alone(v plan.View, id plan.RunID) bool {
	r := v.Run(id)
	shape, model := v.Shape(r.Job), int32(plan.None)
	t := &r.Terms.Share
	is := r.Kind == plan.Work && r.Change == 0 && r.Until == unit.Never && t.Turn == 0 && t.Milli == 0 && t.Swap == 0 && t.Guest == plan.None
	if !is {
		return false
	}
	v.GrantsOf(id, func(g plan.Grant) {
		n := v.Node(g.Node)
		is = is && n.Status == plan.Up && (model == plan.None || model == n.Model) && (g.Device == plan.None || g.Reserve == shape.Share)
		model = n.Model
	})
	return is
}

// ModelOf is the device model that a run has.
func ModelOf(v plan.View, id plan.RunID) (model int32) {
	v.GrantsOf(id, func(g plan.Grant) { model = v.Node(g.Node).Model })
	return model
}

// Elsewhere finds out, for many runs of a moment, which may have another place as things are.
type Elsewhere struct{ known map[need][2]place }

// need is what runs have in common that fit where one of them does.
type need struct{ shape, model int32 }

// place is a node, or for a part of a device the device too.
type place struct {
	node   plan.NodeID
	device plan.DeviceID
}

// Forget is to be called when things may have changed.
func (e *Elsewhere) Forget() { e.known = map[need][2]place{} }

// Has reports whether a worker of a run on a device model may have a place that is not the run's
// own. It looks at one worker alone: whether all of them fit the placer knows.
func (e *Elsewhere) Has(v plan.View, id plan.RunID, model int32) bool {
	shape, _ := v.Kind(v.Run(id).Job)
	places, known := e.known[need{shape, model}]
	if !known {
		narrow := *v.ShapeOf(shape)
		narrow.Models = 1 << model
		places = firstTwo(v, &narrow)
		e.known[need{shape, model}] = places
	}
	has := [len(places)]bool{places[0].node != plan.None, places[1].node != plan.None}
	v.GrantsOf(id, func(g plan.Grant) {
		for i, p := range places {
			has[i] = has[i] && p.node != plan.None && (p.device == plan.None && p.node != g.Node || p.device != plan.None && p.device != g.Device)
		}
	})
	return has[0] || has[1]
}

// firstTwo are the first places for a worker of a shape.
func firstTwo(v plan.View, shape *plan.Shape) (first [2]place) {
	first, found := [2]place{{plan.None, plan.None}, {plan.None, plan.None}}, 0
	add := func(n plan.NodeID, d plan.DeviceID) bool {
		if found < len(first) {
			first[found], found = place{n, d}, found+1
		}
		return found == len(first)
	}
	fit.EachNode(v, shape, 0, func(n plan.NodeID) bool {
		is := v.Node(n)
		switch {
		case v.Holds(n, shape) <= 0:
		case shape.Devices == 0 || shape.Share == 1000:
			return add(n, plan.None)
		default:
			for d := is.First; d < is.First+plan.DeviceID(is.Count); d++ {
				if v.Shares(d, shape) > 0 && add(n, d) {
					return true
				}
			}
		}
		return false
	})
	return first
}
