package divide

// best is what the contenders among a run of jobs have at most. Those who have nothing yet
// compare by their lead with each other.
type best struct {
	lead  float64      // the least, of those who have nothing; none is infinite
	next  float64      // the most, of those who have something
	bands [bands]front // of those, by how much they gain
	idle  bool         // whether there are any who have nothing
	busy  bool         // and any who have something
}

// front is the least that is left of a band of contenders, and the most that one gains.
type front struct{ remaining, gain float64 }

// bands is how many bands of gains are told apart: of who would gain a whole of the present
// rate, a half, a third and so on, as one does whose rate grows by the unit.
const bands = 12

func (x *Contender) band() int {
	if x.gain*bands < 1 {
		return bands - 1
	}
	return int(min(bands-1, 1/x.gain))
}

func join(a, b *best) best {
	c := best{lead: min(a.lead, b.lead), next: max(a.next, b.next), idle: a.idle || b.idle, busy: a.busy || b.busy}
	for i := range c.bands {
		x, y := &a.bands[i], &b.bands[i]
		c.bands[i] = front{min(x.remaining, y.remaining), max(x.gain, y.gain)}
	}
	return c
}

// none reports whether it is plain that nobody of a run beats a contender: nobody who ends
// sooner gains more than its next gain, and the next gain of nobody else is as much as its own.
func (b *best) none(x *Contender) bool {
	if b.idle && (x.Now == 0 && x.lead > b.lead || x.Now > 0 && x.gain <= 1) {
		return false
	}
	if b.busy && x.Now > 0 && x.gain <= b.next {
		return false
	}
	for i := range b.bands {
		if f := &b.bands[i]; f.gain > x.next && f.remaining < x.remaining {
			return false
		}
	}
	return true
}
