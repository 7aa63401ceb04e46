package antman

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

var (
	_ allocate.Watcher     = (*Placer)(nil)
	_ strategy.Remembering = (*Placer)(nil)
)

// seen is how a host that goes by a plan was seen to go: the attempt of its job, its rate without
// guests, in millionths, 0 before it was seen so, and whether guests slowed it too much.
type seen struct {
	job        plan.JobID
	attempt    int32
	aloneMicro int64
	shut       bool
}

// of is what was seen of a host's present run; nil is nothing.
func (p *Placer) of(v plan.View, job plan.JobID) *seen {
	at, known := p.index(job)
	if !known || p.seen[at].attempt != v.Job(job).Attempt {
		return nil
	}
	return &p.seen[at]
}

func (p *Placer) index(job plan.JobID) (int, bool) {
	return slices.BinarySearchFunc(p.seen, job, func(s seen, job plan.JobID) int { return cmp.Compare(s.job, job) })
}

// shut reports whether a host was not seen alone yet, or slowed too much by guests.
func (p *Placer) shut(v plan.View, job plan.JobID) bool {
	s := p.of(v, job)
	return s == nil || s.shut
}

// Unwelcome are the guests of hosts whose plans leave them nothing, since these came later, of
// those that were not seen alone yet, and of those that go slower beside them by more than they
// may. Who was seen alone is open.
func (p *Placer) Unwelcome(v plan.View, changed []plan.JobID) (out []allocate.Guest, opened bool) {
	p.seen = slices.DeleteFunc(p.seen, func(s seen) bool { return v.Job(s.job).Phase.Over() })
	for _, job := range changed {
		// Whose guest has left because of it may be alone now.
		for _, host := range [...]plan.JobID{job, leftFor(v, job)} {
			if host == plan.None || v.Job(host).Run == plan.None || v.Spare(v.Job(host).Run).IsZero() {
				continue
			}
			guests, opens := p.watch(v, host)
			opened = opened || opens
			for _, g := range guests {
				if !slices.ContainsFunc(out, func(o allocate.Guest) bool { return o.Run == g }) {
					out = append(out, allocate.Guest{Run: g, Host: host})
				}
			}
		}
	}
	return out, opened
}

// leftFor is the host that a waiting job had to leave, or None.
func leftFor(v plan.View, job plan.JobID) plan.JobID {
	if why := v.Job(job).Reason; why.Code == plan.Unpacked {
		return plan.JobID(why.A)
	}
	return plan.None
}

// watch notes how a host goes, and tells which of its guests are to end and whether it was seen
// alone for the first time.
func (p *Placer) watch(v plan.View, job plan.JobID) (guests []plan.RunID, opens bool) {
	j := v.Job(job)
	run, alone := v.Run(j.Run), true
	v.GrantsOf(j.Run, func(g plan.Grant) {
		for _, other := range guestsOn(v, g.Device, nil) {
			if alone = false; v.Run(other).Status != plan.Stopping && !slices.Contains(guests, other) {
				guests = append(guests, other)
			}
		}
	})
	s := p.of(v, job)
	switch {
	case run.Status != plan.Running:
		return guests, false
	case alone && s == nil:
		at, known := p.index(job)
		if !known {
			p.seen = slices.Insert(p.seen, at, seen{})
		}
		p.seen[at] = seen{job: job, attempt: j.Attempt, aloneMicro: run.RateMicro}
		return nil, p.config.opens(v.Spare(j.Run))
	case alone:
		s.aloneMicro = run.RateMicro
	case s != nil && !s.shut && p.config.opens(v.Spare(j.Run)):
		if s.shut = p.less(run.RateMicro, s.aloneMicro); !s.shut {
			return nil, false
		}
	}
	return guests, false
}

// less reports whether a rate is less than another by more than a host may be slowed.
func (p *Placer) less(rate, than int64) bool {
	return rate*int64(unit.Whole) < than*int64(unit.Whole-p.config.Harm)
}

// guestsOn appends the runs that are guests on a device, each once.
func guestsOn(v plan.View, device plan.DeviceID, into []plan.RunID) []plan.RunID {
	if device != plan.None {
		v.GrantsOn(device, func(g plan.Grant) {
			if r := v.Run(g.Run); r.Terms.Share.Guest != plan.None && !slices.Contains(into, g.Run) {
				into = append(into, g.Run)
			}
		})
	}
	return into
}

// Remember encodes what was seen of hosts.
func (p *Placer) Remember() []byte {
	b := figures.PutCount(nil, len(p.seen))
	for _, s := range p.seen {
		shut := int64(0)
		if s.shut {
			shut = 1
		}
		b = figures.Put(b, int64(s.job), int64(s.attempt), s.aloneMicro, shut)
	}
	return b
}

// Recall reads what Remember wrote.
func (p *Placer) Recall(memory []byte) error {
	p.seen = nil
	r := figures.Read(memory)
	for range r.Counted {
		p.seen = append(p.seen, seen{plan.JobID(r.Next()), int32(r.Next()), r.Next(), r.Next() != 0})
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of antman: %w", err)
	}
	return nil
}
