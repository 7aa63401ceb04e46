package colocate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/bubbles"
	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// work is what is believed of a job on a device: its class, the part of the time that it keeps the device
// busy, what its plan leaves, and as a guest its law.
type work struct {
	class string
	busy  float64
	spare workload.Spare
	law   string
}

// of is what is believed of a job, by the run that it has or as it would run: as it was seen, else as its
// owner and its menu say.
func (s *Sharer) of(v plan.View, job plan.JobID, run plan.RunID) work {
	p := v.ProfileOf(job)
	w := work{class: v.Class(v.Job(job).Class), busy: 1, law: cmp.Or(p.Law, control.ForGuests)}
	if whole := p.Compute + p.Communicate; p.Compute > 0 && whole > 0 {
		w.busy = float64(p.Compute) / float64(whole)
	}
	if run != plan.None {
		w.spare = v.Spare(run)
		model, several := on(v, run)
		if n := v.Run(run).Workers; n > 1 {
			if one, all := v.Rate(job, model, 1, false), v.Rate(job, model, n, several); one > 0 && all > 0 {
				w.busy *= min(1, float64(all)/float64(one)/float64(n)) // what each does of what one alone would
			}
		}
		w.busy *= 1 - w.spare.Idle()
		if at, known := s.index(job); known && s.busy[at].attempt == v.Job(job).Attempt {
			w.busy = float64(s.busy[at].busy) / 1000
		}
	}
	return w
}

// seen is how busy a run was seen to keep its devices.
type seen struct {
	job     plan.JobID
	attempt int32
	busy    unit.Milli
}

func (s *Sharer) index(job plan.JobID) (int, bool) {
	return slices.BinarySearchFunc(s.busy, job, func(b seen, job plan.JobID) int { return cmp.Compare(b.job, job) })
}

// Sees notes how busy a job's run was seen to keep its devices.
func (s *Sharer) Sees(v plan.View, job plan.JobID, busy unit.Milli) {
	if s.fresh = false; busy == 0 {
		return
	}
	at, known := s.index(job)
	if !known {
		s.busy = slices.DeleteFunc(s.busy, func(b seen) bool { return v.Job(b.job).Phase.Over() })
		at, _ = s.index(job)
		s.busy = slices.Insert(s.busy, at, seen{})
	}
	s.busy[at] = seen{job, v.Job(job).Attempt, busy}
}

// Remember encodes what was seen.
func (s *Sharer) Remember() []byte {
	b := figures.PutCount(nil, len(s.busy))
	for _, x := range s.busy {
		b = figures.Put(b, int64(x.job), int64(x.attempt), int64(x.busy))
	}
	return figures.PutBytes(b, s.Watch.Remember())
}

// Recall reads what Remember wrote.
func (s *Sharer) Recall(memory []byte) error {
	s.busy, s.fresh = nil, false
	r := figures.Read(memory)
	for range r.Counted {
		s.busy = append(s.busy, seen{plan.JobID(r.Next()), int32(r.Next()), unit.Milli(r.Next())})
	}
	watched := r.Bytes()
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of how busy runs are: %w", err)
	}
	return s.Watch.Recall(watched)
}

// on is the device model of a run, and whether it is on several nodes.
func on(v plan.View, run plan.RunID) (model int32, several bool) {
	first := plan.NodeID(plan.None)
	v.GrantsOf(run, func(g plan.Grant) {
		several = several || first != plan.None && g.Node != first
		first, model = g.Node, v.Node(g.Node).Model
	})
	return model, several
}

// pair is at what part of its rate a guest is believed to go beside a host on a device model; 0
// where the host would be slowed by more than it may, or nothing is known and that does not do.
func (s *Sharer) pair(host, guest work, model string) unit.Milli {
	if host.busy*1000 >= float64(s.config.BusyBelow) && s.config.BusyBelow < unit.Whole {
		return 0
	}
	h, g := 1.0, 1.0
	if mine, theirs, ok := s.measured(host.class, guest.class, model); ok {
		both := host.busy * guest.busy
		h, g = sharing.Together(mine, both), sharing.Together(theirs, both)
	} else if s.config.MeasuredOnly {
		return 0
	} else {
		h, g = control.Filling(guest.law, host.busy, guest.busy, control.Windows{Length: host.spare.Window, Switch: s.config.Switch})
	}
	if h*1000 < float64(unit.Whole-s.config.Harm) {
		return 0
	}
	return unit.Milli(1000 * g)
}

// measured is what was measured of two classes beside each other.
func (s *Sharer) measured(a, b, model string) (mine, theirs float64, ok bool) {
	if s.config.pairs == nil {
		return 0, 0, false
	}
	return s.config.pairs.Pair(a, b, model)
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
				if serves(v, host) || s.pair(s.of(v, host, run), s.of(v, r.Job, plan.None), v.Cluster().Models[v.Node(g.Node).Model].Name) == 0 {
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
	model, several := on(v, v.Job(job).Run)
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
