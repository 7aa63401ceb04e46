package simulated

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// meets charges for what a run that has begun, or that has other terms now, takes beside
// those that it shares devices with: other processes where a ceiling is fixed when they
// connect, or where two jobs are trained as one; the time that a law needs to find where
// it holds.
func (s *Simulation) meets(at unit.Time, id plan.RunID) {
	v, l := s.engine.View(), &s.runs[id]
	share := v.Run(id).Terms.Share
	if share.Fence == plan.MPS && share.Ceiling != l.ceiling {
		s.pay(at, id, s.another(id))
	}
	joins := share.Guest != l.host
	l.ceiling, l.host = share.Ceiling, share.Guest
	if !joins || share.Guest == plan.None {
		return
	}
	host := v.Job(share.Guest).Run
	switch {
	case host == plan.None || share.Guest == l.job:
	case share.Bond == plan.InOne:
		s.pay(at, host, s.another(host))
		if v.Run(id).Began != at { // else it has only now been started
			s.pay(at, id, s.another(id))
		}
	case share.Bond == plan.InGaps:
		s.underLaw(at, id)
	}
}

// underLaw lets a guest's law begin at its floor. It gives the guest a little more with every
// step: over the time that takes, half of what it will have.
func (s *Simulation) underLaw(at unit.Time, id plan.RunID) {
	if takes := s.config.Prices.Settle; takes > 0 {
		l := &s.runs[id]
		l.settles = at.Add(takes)
		s.moved(at, s.world.Settle(at, id, true))
		s.queueUp(l.settles, entry{kind: lawSettles, run: id, job: l.job, version: l.version})
	}
}

// crowded ends a run that finds no room in the memory of a device beside those that
// compute there, and reports whether it has.
func (s *Simulation) crowded(at unit.Time, id plan.RunID) bool {
	if s.runs[id].status != plan.Running || s.world.Fits(id) {
		return false
	}
	s.exit(at, id, plan.MemoryFailure)
	return true
}

// fault ends a run by a fault of its own making. Under MPS it takes along those whose
// processes are the same server's clients.
func (s *Simulation) fault(at unit.Time, id plan.RunID) {
	v := s.engine.View()
	var fall []plan.RunID
	if v.Run(id).Terms.Share.Fence == plan.MPS {
		v.GrantsOf(id, func(g plan.Grant) {
			v.GrantsOn(g.Device, func(o plan.Grant) {
				if o.Run != id && v.Run(o.Run).Terms.Share.Fence == plan.MPS && s.runs[o.Run].status == plan.Running && !slices.Contains(fall, o.Run) {
					fall = append(fall, o.Run)
				}
			})
		})
	}
	s.exit(at, id, plan.UserFailure)
	for _, o := range fall {
		s.exit(at, o, plan.NodeFailure)
	}
}
