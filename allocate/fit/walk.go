package fit

import "github.com/musterdl/muster/plan"

// EachNode calls f, in order of id, for the nodes from the given one on that may
// have room for a worker of the shape, until f returns true.
func EachNode(v plan.View, shape *plan.Shape, from plan.NodeID, f func(plan.NodeID) bool) {
	for n := from; ; n++ {
		whole, part := v.Room().NextAny(shape.Models, int(shape.Devices), n), plan.NodeID(plan.None)
		if shape.Share < 1000 {
			part = NextShared(v, shape.Models, n)
		}
		switch {
		case whole == plan.None && part == plan.None:
			return
		case whole == plan.None || part != plan.None && part < whole:
			n = part
		default:
			n = whole
		}
		if f(n) {
			return
		}
	}
}

// NextWith returns the first node at or after from, of the allowed models, with
// exactly free wholly free devices, or None.
func NextWith(v plan.View, models uint64, free int, from plan.NodeID) plan.NodeID {
	room := v.Room()
	return first(room, models, func(model int) plan.NodeID { return room.Next(model, free, from) })
}

// NextShared returns the first node at or after from, of the allowed models, with a
// partly free device, or None.
func NextShared(v plan.View, models uint64, from plan.NodeID) plan.NodeID {
	room := v.Room()
	return first(room, models, func(model int) plan.NodeID { return room.NextPartial(model, from) })
}

func first(room *plan.Room, models uint64, next func(model int) plan.NodeID) plan.NodeID {
	best := plan.NodeID(plan.None)
	for m := range room.Models() {
		if models&(1<<m) == 0 {
			continue
		}
		if n := next(m); n != plan.None && (best == plan.None || n < best) {
			best = n
		}
	}
	return best
}
