// Package control holds the laws: fast deciders for what must react within seconds,
// not scheduling rounds. A law is pure; whoever hosts the device steps it with what
// it observes, a supervisor live, also while the control plane is dead. What a law
// may do is bounded by the range that the grant gives it.
package control

import (
	"slices"

	"github.com/musterdl/muster/unit"
)

// Observation is what a law sees of one interval.
type Observation struct {
	// Idle is the part of the machine that nobody used, in thousandths.
	Idle unit.Milli
	// Used is what the worker used of its cores, in thousandths of a core.
	Used unit.Milli
}

// Range bounds a law: the least and the most cores it may leave the worker.
type Range struct{ Floor, Ceiling unit.Milli }

// Actuator is what a law sets: the cores that the worker may use from now on.
type Actuator struct{ CPU unit.Milli }

// State is what a law remembers between steps; zero at the start.
type State [4]int64

// Law decides what a worker may use.
type Law struct {
	Name, Source, Idea string
	Step               func(r Range, o Observation, s State) (Actuator, State)
}

// Laws are all there are.
var Laws = []Law{
	{Name: "fixed", Source: "folklore", Idea: "always the most its grant allows: the null", Step: fixed},
	{Name: "give-way", Source: "after AntMan (OSDI 2020) and TGS (NSDI 2023): additive increase, multiplicative decrease",
		Idea: "an opportunistic worker halves when the machine gets busy and grows back slowly", Step: giveWay},
}

// Find returns the law of a name; "" is fixed.
func Find(name string) (Law, bool) {
	if name == "" {
		return Laws[0], true
	}
	i := slices.IndexFunc(Laws, func(l Law) bool { return l.Name == name })
	if i < 0 {
		return Law{}, false
	}
	return Laws[i], true
}

func fixed(r Range, _ Observation, s State) (Actuator, State) { return Actuator{r.Ceiling}, s }

// Below busy the machine has no room to spare, above calm it has; between them
// nothing changes, so that the law does not swing on noise.
const busy, calm = 100, 200

// giveWay remembers in its first word what it set last.
func giveWay(r Range, o Observation, s State) (Actuator, State) {
	now := unit.Milli(s[0])
	switch {
	case now == 0:
		now = r.Ceiling
	case o.Idle < busy:
		now /= 2
	case o.Idle > calm:
		now += (r.Ceiling - r.Floor + 9) / 10
	}
	now = min(max(now, r.Floor), r.Ceiling)
	s[0] = int64(now)
	return Actuator{now}, s
}
