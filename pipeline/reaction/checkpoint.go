// Package reaction says what to do when a large run breaks, by price, and how often it writes a
// checkpoint so that it breaks cheaply.
//
// Published systems have one answer each: Varuna restarts on other sizes, Oobleck takes smaller
// templates, ReCycle sends microbatches another way, and most runs wait for a spare. Which of them
// is best depends on what broke, on how long it takes to be whole again, and on what is idle: a
// device that is a tenth slower for an hour is not worth a pause of a minute, and one at half its
// speed for a day is worth a restart. A price in device-seconds puts them side by side. All ways
// are priced each time and shown in order, so that a person sees what was not done and why.
//
// What a way costs is told by the plan that it leads to, simulated on the devices as they are, and
// by the copies that lead there. What nobody knows, how long this repair takes, is the mean of
// what the caller says.
package reaction

import (
	"math"

	"github.com/musterdl/muster/model/unit"
)

// Interval is after how much work a run writes a checkpoint, so that checkpoints and work done
// again take least together (Daly 2006, the higher-order estimate; Young's is its first term). It
// is where failures come by chance, with such a mean time between two.
func Interval(cost, between unit.Duration) unit.Duration {
	delta, m := cost.Seconds(), between.Seconds()
	if delta <= 0 {
		return 1
	}
	if delta >= 2*m {
		return between // nothing helps: one checkpoint for each failure
	}
	ratio := delta / (2 * m)
	return unit.Seconds(math.Sqrt(2*delta*m)*(1+math.Sqrt(ratio)/3+ratio/9) - delta)
}

// Waste counts a restart that fails itself, as one of so many nodes does. It is the part of the time that a run loses to checkpoints, to work that is done again and to
// restarts, with failures by chance: what is left of an hour after Daly's complete model.
func Waste(interval, cost, restart, between unit.Duration) float64 {
	t, delta, r, m := interval.Seconds(), cost.Seconds(), restart.Seconds(), between.Seconds()
	return 1 - t/(m*math.Exp(r/m)*math.Expm1((t+delta)/m))
}

// Spares is how many nodes to keep idle for those that fail, where so many work, one fails so
// often and is away so long: the number from which one more would be needed for less of the time
// than it costs. Without a spare, a failure takes so many nodes out of work.
func Spares(nodes int, between, away unit.Duration, idle int) int {
	// Nodes fail one by one and by chance, so how many are away follows Poisson's law.
	mean := float64(nodes) * away.Seconds() / between.Seconds()
	p, below := math.Exp(-mean), 0.
	for k := 0; k < nodes; k++ {
		below += p
		if (1-below)*float64(idle) <= 1 {
			return k
		}
		p *= mean / float64(k+1)
	}
	return nodes
}
