// Package control holds the laws: fast deciders for what must react within seconds,
// not scheduling rounds. A law is pure; whoever hosts the device steps it with what
// it observes, a supervisor live, also while the control plane is dead. What a law
// may do is bounded by the range that the grant gives it.
package control

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Observation is what a law sees of one interval.
type Observation struct {
	// Idle is the part of the machine that nobody used, in thousandths.
	Idle unit.Milli
	// Used is what the worker used of its cores, in thousandths of a core.
	Used unit.Milli
	// Rate is how fast the protected job beside the worker went, Solo how fast it goes
	// by itself, both in thousandths of one reference. Zero Solo: there is none, or it
	// has not been seen by itself yet.
	Rate, Solo unit.Milli
	// Spare is the device memory that the protected job does not hold.
	Spare unit.MiB
}

// Range bounds a law: the least and the most cores, or part of a device's time, and
// the most device memory that it may leave the worker; zero Memory is no matter.
type Range struct {
	Floor, Ceiling unit.Milli
	Memory         unit.MiB
}

// Actuator is what a law sets from now on.
type Actuator struct {
	// CPU is the cores, or the part of a device's time, that the worker may use.
	CPU unit.Milli
	// Yield has the worker run only where the protected job leaves the processor idle:
	// cpu.idle of its control group (the class of its processes does nothing across
	// groups), the lower priority on a device.
	Yield bool
	// Memory is the device memory it may hold; what is beyond moves to the host. Zero
	// where the range has none.
	Memory unit.MiB
}

// State is what a law remembers between steps; zero at the start.
type State [4]int64

// Law decides what a worker may use.
type Law struct {
	Name, Source, Idea string
	Step               func(r Range, o Observation, s State) (Actuator, State)
}

// ForGuests is the law of guests whose jobs name none.
const ForGuests = "antman-fill"

// Laws are all there are.
var Laws = []Law{
	{Name: "fixed", Source: "folklore", Idea: "always the most its grant allows: the null", Step: fixed},
	{Name: "give-way", Source: "after AntMan (OSDI 2020) and TGS (NSDI 2023): additive increase, multiplicative decrease",
		Idea: "an opportunistic worker halves when the machine gets busy and grows back slowly", Step: giveWay},
	{Name: "antman", Source: "AntMan (OSDI 2020); the constants are ours",
		Idea: "seven tenths of its time when the protected job slows by a twentieth, else a twentieth more", Step: antman},
	{Name: ForGuests, Source: "AntMan (OSDI 2020), the operator manager that runs in idle slots; the constants are ours",
		Idea: "as antman, and only while the protected job leaves the processor idle", Step: antmanFill},
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

func fixed(r Range, _ Observation, s State) (Actuator, State) {
	return Actuator{CPU: r.Ceiling, Memory: r.Memory}, s
}

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
	return Actuator{CPU: now, Memory: r.Memory}, s
}
