package jahani

import (
	"cmp"
	"math"
	"slices"
)

// search is a plan that is being improved.
type search struct {
	*Problem
	nodes []node
	jobs  []Choice
	delay []float64 // by job: what postponing it costs
}

// node is a machine that may be rented, and who is on it.
type node struct {
	machine, used int
	jobs          []placed
	rent          float64
}

// Search is the heuristic: jobs in order of pressure go where they cost least, and then
// one or two at a time are moved, exchanged or given another machine as long as that
// saves anything.
func Search(p *Problem) Plan {
	s := &search{Problem: p, nodes: make([]node, p.Nodes), jobs: make([]Choice, len(p.Jobs)), delay: make([]float64, len(p.Jobs))}
	for n := range s.nodes {
		s.nodes[n].machine = none
	}
	for job := range p.Jobs {
		s.delay[job] = p.postponed(job)
	}
	order := s.pressed()
	for _, job := range order {
		s.move(job)
	}
	// A round costs the square of the jobs: the largest problems get few.
	for range 20 {
		better := false
		for _, job := range order {
			better = s.move(job) || better
		}
		for n := range s.nodes {
			better = s.change(n) || better
		}
		better = s.exchange() || better
		if !better {
			break
		}
	}
	plan := Plan{Jobs: s.jobs}
	for _, n := range s.nodes {
		plan.Rented = append(plan.Rented, n.machine)
	}
	return plan
}

// pressed lists the jobs, the one with the least time to spare first.
func (s *search) pressed() []int {
	spare := make([]float64, len(s.Jobs))
	order := make([]int, len(s.Jobs))
	for job := range order {
		order[job] = job
		fastest := math.Inf(1)
		for m := range s.Machines {
			for g := 1; g <= s.Machines[m].Devices; g++ {
				fastest = min(fastest, s.seconds(job, m, g))
			}
		}
		spare[job] = s.Jobs[job].DueSec - fastest
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(spare[a], spare[b]), cmp.Compare(a, b)) })
	return order
}

// little is what is not worth a change: costs are sums of floats.
const little = 1e-9

// move puts a job where it costs least, or postpones it.
func (s *search) move(job int) bool {
	was, before := s.jobs[job], s.costOf(job)
	machine := none
	if was.Devices > 0 {
		machine = s.nodes[was.Node].machine
	}
	removed := s.remove(job)
	best, bestMachine, least := Choice{}, none, s.delay[job]
	opened := false // all nodes that are not rented are alike
	for n := range s.nodes {
		at := &s.nodes[n]
		if at.machine != none {
			s.tryOn(job, n, at.machine, &best, &bestMachine, &least)
		} else if !opened {
			opened = true
			for m := range s.Machines {
				s.tryOn(job, n, m, &best, &bestMachine, &least)
			}
		}
	}
	if least >= before+removed-little {
		best, bestMachine = was, machine
	}
	s.put(job, best, bestMachine)
	return best != was || bestMachine != machine
}

// tryOn finds the number of devices of a node on which a job costs least.
func (s *search) tryOn(job, n, machine int, best *Choice, bestMachine *int, least *float64) {
	at := &s.nodes[n]
	for g := 1; g <= s.Machines[machine].Devices-at.used; g++ {
		t := s.seconds(job, machine, g)
		if math.IsInf(t, 1) {
			continue
		}
		rent := s.Machines[machine].PricePerHour / 3600 * t
		if len(at.jobs) > 0 {
			rent = min(rent, at.rent)
		}
		if cost := rent - at.rent + s.late(job, t); cost < *least-little {
			*best, *bestMachine, *least = Choice{n, g}, machine, cost
		}
	}
}

// costOf is a job's lateness as it is placed now.
func (s *search) costOf(job int) float64 {
	c := s.jobs[job]
	if c.Devices == 0 {
		return s.delay[job]
	}
	return s.late(job, s.seconds(job, s.nodes[c.Node].machine, c.Devices))
}

// remove takes a job from its node, and returns how much rent that saves.
func (s *search) remove(job int) float64 {
	c := s.jobs[job]
	if c.Devices == 0 {
		return 0
	}
	s.jobs[job] = Choice{}
	at := &s.nodes[c.Node]
	at.jobs = slices.DeleteFunc(at.jobs, func(p placed) bool { return p.job == job })
	at.used -= c.Devices
	before := at.rent
	if at.rent = s.rent(at.machine, at.jobs); len(at.jobs) == 0 {
		at.machine = none
	}
	return before - at.rent
}

// put places a job that is nowhere.
func (s *search) put(job int, c Choice, machine int) {
	if s.jobs[job] = c; c.Devices == 0 {
		return
	}
	at := &s.nodes[c.Node]
	at.machine = machine
	at.used += c.Devices
	at.jobs = append(at.jobs, placed{job, c.Devices})
	at.rent = s.rent(machine, at.jobs)
}

// change rents a node as the machine on which its jobs cost least as they are.
func (s *search) change(n int) bool {
	at := &s.nodes[n]
	if at.machine == none {
		return false
	}
	cost := func(machine int) float64 {
		sum := s.rent(machine, at.jobs)
		for _, j := range at.jobs {
			sum += s.late(j.job, s.seconds(j.job, machine, j.devices))
		}
		return sum
	}
	best, least := at.machine, cost(at.machine)
	for m := range s.Machines {
		if s.Machines[m].Devices < at.used {
			continue
		}
		if c := cost(m); c < least-little {
			best, least = m, c
		}
	}
	changed := best != at.machine
	at.machine, at.rent = best, s.rent(best, at.jobs)
	return changed
}

// exchange lets two jobs change places where that saves anything; one of them may be
// postponed.
func (s *search) exchange() (better bool) {
	for a := range s.jobs {
		for b := a + 1; b < len(s.jobs); b++ {
			ca, cb := s.jobs[a], s.jobs[b]
			if ca.Devices == 0 && cb.Devices == 0 || ca.Node == cb.Node && ca.Devices > 0 && cb.Devices > 0 && ca.Devices == cb.Devices {
				continue
			}
			if before := s.both(a, b); s.swapped(a, b) < before-little {
				s.swap(a, b)
				better = true
			}
		}
	}
	return better
}

// both is what two jobs and their nodes cost.
func (s *search) both(a, b int) float64 {
	cost := s.costOf(a) + s.costOf(b)
	ca, cb := s.jobs[a], s.jobs[b]
	if ca.Devices > 0 {
		cost += s.nodes[ca.Node].rent
	}
	if cb.Devices > 0 && (ca.Devices == 0 || cb.Node != ca.Node) {
		cost += s.nodes[cb.Node].rent
	}
	return cost
}

// swapped is what both would cost in each other's place.
func (s *search) swapped(a, b int) float64 {
	s.swap(a, b)
	cost := s.both(a, b)
	s.swap(a, b)
	return cost
}

func (s *search) swap(a, b int) {
	s.jobs[a], s.jobs[b] = s.jobs[b], s.jobs[a]
	for _, job := range []int{a, b} {
		c := s.jobs[job]
		if c.Devices == 0 {
			continue
		}
		at := &s.nodes[c.Node]
		i := slices.IndexFunc(at.jobs, func(p placed) bool { return (p.job == a || p.job == b) && p.devices == c.Devices })
		at.jobs[i].job = job
		at.rent = s.rent(at.machine, at.jobs)
	}
}
