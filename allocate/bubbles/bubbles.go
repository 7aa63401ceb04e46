// Package bubbles says whom guests may join in what a pipeline plan leaves idle, and watches how
// these hosts, or all, fare beside them: a host is seen alone first, and where it goes slower beside guests
// than it may, they end, and no others come if it goes faster without them. Placers of guests share
// it.
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
	// All are watched, also those that go by no plan.
	All bool
}

// Opens reports whether handing the device over in each window of a plan takes no more than half
// of it, and slows the host by no more than it may be.
func (r *Rule) Opens(s workload.Spare) bool {
	return r.All && s.IsZero() || s.IdleMicro > 0 && s.Window >= 2*r.Switch && s.Idle()*float64(r.Switch)*1000 <= float64(r.Harm)*float64(s.Window)
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

// seen is what was seen of a host that goes by a plan: its job's attempt and its rates, in millionths.
type seen struct {
	job        plan.JobID
	attempt    int32
	aloneMicro int64 // without guests it goes at least so fast
	// beside is set when guests seem to have slowed the host: then it went at most so fast. When it is seen alone
	// again, and goes faster, that is proven.
	beside int64
}

// proven is that guests slowed a host: without them it went faster again.
const proven = -1

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
	return s == nil || s.beside != 0
}

// Unwelcome are the guests of hosts whose plans leave them nothing, since these came later, of
// those that were not seen alone yet, and of those that go slower beside them by more than they
// may. Who was seen alone is open.
func (w *Watch) Unwelcome(v plan.View, changed []plan.JobID) (out []allocate.Guest, opened bool) {
	w.seen = slices.DeleteFunc(w.seen, func(s seen) bool { return v.Job(s.job).Phase.Over() })
	for _, job := range changed {
		// Whose guest has left because of it may be alone now.
		for _, host := range [...]plan.JobID{job, leftFor(v, job)} {
			if host == plan.None || !w.watches(v, v.Job(host).Run) {
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

// watches reports whether a run is one that may have guests.
func (w *Watch) watches(v plan.View, run plan.RunID) bool {
	return run != plan.None && v.Run(run).Terms.Share.Guest == plan.None && (w.All || !v.Spare(run).IsZero())
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
	// Where rates are measured, nothing is known of one before it was, and again when guests have
	// come or gone. Who is alone is seen once his rate is known so well that harm could be told by it.
	s := w.of(v, job)
	least, most, measured := run.Measured()
	if s == nil && w.All && !alone && (!measured || !w.less(most, believed(v, j.Run))) {
		return nil, false // it goes as it was expected to
	}
	switch {
	case run.Status != plan.Running:
		return guests, false
	case alone && (!measured || w.less(least, run.RateMicro)):
	case alone && s == nil:
		at, known := w.index(job)
		if !known {
			w.seen = slices.Insert(w.seen, at, seen{})
		}
		w.seen[at] = seen{job: job, attempt: j.Attempt, aloneMicro: least}
		return nil, w.Opens(v.Spare(j.Run))
	case alone:
		return nil, w.again(s, least, most) && w.Opens(v.Spare(j.Run))
	case s != nil && s.beside == 0 && w.Opens(v.Spare(j.Run)):
		if !measured || !w.less(most, s.aloneMicro) {
			return nil, false
		}
		s.beside = most
	}
	return guests, false
}

// believed is the rate that a run is expected to have alone.
func believed(v plan.View, run plan.RunID) int64 {
	model, several := v.Where(run)
	return v.Rate(v.Run(run).Job, model, v.Run(run).Workers, several)
}

// again notes the least and the most that the rate of a host may be that is alone again, and reports
// whether that clears its guests: what slowed it beside them goes on without them.
func (w *Watch) again(s *seen, least, most int64) (cleared bool) {
	if s.beside > 0 && most == s.beside {
		return false // nobody has seen it alone yet
	}
	s.aloneMicro = least
	switch {
	case s.beside <= 0:
	case w.less(s.beside, s.aloneMicro):
		s.beside = proven
	default:
		s.beside, cleared = 0, true
	}
	return cleared
}

// less reports whether a rate is less than another by more than a host may be slowed: the most that
// the one may be than the least that the other was, so that guests do not pay for what is noise.
func (w *Watch) less(rate, than int64) bool {
	return rate*int64(unit.Whole) < than*int64(unit.Whole-w.Harm)
}

// Holds is how many workers of a shape the cores and the memory of a node leave room
// for; whether its devices are free is not asked of a guest.
func Holds(v plan.View, id plan.NodeID, shape *plan.Shape) int32 {
	n := v.Node(id)
	most := n.Count
	if shape.PerNode > 0 {
		most = min(most, shape.PerNode)
	}
	if shape.CPU > 0 {
		most = min(most, n.FreeCPU/shape.CPU)
	}
	if shape.Host > 0 {
		most = min(most, n.FreeHost/shape.Host)
	}
	return most
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
		b = figures.Put(b, int64(s.job), int64(s.attempt), s.aloneMicro, s.beside)
	}
	return b
}

// Recall reads what Remember wrote.
func (w *Watch) Recall(memory []byte) error {
	w.seen = nil
	r := figures.Read(memory)
	for range r.Counted {
		w.seen = append(w.seen, seen{plan.JobID(r.Next()), int32(r.Next()), r.Next(), r.Next()})
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of hosts: %w", err)
	}
	return nil
}
