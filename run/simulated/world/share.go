package world

import (
	"math"
	"slices"

	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// rerate recomputes the rates of the runs connected to id by shared devices and
// links, and returns those whose rate changed, id first if it lives.
func (w *World) rerate(now unit.Time, id plan.RunID) []plan.RunID {
	x := &w.runs[id]
	if len(x.devices) == 0 && len(x.sends.Demand) == 0 {
		if x.live { // nobody is affected, and nobody affects it
			x.rate = x.solo
			w.setPace(now, id)
			w.tell(now, id)
			w.queue = append(w.queue[:0], id)
			return w.queue
		}
		return nil
	}
	component := w.component(id)
	w.tell(now, component...)
	return w.apply(now, component, w.slowed(component), id)
}

// rates are those of the runs of a component, over the links and beside each other on the devices
// that they share: who waits for a link leaves his devices to others meanwhile.
func (w *World) rates(component []plan.RunID, into []float64) []float64 {
	into = into[:0]
	for _, r := range component {
		into = append(into, w.runs[r].solo)
	}
	w.overLinks(component, into)
	for i, r := range component {
		x := &w.runs[r]
		if x.linked = 1; x.solo > 0 {
			x.linked = into[i] / x.solo
		}
	}
	for i, r := range component {
		if w.runs[r].replica == nil {
			into[i] *= w.beside(r)
		}
	}
	return into
}

// overLinks slows the runs of a component down by what its links cannot carry.
func (w *World) overLinks(component []plan.RunID, rates []float64) {
	w.net.Begin()
	for i, r := range component {
		if x := &w.runs[r]; len(x.sends.Demand) > 0 && !w.away(x) {
			w.net.Add(&x.sends, x.began, i)
		}
	}
	w.net.Slow(rates)
}

// slowed notes of the owners of a component by how much guests slow them, on devices and on links: the
// part of the time that they hold now which they would not without any. It returns the rates.
func (w *World) slowed(component []plan.RunID) []float64 {
	guests := slices.ContainsFunc(component, func(r plan.RunID) bool { return w.runs[r].guest && !w.runs[r].paused })
	if guests {
		w.guestless = true
		w.without = w.rates(component, w.without)
		w.guestless = false
	}
	w.scratch = w.rates(component, w.scratch)
	for i, r := range component {
		x := &w.runs[r]
		if x.lost = 0; guests && !x.guest && w.without[i] > 0 {
			x.lost = max(0, 1-w.scratch[i]/w.without[i])
		}
	}
	return w.scratch
}

// away reports whether a run computes nothing now, or is a guest where none is reckoned with.
func (w *World) away(x *run) bool { return x.paused || w.guestless && x.guest }

// component collects the live runs connected to id, in the order they are found.
func (w *World) component(id plan.RunID) []plan.RunID {
	w.round++
	w.queue = w.queue[:0]
	visit := func(r plan.RunID) {
		if w.mark[r] != w.round {
			w.mark[r] = w.round
			w.queue = append(w.queue, r)
		}
	}
	visit(id)
	for i := 0; i < len(w.queue); i++ {
		x := &w.runs[w.queue[i]]
		for _, d := range x.devices {
			for _, r := range w.onDev[d] {
				visit(r)
			}
		}
		for _, d := range x.sends.Demand {
			for _, r := range w.net.On(d.Link) {
				visit(r)
			}
		}
	}
	if !w.runs[id].live {
		w.queue = slices.Delete(w.queue, 0, 1)
	}
	return w.queue
}

// beside is what sharing devices leaves of a run's rate, on the worst of them.
func (w *World) beside(id plan.RunID) float64 {
	x := &w.runs[id]
	least := 1.0
	for _, d := range x.devices {
		least = min(least, w.besideOn(d, id, x))
	}
	return least
}

// besideOn is what the others on a device leave of a run's rate: the measured pair
// where two classes are known, while both compute; for those trained together with it, what the longer
// step leaves; else the device's time divided in proportion to what each needs. A run
// that asked for a share was measured on that share, so it is slowed only when the
// device is asked for more than a whole. Between a host and guests under a law it is as
// the law makes it; the guests divide what it leaves them, and until it has settled a guest
// has half of that and slows its host half as much. What services whose law is known do
// to each other is in their answers. A host that goes by a plan needs what that leaves busy, and
// its guests get into its windows, see control.Filling.
func (w *World) besideOn(d plan.DeviceID, id plan.RunID, x *run) float64 {
	others, other := 0, plan.RunID(plan.None)
	hosts, guests, missing, merged, law := 0.0, 0.0, 0.0, 0, ""
	in := control.Windows{Switch: w.config.Switch}
	for _, r := range w.onDev[d] {
		y := &w.runs[r]
		if r != id && w.away(y) || y.paused || r != id && x.replica != nil && y.replica != nil {
			continue
		}
		if r != id {
			others, other = others+1, r
		}
		use := y.use()
		switch {
		case r != id && x.with(y):
			merged++
		case y.guest && y.law != "":
			if guests, law = guests+use, y.law; y.settling {
				missing += use / 2
			}
		default:
			hosts, in.Length = hosts+use, max(in.Length, y.spare.Window)
		}
	}
	if others == 1 && merged == 0 && w.config.Speeds != nil {
		model := w.c.Models[w.c.Nodes[w.c.Devices[d].Node].Model].Name
		if mine, _, ok := w.config.Speeds.Pair(w.truth[x.job].class, w.truth[w.runs[other].job].class, model); ok {
			return x.given(sharing.Together(mine, x.use()*w.runs[other].use()))
		}
	}
	rate := 1 / (1 + w.truth[x.job].Merge*float64(merged))
	if law != "" && guests <= 0 {
		law = "" // no guest has anything of the links that it needs, and so it computes nothing
	}
	if law != "" && hosts > 0 {
		host, guest := control.Filling(law, hosts, guests, in)
		if x.guest && x.law != "" {
			return x.given(sharing.Divided(rate*guest, guests))
		}
		rate *= 1 - (1-host)*(1-missing/guests)
	} else if x.guest && x.law != "" {
		return sharing.Divided(rate, guests)
	}
	return sharing.Divided(rate, hosts)
}

// use is the part of a device's time that a run keeps busy by itself: less while it waits for links, but of one
// that goes by a planner's plan, of whose step with a part of the links nobody knows where it waits.
func (x *run) use() float64 {
	if x.offered {
		return min(x.need, x.limit)
	}
	return min(x.need*x.linked, x.limit)
}

// Busy is the part of its devices' time that a run is seen to keep busy, where nobody on them is in its way.
func (w *World) Busy(id plan.RunID) unit.Milli {
	return max(1, unit.Milli(math.Round(1000*w.runs[id].use())))
}

// given is what a guest has of what its law will leave it: half, until that has settled.
func (x *run) given(rate float64) float64 {
	if x.settling {
		return rate / 2
	}
	return rate
}

// Settle says whether the law that a guest is under is still to find where it holds. It
// returns the runs whose end has moved.
func (w *World) Settle(now unit.Time, id plan.RunID, settling bool) []plan.RunID {
	w.runs[id].settling = settling
	return w.rerate(now, id)
}

// with reports whether two runs that share a device train in one process.
func (x *run) with(y *run) bool { return x.base != "" && y.base == x.base && (x.merged || y.merged) }

// Fits reports whether the memory of its devices holds a run beside those that compute
// there, as far as it was measured.
func (w *World) Fits(id plan.RunID) bool {
	if w.config.Speeds == nil {
		return true
	}
	x := &w.runs[id]
	for _, d := range x.devices {
		model := w.c.Models[w.c.Nodes[w.c.Devices[d].Node].Model].Name
		for _, r := range w.onDev[d] {
			y := &w.runs[r]
			if r == id || y.paused || x.with(y) {
				continue
			}
			if mine, _, ok := w.config.Speeds.Pair(w.truth[x.job].class, w.truth[y.job].class, model); ok && mine == 0 {
				return false
			}
		}
	}
	return true
}

// Regrant gives a run what its terms now say, of devices and of links, and returns the
// runs whose end has moved.
func (w *World) Regrant(now unit.Time, v plan.View, id plan.RunID) []plan.RunID {
	x := &w.runs[id]
	for _, d := range x.devices {
		w.onDev[d] = without(w.onDev[d], id)
	}
	w.net.Leave(id, &x.sends)
	x.advance(now)
	x.book.Close(now)
	w.busy[x.model] += x.book.Busy()
	left := w.rerateAll(now, x.devices)
	x = &w.runs[id]
	w.shape(v, id, x)
	w.busy[x.model] -= x.book.Busy() // it counts for the model that it is on at its end
	w.enter(v, id)
	w.net.Join(id, &x.sends)
	return joined(left, w.rerate(now, id))
}

// rerateAll recomputes the rates of those that are on devices which somebody leaves.
func (w *World) rerateAll(now unit.Time, devices []plan.DeviceID) (changed []plan.RunID) {
	for _, d := range devices {
		if len(w.onDev[d]) > 0 {
			changed = joined(changed, w.rerate(now, w.onDev[d][0]))
		}
	}
	return changed
}
