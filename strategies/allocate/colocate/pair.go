package colocate

import (
	"errors"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/bubbles"
	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// pair is at what part of its rate a guest is believed to go beside a host on a device model; 0
// where the host would be slowed by more than it may, or nothing is known and that does not do.
func (s *Sharer) pair(host, guest bubbles.Work, model string) unit.Milli {
	var h, g float64
	mine, theirs, measured := 0.0, 0.0, false
	if s.config.pairs != nil {
		mine, theirs, measured = s.config.pairs.Pair(host.Class, guest.Class, model)
	}
	switch both := host.Busy * guest.Busy; {
	case measured:
		h, g = sharing.Together(mine, both), sharing.Together(theirs, both)
	case s.config.MeasuredOnly:
		return 0
	default:
		h, g = control.Filling(guest.Law, host.Busy, guest.Busy, control.Windows{Length: host.Spare.Window, Switch: s.config.Switch})
	}
	if h*1000 < float64(unit.Whole-s.config.Harm) {
		return 0
	}
	return unit.Milli(1000 * g)
}

// Unwelcome are the guests that slow their hosts by more than they may, as was seen, and those
// beside whom another host has come than they would have joined.
func (s *Sharer) Unwelcome(v plan.View, changed []plan.JobID) (out []allocate.Guest, opened bool) {
	s.fresh = false
	out, opened = s.Watch.Unwelcome(v, changed)
	for _, host := range changed {
		run := v.Job(host).Run
		if run == plan.None || v.Run(run).Terms.Share.Guest != plan.None {
			continue
		}
		v.GrantsOf(run, func(g plan.Grant) {
			for _, id := range bubbles.Guests(v, g.Device, nil) {
				r := v.Run(id)
				if r.Status == plan.Stopping || slices.ContainsFunc(out, func(o allocate.Guest) bool { return o.Run == id }) {
					continue
				}
				if serves(v, host) || s.pair(s.busy.Of(v, host, run), s.busy.Of(v, r.Job, plan.None), v.Cluster().Models[v.Node(g.Node).Model].Name) == 0 {
					out = append(out, allocate.Guest{Run: id, Host: host})
				}
			}
		})
	}
	return out, opened
}

// Moves reports whether a guest, in the time that it has left as it goes, would gain by devices of its
// own twice as much as it takes to save it and start it again. Of one of which nobody knows how long it is, as much is
// believed to be left as it has done.
func (s *Sharer) Moves(v plan.View, job plan.JobID) bool {
	r := v.Run(v.Job(job).Run)
	_, most, measured := r.Measured()
	if r.RateOff == plan.Unmeasured { // nobody saw it go by itself
		most, measured = s.believed(v, job), true
	}
	model, several := v.Where(v.Job(job).Run)
	own := v.Rate(job, model, r.Workers, several)
	if r.Status != plan.Running || !measured || most >= own {
		return false
	}
	left, known := v.Left(job)
	if !known {
		left = v.Work(job)
	}
	c := v.Job(job).Checkpoint
	saved := float64(left) * plan.FullRate * (1/float64(max(1, most)) - 1/float64(own))
	return saved > 2*float64(c.Save+c.Load+s.config.Restart)
}

// believed is at what rate a guest is believed to go beside its hosts.
func (s *Sharer) believed(v plan.View, job plan.JobID) int64 {
	run := v.Job(job).Run
	model, several := v.Where(run)
	part := unit.Milli(unit.Whole)
	v.GrantsOf(run, func(own plan.Grant) {
		if own.Device == plan.None {
			return
		}
		v.GrantsOn(own.Device, func(g plan.Grant) {
			if h := v.Run(g.Run); h.Terms.Share.Guest == plan.None {
				part = min(part, s.pair(s.busy.Of(v, h.Job, g.Run), s.busy.Of(v, job, plan.None), v.Cluster().Models[model].Name))
			}
		})
	})
	return v.Rate(job, model, v.Run(run).Workers, several) * int64(part) / int64(unit.Whole)
}

// Sees notes how busy a job's run was seen to keep its devices.
func (s *Sharer) Sees(v plan.View, job plan.JobID, busy unit.Milli) {
	s.fresh = false
	s.busy.Sees(v, job, busy)
}

// Remember encodes what was seen.
func (s *Sharer) Remember() []byte {
	return figures.PutBytes(figures.PutBytes(nil, s.busy.Remember()), s.Watch.Remember())
}

// Recall reads what Remember wrote.
func (s *Sharer) Recall(memory []byte) error {
	r := figures.Read(memory)
	busy, watched := r.Bytes(), r.Bytes()
	s.fresh = false
	return errors.Join(r.End(), s.busy.Recall(busy), s.Watch.Recall(watched))
}
