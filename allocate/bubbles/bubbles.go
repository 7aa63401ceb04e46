// Package bubbles says whom guests may join in what a pipeline plan leaves idle, and watches how
// these hosts fare beside them: a host is seen alone first, and where it goes slower beside guests
// than it may, they end and no others come. Placers of guests share it.
package bubbles

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Rule says when guests may use what a plan leaves idle.
type Rule struct {
	// Harm is by how much they may slow their host, in thousandths.
	Harm unit.Milli
	// Switch is what handing a device to a guest, or back, is believed to take.
	Switch unit.Duration
}

// Opens reports whether handing the device over in each window of a plan takes no more than half
// of it, and slows the host by no more than it may be.
func (r *Rule) Opens(s workload.Spare) bool {
	return s.IdleMicro > 0 && s.Window >= 2*r.Switch && s.Idle()*float64(r.Switch)*1000 <= float64(r.Harm)*float64(s.Window)
}

// Watch is what was seen of hosts.
type Watch struct {
	Rule
	seen []seen // by host, ascending
}

var (
	_ allocate.Watcher     = (*Watch)(nil)
	_ strategy.Remembering = (*Watch)(nil)
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
func (w *Watch) of(v plan.View, job plan.JobID) *seen {
	at, known := w.index(job)
	if !known || w.seen[at].attempt != v.Job(job).Attempt {
		return nil
	}
	return &w.seen[at]
}

func (w *Watch) index(job plan.JobID) (int, bool) {
	return slices.BinarySearchFunc(w.seen, job, func(s seen, job plan.JobID) int { return cmp.Compare(s.job, job) })
}

// Shut reports whether a host was not seen alone yet, or slowed too much by guests.
func (w *Watch) Shut(v plan.View, job plan.JobID) bool {
	s := w.of(v, job)
	return s == nil || s.shut
}

// Unwelcome are the guests of hosts whose plans leave them nothing, since these came later, of
// those that were not seen alone yet, and of those that go slower beside them by more than they
// may. Who was seen alone is open.
func (w *Watch) Unwelcome(v plan.View, changed []plan.JobID) (out []allocate.Guest, opened bool) {
	w.seen = slices.DeleteFunc(w.seen, func(s seen) bool { return v.Job(s.job).Phase.Over() })
	for _, job := range changed {
		// Whose guest has left because of it may be alone now.
		for _, host := range [...]plan.JobID{job, leftFor(v, job)} {
			if host == plan.None || v.Job(host).Run == plan.None || v.Spare(v.Job(host).Run).IsZero() {
				continue
			}
			guests, opens := w.watch(v, host)
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
func (w *Watch) watch(v plan.View, job plan.JobID) (guests []plan.RunID, opens bool) {
	j := v.Job(job)
	run, alone := v.Run(j.Run), true
	v.GrantsOf(j.Run, func(g plan.Grant) {
		for _, other := range Guests(v, g.Device, nil) {
			if alone = false; v.Run(other).Status != plan.Stopping && !slices.Contains(guests, other) {
				guests = append(guests, other)
			}
		}
	})
	s := w.of(v, job)
	switch {
	case run.Status != plan.Running:
		return guests, false
	case alone && s == nil:
		at, known := w.index(job)
		if !known {
			w.seen = slices.Insert(w.seen, at, seen{})
		}
		w.seen[at] = seen{job: job, attempt: j.Attempt, aloneMicro: run.RateMicro}
		return nil, w.Opens(v.Spare(j.Run))
	case alone:
		s.aloneMicro = run.RateMicro
	case s != nil && !s.shut && w.Opens(v.Spare(j.Run)):
		if s.shut = w.less(run.RateMicro, s.aloneMicro); !s.shut {
			return nil, false
		}
	}
	return guests, false
}

// less reports whether a rate is less than another by more than a host may be slowed.
func (w *Watch) less(rate, than int64) bool {
	return rate*int64(unit.Whole) < than*int64(unit.Whole-w.Harm)
}

// Guests appends the runs that are guests on a device, each once.
func Guests(v plan.View, device plan.DeviceID, into []plan.RunID) []plan.RunID {
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
func (w *Watch) Remember() []byte {
	b := figures.PutCount(nil, len(w.seen))
	for _, s := range w.seen {
		shut := int64(0)
		if s.shut {
			shut = 1
		}
		b = figures.Put(b, int64(s.job), int64(s.attempt), s.aloneMicro, shut)
	}
	return b
}

// Recall reads what Remember wrote.
func (w *Watch) Recall(memory []byte) error {
	w.seen = nil
	r := figures.Read(memory)
	for range r.Counted {
		w.seen = append(w.seen, seen{plan.JobID(r.Next()), int32(r.Next()), r.Next(), r.Next() != 0})
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of hosts: %w", err)
	}
	return nil
}
