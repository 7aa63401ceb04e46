package forecast

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Kind is what jobs have in common that their running times depend on.
type Kind struct {
	Queue, User, Class string
	Milli              int64 // thousandths of a device in all
	Crowd              int   // doublings of the number of that size submitted shortly before
}

// crowdWithin is what shortly before is, and mostCrowd the most doublings told apart.
const (
	crowdWithin = 10 * unit.Minute
	mostCrowd   = 7
)

// kindOf is the kind of a job that comes in a crowd of so many.
func kindOf(j *workload.Job, crowd int) Kind {
	return Kind{Queue: j.Tenant, User: j.User, Class: j.Class, Milli: int64(j.Workers()), Crowd: min(bits.Len(uint(crowd)), mostCrowd)}
}

// levels is how many groups a job is part of.
const levels = 5

// groups lists what a job is part of, finest first: the same user's work of the same
// class and size, anybody's of that size in a like crowd (of a sweep of a hundred each
// is short: Venus' eights run for four hours alone and for four minutes among
// sixty-four), the queue's of that size, anybody's of that size, anybody's.
func (k Kind) groups() [levels]Kind {
	all := [levels]Kind{{User: k.User, Class: k.Class, Queue: k.Queue, Milli: k.Milli}, {Milli: k.Milli, Crowd: k.Crowd + 1},
		{Queue: k.Queue, Milli: k.Milli}, {Milli: k.Milli}, {}}
	if k.User == "" {
		all[0] = Kind{}
	}
	return all
}

// DurationConfig tunes how running times are believed.
type DurationConfig struct {
	// Least is how many jobs of a group must have run longer than the job at hand has,
	// to their own end, for the group to be believed.
	Least int
	// Keep is how many of the latest jobs of a group count.
	Keep [levels]int
}

// DefaultDurations returns the configuration used where none is given.
func DefaultDurations() DurationConfig {
	return DurationConfig{Least: 10, Keep: [levels]int{50, 2000, 200, 1000, 5000}}
}

// curve is how many jobs of a group run how long: the estimate of Kaplan and Meier
// (1958) from those that are over and those that still run. To leave out the latter
// would be to believe the short ones of a sweep that is under way.
type curve struct {
	ends    []unit.Duration // in order
	survive []float64       // the part that runs longer than each
	beyond  []unit.Duration // how long those have run that outlast all ends
}

// life is how long a job has run, and whether it came to its end.
type life struct {
	ran   unit.Duration
	ended bool
}

func newCurve(lives []life) curve {
	// At equal times ends come first: who still runs was at risk.
	slices.SortFunc(lives, func(a, b life) int {
		if a.ran == b.ran && a.ended != b.ended {
			if a.ended {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.ran, b.ran)
	})
	var c curve
	part := 1.
	for i, l := range lives {
		if l.ended {
			left := float64(len(lives) - i)
			part *= (left - 1) / left
			c.ends, c.survive, c.beyond = append(c.ends, l.ran), append(c.survive, part), nil
		} else {
			c.beyond = append(c.beyond, l.ran)
		}
	}
	return c
}

// after is the number of ends up to a running time.
func (c curve) after(elapsed unit.Duration) int {
	return sort.Search(len(c.ends), func(i int) bool { return c.ends[i] > elapsed })
}

// part is the part that runs longer than elapsed.
func (c curve) part(elapsed unit.Duration) float64 {
	if i := c.after(elapsed); i > 0 {
		return c.survive[i-1]
	}
	return 1
}

// draw is the running time of a job that has run for elapsed, at a level in [0, 1);
// false where it outlasts all whose end was seen.
func (c curve) draw(elapsed unit.Duration, u float64) (unit.Duration, bool) {
	first := c.after(elapsed)
	want := (1 - u) * c.part(elapsed)
	i := first + sort.Search(len(c.ends)-first, func(i int) bool { return c.survive[first+i] < want })
	if i == len(c.ends) {
		return 0, false
	}
	return c.ends[i], true
}

// lasts draws how long a job of a kind runs in all that has run for elapsed, from the
// finest group that is believed; who outlasts it goes on as those of the next that
// ran as long. Where nobody ever ran so long, it runs on for as long again with even
// odds: what is past all experience is near scale-free.
func (m *Moment) lasts(k Kind, elapsed unit.Duration, chance *rand.Rand) unit.Duration {
	for level, g := range k.groups() {
		if level == 0 && k.User == "" {
			continue
		}
		c := m.curve(level, g)
		if len(c.ends)-c.after(elapsed) < m.history.length.Least {
			continue
		}
		if d, ok := c.draw(elapsed, chance.Float64()); ok {
			return d
		}
		// It is one of those that still run, and goes on from where they are.
		elapsed = max(elapsed, c.beyond[chance.IntN(len(c.beyond))])
	}
	u := chance.Float64()
	return elapsed + max(unit.Duration(float64(max(elapsed, grain))*min(u/(1-u), 100)), 1)
}

// beyond is the part of the jobs of a kind that run longer than elapsed.
func (m *Moment) beyond(k Kind, elapsed unit.Duration) float64 {
	for level, g := range k.groups() {
		if level == 0 && k.User == "" {
			continue
		}
		if c := m.curve(level, g); len(c.ends) >= m.history.length.Least {
			return c.part(elapsed)
		}
	}
	return 1
}

// curve is that of the latest jobs of a group, in order of submission, that started.
func (m *Moment) curve(level int, g Kind) curve {
	c, ok := m.curves[g]
	if ok {
		return c
	}
	h := m.history
	ids := h.groups[g]
	var lives []life
	for i := len(ids) - 1; i >= 0 && len(lives) < h.length.Keep[level]; i-- {
		s := &h.seen[ids[i]]
		switch ran := m.ran[int(ids[i])]; {
		case s.over:
			lives = append(lives, life{s.ran, s.natural})
		case ran > 0:
			lives = append(lives, life{ran, false})
		}
	}
	c = newCurve(lives)
	m.curves[g] = c
	return c
}
