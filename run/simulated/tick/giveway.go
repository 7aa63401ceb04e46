package tick

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// victims returns the runs that make way for a job, where that pays or its order does not weigh it.
func (s *sim) victims(j *job) []*run {
	gone := s.lowest(j)
	if s.Order == SRTF && !s.pays(j, gone) {
		return nil
	}
	return gone
}

// lowest returns the runs that a job has the room of: of those ranked below it the
// lowest, until the job fits. Those whose room is not needed after all go on, the
// best first, unless the job does not fit then; and so do those whose room it does not
// take. It returns nil where all of them would not do.
func (s *sim) lowest(j *job) []*run {
	var below, needed []*run
	size := map[*run]int{}
	left := -int(j.Gang * j.Devices)
	for d, r := range s.holder {
		switch {
		case !s.usable(d, j):
		case r == nil:
			left++
		case s.compare(j, r.job) < 0 && s.mayGo(r, j) && !r.job.stays:
			if size[r]++; size[r] == 1 {
				below = append(below, r)
			}
		}
	}
	slices.SortFunc(below, func(a, b *run) int { return s.compare(b.job, a.job) })
	for n, r := range below {
		left += size[r]
		chosen := below[:n+1]
		if left < 0 || s.fit(j, chosen) == nil {
			continue
		}
		for _, r := range slices.Backward(chosen) {
			if size[r] <= left {
				left -= size[r]
			} else {
				needed = append(needed, r)
			}
		}
		if s.fit(j, needed) == nil {
			needed = chosen
		}
		for stay := false; !stay; {
			takes, had := s.fit(j, needed), len(needed)
			needed = slices.DeleteFunc(needed, func(r *run) bool {
				return !slices.ContainsFunc(takes, func(d int) bool { return s.holder[d] == r })
			})
			stay = len(needed) == had
		}
		return needed
	}
	return nil
}

// pays says whether more jobs are expected to end per second where a job has the room of runs, with those that fill
// what it leaves of that, than where these go on; what their stops cost is made up for while the job runs. Those fill it
// who want the same as the best that waits and fits, the best of them first, and so on.
func (s *sim) pays(j *job, gone []*run) bool {
	slices.SortFunc(gone, func(a, b *run) int { return s.compare(b.job, a.job) })
	gain, loss, left := 1/s.cost(j), 0., -int(j.Gang*j.Devices)
	for _, r := range gone {
		loss += 1 / s.cost(r.job) * (1 + r.price().Seconds()/s.cost(j))
		left += len(r.devices)
	}
	queue := slices.DeleteFunc(slices.Clone(s.jobs), func(x *job) bool { return !x.waiting })
	slices.SortFunc(queue, s.compare)
	best := func(x *job) int { return slices.IndexFunc(queue, func(o *job) bool { return s.alike(x, o) }) }
	fills := slices.Clone(queue)
	slices.SortStableFunc(fills, func(a, b *job) int { return best(a) - best(b) })
	for _, x := range fills {
		if size := int(x.Gang * x.Devices); x != j && size <= left {
			gain, left = gain+1/s.cost(x), left-size
		}
	}
	return gain > loss
}

// cost is the running time that is believed to be left of a job, in seconds, with its load where it does not compute.
func (s *sim) cost(j *job) float64 {
	rank := s.rank(j)
	left := unit.Duration(rank[2])
	if rank[1] > 0 { // nothing is believed
		left = max(unit.Minute, unit.Minute<<rank[2]/unit.Duration(j.Gang*j.Devices))
	}
	if j.run == nil || j.run.status != running {
		left += j.Checkpoint.Load
	}
	return max(1e-6, left.Seconds())
}

// mayGo says whether a run may be displaced for a job. One that cannot save when asked must have
// saved by itself. It must have earned back its start, unless the job came after it had begun.
// Where jobs do not take turns, nobody is displaced for the second time round a circle.
func (s *sim) mayGo(r *run, j *job) bool {
	switch c := r.job.Checkpoint; {
	case r.status != running, !c.OnRequest && (c.Every == 0 || r.ran < c.Every):
		return false
	case s.Order == SRTF && s.took[pair{j, r.job}] && s.circle(r.job, j):
		return false
	}
	return r.ran >= s.earned(r) || j.attempts == 0 && j.Submit > r.began
}

// earned is how long a run computes to earn back its start: for as long as it loads, and as what
// those lost who were displaced for it comes to on its devices. Where jobs do not take turns that
// doubles each time that its job was displaced before.
func (s *sim) earned(r *run) unit.Duration {
	c := r.job.Checkpoint
	devices := unit.Duration(len(r.devices))
	earned := max(s.Tick, c.Load) + (r.cost+devices-1)/devices
	if !c.OnRequest {
		earned = max(earned, c.Every)
	}
	if s.Order == SRTF {
		earned <<= min(r.job.became.Preemptions, 20)
	}
	return earned
}

// circle says whether a job took another's room, or that of one who did, and so on.
func (s *sim) circle(from, to *job) bool {
	reached := []*job{from}
	for i := 0; i < len(reached); i++ {
		for _, j := range s.jobs {
			if s.took[pair{reached[i], j}] && !slices.Contains(reached, j) {
				reached = append(reached, j)
			}
		}
	}
	return slices.Contains(reached, to)
}

// price is the running time that a stop costs: what is done again, and to save and load.
func (r *run) price() unit.Duration {
	c := r.job.Checkpoint
	if c.OnRequest {
		return c.Save + c.Load
	}
	return r.ran%c.Every + c.Load
}
