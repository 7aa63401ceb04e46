package forecast

import (
	"math/rand/v2"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// History is the jobs seen so far, in order of submission, and what they tell of
// those to come.
type History struct {
	arrivals ArrivalConfig
	length   DurationConfig
	seen     []seen
	groups   map[Kind][]int32 // the jobs of each group, in order
	twins    twins
	kin      kin
}

type seen struct {
	job     workload.Job
	kind    Kind
	before  [relations]int // the jobs like it before it, -1 for none
	after   [relations]int
	ran     unit.Duration // in all, once it is over
	over    bool
	natural bool // it came to its own end
}

// NewHistory returns a history without jobs.
func NewHistory(a ArrivalConfig, d DurationConfig) *History {
	return &History{arrivals: a, length: d, groups: map[Kind][]int32{}, kin: newKin()}
}

// Submitted takes in the next job; jobs are numbered from 0 in the order they come.
func (h *History) Submitted(job *workload.Job) {
	id := len(h.seen)
	kind := kindOf(job, h.crowd(job))
	h.seen = append(h.seen, seen{job: *job, kind: kind, before: h.kin.before(job, id), after: [relations]int{-1, -1}})
	for r, before := range h.seen[id].before {
		if before >= 0 {
			h.seen[before].after[r] = id
		}
	}
	for level, g := range kind.groups() {
		if level == 0 && kind.User == "" {
			continue
		}
		h.groups[g] = append(h.groups[g], int32(id))
	}
}

// crowd is the number of jobs of a size that were submitted shortly before.
func (h *History) crowd(job *workload.Job) int {
	same := h.groups[Kind{Milli: int64(job.Workers())}]
	n := 0
	for n < 1<<mostCrowd && n < len(same) && h.seen[same[len(same)-1-n]].job.Submit.Add(crowdWithin) >= job.Submit {
		n++
	}
	return n
}

// Finished takes in how long a job ran that came to its own end.
func (h *History) Finished(id int, ran unit.Duration) {
	s := &h.seen[id]
	s.ran, s.over, s.natural = ran, true, true
	for r := range relations {
		h.pair(r, s.before[r], id)
		h.pair(r, id, s.after[r])
	}
}

// pair takes in two jobs as twins, once both have come to their ends.
func (h *History) pair(relation, a, b int) {
	if a >= 0 && b >= 0 && h.seen[a].natural && h.seen[b].natural {
		h.twins.learn(relation, h.seen[b].job.Submit.Sub(h.seen[a].job.Submit), h.seen[a].ran, h.seen[b].ran)
	}
}

// Withdrawn takes in that a job ended by another's hand after running for so long: it
// would have run longer.
func (h *History) Withdrawn(id int, ran unit.Duration) { h.seen[id].ran, h.seen[id].over = ran, true }

// Live is a job that is not over, and how long it has run.
type Live struct {
	ID  int
	Ran unit.Duration
}

// Moment is what a history tells at an instant: futures are drawn from it.
type Moment struct {
	history *History
	now     unit.Time
	live    []Live
	ran     map[int]unit.Duration
	curves  map[Kind]curve
}

// Moment is a history's at an instant. live are the jobs that are not over, in order
// of their numbers. It holds until the history takes in more.
func (h *History) Moment(now unit.Time, live []Live) *Moment {
	m := &Moment{history: h, now: now, live: live, ran: make(map[int]unit.Duration, len(live)), curves: map[Kind]curve{}}
	for _, l := range live {
		m.ran[l.ID] = l.Ran
	}
	return m
}

// Future draws what happens until an instant.
func (m *Moment) Future(until unit.Time, seed uint64) *Future {
	f := &Future{history: m.history, chance: rand.New(rand.NewPCG(seed, 0xa221)), now: m.now, until: until, to: m.now}
	f.lives = m.lives(rand.New(rand.NewPCG(seed, 0x11fe)))
	return f
}

// lives draws how long each live job runs in all.
func (m *Moment) lives(chance *rand.Rand) map[int]unit.Duration {
	drawn := make(map[int]unit.Duration, len(m.live))
	for _, l := range m.live {
		drawn[l.ID] = m.life(l, drawn, chance)
	}
	return drawn
}

// life draws how long a job runs in all. It may be the twin of the one before it,
// known or drawn, by the odds of such pairs given that it has run so long already.
func (m *Moment) life(l Live, drawn map[int]unit.Duration, chance *rand.Rand) unit.Duration {
	h := m.history
	s := &h.seen[l.ID]
	odds, length := 0., unit.Duration(0)
	for r, id := range s.before {
		if id < 0 {
			continue
		}
		b := &h.seen[id]
		twin, known := drawn[id]
		if b.natural {
			twin, known = b.ran, true
		}
		if p := h.twins.chance(r, s.job.Submit.Sub(b.job.Submit)); known && p > odds {
			odds, length = p, twin
		}
	}
	// How far apart twins are is spread over what counts as alike.
	u, v := chance.Float64(), chance.Float64()
	length = unscale(scale(length) + alikeWithin*(v-0.5))
	if odds > 0 && length > l.Ran && u < odds/(odds+(1-odds)*m.beyond(s.kind, l.Ran)) {
		return length
	}
	return m.lasts(s.kind, l.Ran, chance)
}
