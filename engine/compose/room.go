package compose

import (
	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/plan"
)

// roomFor reports whether there is as much free as n workers take, wherever it is.
func roomFor(v plan.View, shape *plan.Shape, n int32) bool {
	switch {
	case shape.Share < 1000:
		return v.Room().FreeMilli(shape.Models) >= shape.Milli(n)
	case shape.Devices > 1:
		return v.Room().Groups(shape.Models, int(shape.Devices)) >= int64(n)
	}
	return v.Room().Free(shape.Models) >= int64(shape.WholeDevices(n))
}

// roomBeside is roomFor beside what is held from a job, reckoned without holding it.
func roomBeside(v plan.View, shape *plan.Shape, n int32, holds []plan.Hold) bool {
	if shape.Devices == 0 || len(holds) == 0 {
		return true
	}
	devices, groups := int64(0), int64(0)
	for i := range holds {
		h := &holds[i]
		if on := v.Node(h.Node); on.Status == plan.Up && shape.Models&(1<<on.Model) != 0 {
			held := min(h.Devices, on.FreeDevices)
			devices += int64(held)
			groups += int64(on.FreeDevices/shape.Devices - (on.FreeDevices-held)/shape.Devices)
		}
	}
	switch {
	case shape.Share < 1000:
		return v.Room().FreeMilli(shape.Models)-1000*devices >= shape.Milli(n)
	case shape.Devices > 1:
		return v.Room().Groups(shape.Models, int(shape.Devices))-groups >= int64(n)
	}
	return v.Room().Free(shape.Models)-devices >= int64(shape.WholeDevices(n))
}

// finds reports whether the job's placer may find room that the count of free devices
// does not show.
func (s *Scheduler) finds(v plan.View, job plan.JobID) bool {
	if !s.able.finder {
		return false
	}
	f, ok := allocate.CanFor[allocate.Finder](s.parts.Placer, v, job)
	return ok && f.Finds(v, job)
}

// hopeless reports what is plain of most who wait: fewer devices are free than the job takes at
// least, nobody ranks below it or shares devices with it, and no queue or claim has a word in it.
func (s *Scheduler) hopeless(v plan.View, it *item, shape *plan.Shape) bool {
	if s.able.finder || s.parts.Sharer != nil || s.claims.Bounds() || s.parts.Victims != nil || roomFor(v, shape, shape.Least()) || s.scattered(v, shape) {
		return false
	}
	if !s.rules.Preempt {
		return true
	}
	low, found := s.worst(v)
	return !found || !it.Before(&low)
}
