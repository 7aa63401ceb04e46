package antman

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/control"
	"github.com/musterdl/muster/unit"
)

// work is one job of the model: guaranteed gangs and opportunistic single workers.
type work struct {
	opportunistic bool
	gang          int
	demand        unit.Milli // of a device's time
	memory        unit.MiB   // per device
	submit, needs float64    // s

	devices          []int
	done, start, end float64 // s; start -1 is never
	asGuest, hosted  float64 // s that it ran as a guest, and what it did meanwhile
}

// shop is a cluster of equal devices without structure: what the model asks is what
// sharing does, not where gangs lie.
type shop struct {
	config  Config
	law     string
	share   bool // else everybody waits for a device of its own
	memory  unit.MiB
	jobs    []*work
	holder  []*work // by device: guaranteed
	guest   []*work // by device: opportunistic
	now     float64
	waiting []*work
}

// run carries all jobs through and leaves in them what happened.
func (s *shop) run(jobs []*work) {
	next := 0
	for next < len(jobs) || len(s.waiting) > 0 || len(s.jobs) > 0 {
		until := math.Inf(1)
		if next < len(jobs) {
			until = jobs[next].submit
		}
		for _, w := range s.jobs {
			until = min(until, s.now+(w.needs-w.done)/s.rate(w))
		}
		s.advance(until)
		for ; next < len(jobs) && jobs[next].submit <= s.now; next++ {
			s.waiting = append(s.waiting, jobs[next])
		}
		s.place()
	}
}

// rate is how fast a job goes, as a part of its rate by itself: a gang as fast as its
// slowest worker.
func (s *shop) rate(w *work) float64 {
	least := 1.0
	for _, d := range w.devices {
		if s.holder[d] == nil || s.guest[d] == nil {
			continue
		}
		p, o := control.Steady(s.law, s.holder[d].demand, s.guest[d].demand)
		if w.opportunistic {
			p = o
		}
		least = min(least, p)
	}
	return max(least, 1e-6)
}

func (s *shop) advance(until float64) {
	rates := make([]float64, len(s.jobs))
	for i, w := range s.jobs {
		rates[i] = s.rate(w)
	}
	span := until - s.now
	for i, w := range s.jobs {
		w.done += rates[i] * span
		if w.opportunistic && s.holder[w.devices[0]] != nil {
			w.asGuest, w.hosted = w.asGuest+span, w.hosted+rates[i]*span
		}
	}
	s.now = until
	s.jobs = slices.DeleteFunc(s.jobs, func(w *work) bool {
		if w.done < w.needs-1e-6 {
			return false
		}
		w.end = s.now
		s.leave(w)
		return true
	})
}

func (s *shop) leave(w *work) {
	for _, d := range w.devices {
		if w.opportunistic {
			s.guest[d] = nil
		} else {
			s.holder[d] = nil
		}
	}
	w.devices = nil
}

// place starts guaranteed gangs in order of submission, then opportunistic jobs.
func (s *shop) place() {
	blocked := false
	s.waiting = slices.DeleteFunc(s.waiting, func(w *work) bool {
		if w.opportunistic || blocked {
			return false
		}
		blocked = !s.admit(w)
		return !blocked
	})
	s.waiting = slices.DeleteFunc(s.waiting, func(w *work) bool {
		if !w.opportunistic {
			return false
		}
		d := s.host(w)
		if d >= 0 {
			s.guest[d] = w
			s.begin(w, []int{d})
		}
		return d >= 0
	})
}

func (s *shop) begin(w *work, devices []int) {
	w.devices, s.jobs = devices, append(s.jobs, w)
	if w.start < 0 {
		w.start = s.now
	}
}

// admit gives a guaranteed gang devices that no other one has, those without a guest
// first; guests that it leaves no room go back to the queue with what they have done.
func (s *shop) admit(w *work) bool {
	var free []int
	for d := range s.holder {
		if s.holder[d] == nil && (s.share || s.guest[d] == nil) {
			free = append(free, d)
		}
	}
	if len(free) < w.gang {
		return false
	}
	taken := func(d int) int {
		if s.guest[d] != nil {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(free, func(a, b int) int { return cmp.Compare(taken(a), taken(b)) })
	for _, d := range free[:w.gang] {
		s.holder[d] = w
		if g := s.guest[d]; g != nil && !s.config.eligible(s.load(d), g.memory) {
			s.leave(g)
			s.jobs = slices.DeleteFunc(s.jobs, func(o *work) bool { return o == g })
			s.waiting = append(s.waiting, g) // behind those who wait already
		}
	}
	s.begin(w, slices.Clone(free[:w.gang]))
	return true
}

// load is how full a device is of guaranteed work.
func (s *shop) load(d int) load {
	if s.holder[d] == nil {
		return load{free: s.memory}
	}
	return load{used: s.holder[d].demand, free: s.memory - s.holder[d].memory}
}

// host is the device for an opportunistic job, -1 for none.
func (s *shop) host(w *work) int {
	best := -1
	for d := range s.guest {
		if s.guest[d] != nil || s.holder[d] != nil && !s.share || !s.config.eligible(s.load(d), w.memory) {
			continue
		}
		if best < 0 || s.load(d).used < s.load(best).used {
			best = d
		}
	}
	return best
}

// draw makes a stream of jobs, every other one opportunistic: gangs mostly of one,
// run times log-normal about 20 minutes, demands of 30 to 95 % of a device's time.
func draw(seed uint64, x setting, memory unit.MiB) []*work {
	r := rand.New(rand.NewPCG(seed, 1))
	all := make([]*work, x.jobs)
	total := 0.0
	for i := range all {
		w := &work{opportunistic: i%2 == 1, gang: 1, start: -1}
		if u := r.Float64(); !w.opportunistic && u > .7 {
			w.gang = 2
			if u > .85 {
				w.gang = 4
			}
			if u > .95 {
				w.gang = 8
			}
		}
		w.needs = math.Exp(math.Log(1200) + r.NormFloat64())
		w.demand = unit.Milli(300 + r.IntN(650))
		w.memory = memory * unit.MiB(10+r.IntN(50)) / 100
		total += w.needs * float64(w.gang)
		all[i] = w
	}
	for _, w := range all {
		w.submit = r.Float64() * total / float64(x.devices) / x.load
	}
	slices.SortFunc(all, func(a, b *work) int { return cmp.Compare(a.submit, b.submit) })
	return all
}
