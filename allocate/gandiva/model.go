package gandiva

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/unit"
)

// job is one job of the model.
type job struct {
	task
	class         int // in the table of pairs
	submit, needs float64
	done, end     float64 // s
	start         float64 // -1 before
	debt          float64 // s of its next turn that moving or resuming takes
	lateAt        float64 // when it had had its first ten minutes
	was           bool    // active in the step before
}

// What a turn costs the one who resumes, and a move, in seconds (the paper's figures).
const resumeS, moveS, stepS = .1, 2, 5

// model is a cluster of equal nodes in steps of five seconds.
type model struct {
	pairs   [][][2]float64 // by class and class: both rates as parts of the solo rates; 0 does not fit
	p       *planner
	jobs    []*job // not ended and submitted, by id
	waiting []*job
	trials  [][2]*task
	byID    map[int32]*job

	work    float64 // device-seconds of solo work done before the last submission
	bad     int     // slices in which a pair settled below 1
	packed  int     // pairs kept
	trialed int
}

// rate is how fast an active job goes, as a part of its rate by itself.
func (m *model) rate(j *job) float64 {
	if j.partner == nil || !j.partner.active {
		return 1
	}
	return m.pairs[j.class][m.byID[j.partner.id].class][0]
}

func (m *model) sum(pair [2]*task) float64 {
	a, b := m.byID[pair[0].id], m.byID[pair[1].id]
	r := m.pairs[a.class][b.class]
	return r[0] + r[1]
}

// run carries all jobs through.
func (m *model) run(all []*job) {
	last := all[len(all)-1].submit
	step := int64(m.p.config.Quantum.Seconds() / stepS)
	for tick, next := int64(0), 0; next < len(all) || len(m.jobs)+len(m.waiting) > 0; tick++ {
		now := float64(tick) * stepS
		for ; next < len(all) && all[next].submit <= now; next++ {
			m.waiting = append(m.waiting, all[next])
		}
		m.admit()
		if tick%step == 0 {
			m.quantum()
		}
		m.p.fill(false)
		m.advance(now, last)
	}
}

// admit lets jobs in strictly in order, so that nobody passes a gang that waits.
func (m *model) admit() {
	for len(m.waiting) > 0 {
		j := m.waiting[0]
		if !m.p.add(&j.task) {
			return
		}
		m.waiting = m.waiting[1:]
		m.jobs = append(m.jobs, j)
	}
}

// quantum judges what was on trial, moves who waits to idle devices, and gives turns.
func (m *model) quantum() {
	for _, pair := range m.trials {
		if pair[0].partner != pair[1] {
			continue // one has ended
		}
		m.p.judge(pair, unit.Milli(math.Floor(m.sum(pair)*1000)))
	}
	m.trials = m.trials[:0]
	for t := m.p.migrate(); t != nil; t = m.p.migrate() {
		m.byID[t.id].debt += moveS
		t.active = true // for this loop: it has its devices to itself
	}
	m.p.rotate()
	for _, t := range m.p.tasks { // a pair that has had its quantum and is still there
		if o := t.partner; o != nil && t.id < o.id && t.active {
			if m.packed++; m.sum([2]*task{t, o}) < 1 {
				m.bad++
			}
		}
	}
	if m.p.config.Pack {
		m.trials = append(m.trials, m.p.try()...)
		m.trialed += len(m.trials)
	}
}

func (m *model) advance(now, last float64) {
	for _, j := range m.jobs {
		if !j.active {
			j.was = false
			continue
		}
		if j.start < 0 {
			j.start = now
		} else if !j.was {
			j.debt += resumeS
		}
		j.was = true
		paid := min(j.debt, stepS)
		j.debt -= paid
		did := min((stepS-paid)*m.rate(j), j.needs-j.done)
		j.done += did
		if now < last {
			m.work += did * float64(j.gang)
		}
		if j.lateAt < 0 && j.done >= min(600, j.needs) {
			j.lateAt = now + stepS
		}
	}
	m.jobs = slices.DeleteFunc(m.jobs, func(j *job) bool {
		if j.done < j.needs {
			return false
		}
		j.end = now + stepS
		m.p.remove(&j.task)
		return true
	})
}

// draw makes the stream of jobs of S-small: half of them single workers, run times
// log-normal about half an hour between 5 minutes and 8 hours, load times as much work
// as the devices do until the last submission.
func draw(seed uint64, jobs, devices, classes int, load float64) []*job {
	r := rand.New(rand.NewPCG(seed, 3))
	all := make([]*job, jobs)
	total := 0.0
	for i := range all {
		j := &job{start: -1, lateAt: -1, class: r.IntN(classes)}
		u := r.Float64()
		switch j.gang = 1; {
		case u > .9:
			j.gang = 8
		case u > .7:
			j.gang = 4
		case u > .5:
			j.gang = 2
		}
		j.needs = min(max(1800*math.Exp(1.3*r.NormFloat64()), 300), 8*3600)
		total += j.needs * float64(j.gang)
		all[i] = j
	}
	for _, j := range all {
		j.submit = r.Float64() * total / float64(devices) / load
	}
	slices.SortFunc(all, func(a, b *job) int { return cmp.Compare(a.submit, b.submit) })
	for i, j := range all {
		j.id = int32(i)
	}
	return all
}
