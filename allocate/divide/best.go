package divide

import "math/bits"

// best is what the contenders among a run of jobs have at most. Those who have nothing yet
// compare by their lead with each other.
type best struct {
	lead  float64      // the least, of those who have nothing; none is infinite
	next  float64      // the most, of those who have something
	bands [bands]front // of those, by how much they gain, as far as used
	used  uint16       // the bands that there are any in: those who have something
	idle  bool         // whether there are any who have nothing
}

// front is the least that is left of a band of contenders, and the most that one gains.
type front struct{ remaining, gain float64 }

// bands is how many bands of gains are told apart: of who would gain a whole of the present
// rate, a half, a third and so on, as one does whose rate grows by the unit.
const bands = 12

func bandOf(gain float64) int {
	if gain*bands < 1 {
		return bands - 1
	}
	return int(min(bands-1, 1/gain))
}

// add takes the best of a contender or of several into a band.
func (b *best) add(band int, f front) {
	if b.used&(1<<band) != 0 {
		f = front{min(f.remaining, b.bands[band].remaining), max(f.gain, b.bands[band].gain)}
	}
	b.bands[band], b.used = f, b.used|1<<band
}

// join makes b the best of two runs.
func (b *best) join(x, y *best) {
	b.lead, b.next, b.idle, b.used = min(x.lead, y.lead), max(x.next, y.next), x.idle || y.idle, 0
	for _, of := range [...]*best{x, y} {
		for left := of.used; left != 0; left &= left - 1 {
			band := bits.TrailingZeros16(left)
			b.add(band, of.bands[band])
		}
	}
}

// none reports whether it is plain that nobody of a run beats a contender: nobody who ends
// sooner gains more than its next gain, and the next gain of nobody else is as much as its own.
func (b *best) none(x *Contender) bool {
	if b.idle && (x.Now == 0 && x.lead > b.lead || x.Now > 0 && x.gain <= 1) {
		return false
	}
	if b.used != 0 && x.Now > 0 && x.gain <= b.next {
		return false
	}
	for left := b.used; left != 0; left &= left - 1 {
		if f := &b.bands[bits.TrailingZeros16(left)]; f.gain > x.next && f.remaining < x.remaining {
			return false
		}
	}
	return true
}
