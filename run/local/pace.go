package local

import (
	"math"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/supervise"
)

// paceOver is the least time over which steps are counted, paceBlocks how many blocks of them a
// rate is taken from at least, where there are so many, and paceMost at most, news how many hundredths a rate must have
// changed to be told, and patience for how many steps' time a run must have made none to be said to
// stand.
const (
	paceOver   = run.Standing
	paceBlocks = 8
	paceMost   = 256
	news       = 1
	patience   = 10
)

// pace is how fast a run goes, from the steps that its rank 0 reports.
type pace struct {
	step   int64 // where the present count began, and when; zero is nowhere
	at     unit.Time
	blocks []control.Block // the newest, those of the present count among them
	fresh  int             // of the present count
	told   int64           // rate reported last, in millionths; 0 is none
	off    plan.Off        // by how much that may be
	// For a run that may stand: its steps per second when it last made any, and that it was
	// said to.
	speed float64
	stood bool
	cpu   unit.Duration // that its rank 0 had used when the present count began
	since unit.Time     // when that was; zero is nowhere
}

// again begins to count anew: the run has started, rested, been given other terms, or other
// company.
func (p *pace) again() { *p = pace{} }

// seen takes in the report of rank 0. Once the count began long enough ago it returns how fast the
// run goes since, or for how long it made no step.
func (p *pace) seen(r *supervise.Record) (is control.Pace, stands unit.Duration) {
	step, took := r.Report.Step, r.At.Sub(p.at)
	if p.at == 0 || step < p.step || step > p.step && p.stood {
		p.step, p.at, p.stood, p.blocks, p.fresh = step, r.At, false, nil, 0
		return is, 0 // its blocks may be of the time before
	}
	p.blocks, p.fresh = append(p.blocks, r.Blocks...), p.fresh+len(r.Blocks)
	switch {
	case took < paceOver || p.stood:
	case p.fresh > 0:
		is = p.newest()
		p.speed, p.step, p.at, p.fresh = is.Is, step, r.At, 0
		return is, 0
	case step == p.step && p.speed > 0 && took.Seconds() >= patience/p.speed:
		return is, took
	}
	return is, 0
}

// uses is how many cores rank 0 has used in the mean since the first report of the present company; 0
// is not known yet.
func (p *pace) uses(r *supervise.Record) float64 {
	if p.since == 0 || r.Usage.CPU < p.cpu {
		p.since, p.cpu = r.At, r.Usage.CPU
	}
	if r.At.Sub(p.since) < paceOver {
		return 0
	}
	return (r.Usage.CPU - p.cpu).Seconds() / r.At.Sub(p.since).Seconds()
}

// busy is how much of the time a worker keeps its devices busy that uses so many cores: of slots, which are so
// many cores each, or, of GPUs, what they say themselves.
func (c *Config) busy(cores float64, devices int, r *supervise.Record) unit.Milli {
	switch {
	case c.GPUs:
		return unit.Milli(10 * r.Usage.GPU)
	case c.SlotCPU > 0 && devices > 0 && cores > 0:
		return min(unit.Whole, max(1, unit.Milli(cores*1e6/float64(c.SlotCPU)/float64(devices))))
	}
	return 0
}

// newest is how fast the run goes now: all blocks count together, for a rate that is known the better
// the longer it stays, until those of the present count are surely of another.
func (p *pace) newest() control.Pace {
	if old := len(p.blocks) - max(p.fresh, paceBlocks); old > 0 {
		was, is := control.PaceOf(p.blocks[:old]), control.PaceOf(p.blocks[old:])
		if is.Least > was.Most || is.Most < was.Least {
			p.blocks = slices.Delete(p.blocks, 0, old)
			return is
		}
	}
	if old := len(p.blocks) - max(p.fresh, paceMost); old > 0 {
		p.blocks = slices.Delete(p.blocks, 0, old)
	}
	return control.PaceOf(p.blocks)
}

// isNews reports whether another rate than was told is seen, or the one that was told is known
// more than twice as well, and notes it as told.
func (p *pace) isNews(rate int64, off plan.Off) bool {
	less, more := p.told-rate, rate-p.told
	same := more <= off.Less && less <= off.More || max(less, more)*100 < news*p.told
	if p.told > 0 && same && 2*(off.Less+off.More) >= p.off.Less+p.off.More {
		return false
	}
	p.told, p.off = rate, off
	return true
}

// rate is the rate of a run in millionths of its job's reference and by how much that may be off, or
// for how long it has stood, if that is news, else nothing.
func (a *attempt) rate(r *supervise.Record) (rate int64, off plan.Off, stands unit.Duration) {
	if a.company.Swap(false) {
		a.pace.again()
	}
	is, stands := a.pace.seen(r)
	if is.Is == 0 && stands == 0 {
		return 0, plan.Off{}, 0
	}
	best := a.driver.reference(a, is)
	if best == 0 {
		return 0, off, 0 // it was never seen with the workers it asked for, or only as a guest
	}
	if stands > 0 {
		a.pace.stood, a.pace.told = true, 0
		return 0, off, stands
	}
	// Of too few blocks nothing is sure, which is a rate that may be off by all of it.
	rate, off = micro(is.Is/best), plan.Off{Less: micro((is.Is - is.Least) / best), More: micro(min(is.Is, is.Most-is.Is) / best)}
	if !a.pace.isNews(rate, off) {
		return 0, plan.Off{}, 0
	}
	return rate, off, 0
}

func micro(part float64) int64 { return int64(math.Round(part * plan.FullRate)) }

// reference is what rates of an attempt's job are parts of: the pace at which the job was first
// seen to go with as many workers as it asked for, or one that was surely faster, without guests
// beside it. A guest goes as its host lets it, which says nothing of how it would go by itself. What it
// declared may be wrong, and the fastest of many is only the luckiest.
func (d *Driver) reference(a *attempt, is control.Pace) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	best := d.fastest[a.order.Job]
	if asGuest := a.order.Guest && a.order.Terms.Share.Bond == plan.InGaps; asGuest {
		return best
	}
	if len(a.order.Workers) == int(a.order.Spec.Gang) && (best == 0 || is.Least > best && !d.accompanied(a)) {
		best = is.Is
		d.fastest[a.order.Job] = best
	}
	return best
}

// accompanied reports whether guests live on an attempt's devices.
func (d *Driver) accompanied(a *attempt) bool {
	for _, other := range d.attempts {
		if other.order.Guest && other != a && meet(a, other) {
			return true
		}
	}
	return false
}

// meet reports whether two attempts have workers on the same device.
func meet(a, b *attempt) bool {
	for i := range a.order.Workers {
		for j := range b.order.Workers {
			for _, d := range a.order.Workers[i].Devices {
				if slices.Contains(b.order.Workers[j].Devices, d) {
					return true
				}
			}
		}
	}
	return false
}

// joins notes that a guest comes to or leaves those on whose devices it is: they are counted anew,
// and until then nobody knows how they go.
func (d *Driver) joins(guest *attempt) {
	if !guest.order.Guest {
		return
	}
	var hosts []*attempt
	d.mu.Lock()
	for _, a := range d.attempts {
		if !a.order.Guest && meet(a, guest) {
			a.company.Store(true)
			hosts = append(hosts, a)
		}
	}
	d.mu.Unlock()
	for _, a := range hosts {
		d.report(a.unmeasured(engine.Observed))
	}
}

// unmeasured is an event of a run of which nobody has measured how it goes.
func (a *attempt) unmeasured(kind engine.Kind) engine.Event {
	e := a.event(kind, plan.NoFailure, 0)
	e.RateOff = plan.Unmeasured
	return e
}
