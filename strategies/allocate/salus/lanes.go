package salus

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/salus/reside"
)

// member is a job of one device: what it needs, its rank (less goes first, of equals
// the lower id), and where it is resident; Device plan.None is nowhere yet.
type member struct {
	job    plan.JobID
	class  int32 // of equal classes all may be on the same devices
	foot   reside.Footprint
	rank   int64
	device plan.DeviceID
	lane   int32 // from 1, unique on the device
	runs   bool  // it computes; of a lane one does
	joined bool  // in this decision
}

// order is that inside a lane.
func order(a, b *member) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.job, b.job)) }

// device is one that lanes may be on, and its lanes.
type device struct {
	id     plan.DeviceID
	memory unit.MiB
	closed bool // to those who wait
	lanes  []reside.Lane
	names  []int32   // of the lanes, ascending
	heads  []*member // who goes first in each
}

// join adds a member to its lane.
func (d *device) join(m *member) {
	i, found := slices.BinarySearch(d.names, m.lane)
	if !found {
		d.names, d.lanes, d.heads = slices.Insert(d.names, i, m.lane), slices.Insert(d.lanes, i, reside.Lane{}), slices.Insert(d.heads, i, m)
	}
	d.lanes[i] = d.lanes[i].Join(m.foot)
	if order(m, d.heads[i]) < 0 {
		d.heads[i] = m
	}
}

// decide gives waiting members a lane in which they go first, where the memory allows,
// and says who computes. A member that is resident stays where it is: it alone may be
// put aside, never out. Devices are all, by id. may says whether a member may be
// on one, which is empty or not.
func decide(devices []device, most int, members []*member, may func(m *member, d plan.DeviceID, empty bool) bool) {
	slices.SortFunc(members, order)
	for _, m := range members {
		if m.device != plan.None && m.lane > 0 {
			devices[m.device].join(m)
		}
	}
	type class struct {
		class int32
		foot  reside.Footprint
	}
	full := map[class]bool{} // those behind one that found nothing find nothing either
	for _, m := range members {
		if c := (class{m.class, m.foot}); m.device == plan.None && !full[c] {
			full[c] = !place(devices, most, m, may)
		}
	}
	for _, m := range members {
		m.runs = m.device != plan.None && m.lane == 0 // a device of its own, without lanes
	}
	for i := range devices {
		for _, m := range devices[i].heads {
			m.runs = true
		}
	}
}

// place puts a member on the device with the fewest lanes where a new one has room,
// else on the first where it can join one and go first. Alone on a device it may have
// what lanes leave alone, too.
func place(devices []device, most int, m *member, may func(m *member, d plan.DeviceID, empty bool) bool) bool {
	var best *device
	join := int32(0)
	for i := range devices {
		d := &devices[i]
		n := len(d.lanes)
		if best != nil && join == 0 && len(best.lanes) == 0 {
			break
		}
		if d.closed || best != nil && join == 0 && n >= len(best.lanes) || !may(m, d.id, n == 0) {
			continue
		}
		lane, ok := reside.Admit(d.memory, d.lanes, m.foot, func(lane int) bool {
			return lane == n && n < most || lane < n && order(m, d.heads[lane]) < 0
		})
		if n == 0 {
			lane, ok = 0, true
		}
		if ok && lane == n {
			best, join = d, 0
		} else if ok && best == nil {
			best, join = d, d.names[lane]
		}
	}
	if best == nil {
		return false
	}
	m.device, m.lane, m.joined = best.id, join, true
	if join == 0 {
		for m.lane = 1; slices.Contains(best.names, m.lane); m.lane++ {
		}
	}
	best.join(m)
	return true
}
