package control

import (
	"sync"

	"github.com/musterdl/muster/model/unit"
)

// core is one processor, or one device shared in time, in steps of a millisecond: a
// protected job that computes and waits in turns, an opportunistic one beside it
// that does the same, and a quota for the second one. Whoever waits does so whether
// the processor is free or not, as for a disk or another machine.
type core struct {
	protected, guest task
	period           int64 // of the quota, ms
	now, budget      int64 // ms; left in this period, µs
	turn             int64 // thousandths of a step that the guest has waited for its turn
	idled            int64 // ms
}

// task alternates between so many ms of compute and of waiting.
type task struct {
	compute, wait int64
	at            int64 // ms into the cycle
	done          int64 // ms of compute and waiting got through
}

func (t *task) wants() bool { return t.at < t.compute }

func (t *task) advance() {
	t.done++
	if t.at++; t.at >= t.compute+t.wait {
		t.at = 0
	}
}

// How much of the processor a guest gets while both want it, in thousandths: half,
// as fair schedulers and the time slices of devices do; or, in the idle class, its
// weight of 3 against 1024.
const fair, idle = 500, 3

// run passes so many ms under a setting.
func (c *core) run(ms int64, a Actuator) {
	share := int64(fair)
	if a.Yield {
		share = idle
	}
	for range ms {
		if c.now%c.period == 0 {
			c.budget = c.budget%1000 + int64(a.CPU)*c.period
		}
		c.now++
		first, second := c.protected.wants(), c.guest.wants() && c.budget >= 1000
		if first && second {
			if c.turn += share; c.turn >= 1000 {
				c.turn -= 1000
				first = false
			} else {
				second = false
			}
		}
		if second {
			c.budget -= 1000
		} else if !first {
			c.idled++
		}
		if first || !c.protected.wants() {
			c.protected.advance()
		}
		if second || !c.guest.wants() {
			c.guest.advance()
		}
	}
}

// ratesUnder lets a law work on the core for twice so many intervals and returns the
// rates of both jobs over the second half, as parts of their rates by themselves.
func (c *core) ratesUnder(law Law, interval int64, intervals int) (protected, guest float64) {
	var s State
	var a Actuator
	o := Observation{Rate: unit.Whole, Solo: unit.Whole}
	var half core
	for i := range 2 * intervals {
		if i == intervals {
			half = *c
		}
		a, s = law.Step(Range{Floor: 1, Ceiling: unit.Whole}, o, s)
		before := *c
		c.run(interval, a)
		o.Rate = unit.Milli((c.protected.done - before.protected.done) * 1000 / interval)
		o.Idle = unit.Milli((c.idled - before.idled) * 1000 / interval)
	}
	span := float64(interval) * float64(intervals)
	return float64(c.protected.done-half.protected.done) / span, float64(c.guest.done-half.guest.done) / span
}

// steadyKey is what a steady state depends on.
type steadyKey struct {
	law              string
	protected, guest unit.Milli
}

// steadyStates remembers what Steady has computed; the same question has the same
// answer, so who asks first makes no difference.
var steadyStates sync.Map

// Windows are how a protected job leaves a device idle, where that is known: for so long at a
// stretch. Switch is how long it takes to hand the device over, to the guest at the beginning of
// each and back at its end.
type Windows struct{ Length, Switch unit.Duration }

// Filling is Steady of parts of a device's time, 0..1, where the protected job leaves the rest in
// windows: its guest has no more than they hold, less what is spent on handing over, for which
// the protected job waits as often. Without a Length it is Steady alone.
func Filling(law string, protectedDemand, opportunisticDemand float64, in Windows) (protected, opportunistic float64) {
	milli := func(part float64) unit.Milli { return unit.Milli(1000 * min(1, part)) }
	protected, opportunistic = Steady(law, milli(protectedDemand), milli(opportunisticDemand))
	if in.Length <= 0 {
		return protected, opportunistic
	}
	idle, switches := max(0, 1-protectedDemand), float64(in.Switch)/float64(in.Length)
	return protected / (1 + idle*switches), min(opportunistic, idle/opportunisticDemand) * max(0, 1-switches)
}

// Steady is how fast a protected job and an opportunistic one go that share a device
// under a law, as parts of their rates by themselves, once the law has settled.
// Demands are the parts of the device's time that they keep busy by themselves, in
// thousandths, taken in hundredths.
func Steady(law string, protectedDemand, opportunisticDemand unit.Milli) (protected, opportunistic float64) {
	percent := func(d unit.Milli) unit.Milli { return min(max((d+5)/10, 1), 100) }
	key := steadyKey{law, percent(protectedDemand), percent(opportunisticDemand)}
	if found, ok := steadyStates.Load(key); ok {
		r := found.([2]float64)
		return r[0], r[1]
	}
	l, ok := Find(law)
	if !ok {
		l = Laws[0]
	}
	p, g := int64(key.protected), int64(key.guest)
	c := core{
		protected: task{compute: p, wait: 100 - p},
		// Cycles of two jobs do not go in step: 137 and 100 have no common factor.
		guest:  task{compute: g * 137 / 100, wait: 137 - g*137/100},
		period: 10,
	}
	r := [2]float64{}
	r[0], r[1] = c.ratesUnder(l, 2000, 40)
	steadyStates.Store(key, r)
	return r[0], r[1]
}
