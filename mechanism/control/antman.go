package control

import "github.com/musterdl/muster/model/unit"

// slowed is the ratio of the protected job's solo rate to its rate, in thousandths,
// above which it counts as slowed down.
const slowed = 1050

// antman is the local coordinator of AntMan. It begins at the floor, so that a new
// guest costs nothing before it has been watched. Its first word is the time set
// last, plus one; its second the memory set last, plus one.
func antman(r Range, o Observation, s State) (Actuator, State) {
	now := unit.Milli(s[0]) - 1
	switch {
	case s[0] == 0:
		now = r.Floor
	case o.Solo > 0 && o.Solo*1000 > slowed*o.Rate:
		now = now * 7 / 10
	default:
		now += max(1, r.Ceiling/20)
	}
	now = min(max(now, r.Floor), r.Ceiling)

	// Memory follows the protected job's high-water mark down at once, since it must
	// never wait for room, and up by tenths.
	memory := unit.MiB(s[1]) - 1
	if room := min(max(o.Spare, 0), r.Memory); s[1] == 0 || room < memory {
		memory = room
	} else {
		memory = min(room, memory+(r.Memory+9)/10)
	}
	s[0], s[1] = int64(now)+1, int64(memory)+1
	return Actuator{CPU: now, Memory: memory}, s
}

func antmanFill(r Range, o Observation, s State) (Actuator, State) {
	a, s := antman(r, o, s)
	a.Yield = true
	return a, s
}
