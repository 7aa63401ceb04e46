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
	at    []int     // by job: its node, or none
	count []int     // by machine: how many are rented
	delay []float64 // by job: what postponing it costs
	table []cell    // of cut
	shape []int     // devices by job, as trace found them
	with  []placed  // who would be on a node
	turn  int       // the node that was tried last
}

// node is a machine that is rented, or not, and who is on it. Cost is its rent and the
// lateness of its jobs.
type node struct {
	machine int
	jobs    []placed
	cost    float64
}

// rounds bounds how often all jobs are looked at again.
const rounds = 10

// Search is the heuristic: jobs in order of pressure go where they cost least, and are
// then moved one at a time as long as that saves anything. Whoever comes to a node makes
// it be cut up anew among all who are there, as the machine that suits them best, and
// may drive others out. It begins with nothing and with the plan there is, which it
// leaves only for a cheaper one: otherwise it would go to and fro between equals. On
// many nodes it begins with the plan alone, if there is one.
func Search(p *Problem, now Plan) Plan {
	if len(now.Rented) == 0 {
		return p.improve(Plan{})
	}
	best := p.improve(now)
	if p.Nodes > mostNodes {
		return best
	}
	if fresh := p.improve(Plan{}); p.Cost(fresh) < p.Cost(best)-little {
		return fresh
	}
	return best
}

// improve moves jobs as long as that saves anything.
func (p *Problem) improve(now Plan) Plan {
	s := &search{Problem: p, nodes: make([]node, p.Nodes), at: make([]int, len(p.Jobs)), count: make([]int, len(p.Machines)), delay: make([]float64, len(p.Jobs))}
	for n := range s.nodes {
		s.nodes[n].machine = none
	}
	for job := range p.Jobs {
		s.at[job], s.delay[job] = none, p.postponed(job)
	}
	on := make([][]placed, len(now.Rented))
	for job, c := range now.Jobs {
		if c.Devices > 0 {
			on[c.Node] = append(on[c.Node], placed{job, c.Devices})
		}
	}
	for n, m := range now.Rented {
		s.adopt(n, node{machine: m, jobs: on[n]}, none)
	}
	order := s.pressed()
	for range rounds {
		better := false
		for _, job := range order {
			better = s.move(job) || better
		}
		if !better {
			break
		}
	}
	plan := Plan{Jobs: make([]Choice, len(p.Jobs))}
	for n, at := range s.nodes {
		plan.Rented = append(plan.Rented, at.machine)
		for _, j := range at.jobs {
			plan.Jobs[j.job] = Choice{n, j.devices}
		}
	}
	return plan
}

// pressed lists the jobs, the one with the least time to spare first.
func (s *search) pressed() []int {
	spare, order := make([]float64, len(s.Jobs)), make([]int, len(s.Jobs))
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

// Of more than mostNodes a job is tried on some at a time, others every time.
const mostNodes, some = 100, 32

// move puts a job on the node where all in all it costs least, or postpones it.
func (s *search) move(job int) bool {
	from := s.at[job]
	left, leaves := s.delay[job], 0.0 // what it costs where it is, and what its node does without it
	if from != none {
		left = s.nodes[from].cost
		_, leaves = s.suit(s.nodes[from].machine, s.but(from, job))
	}
	best, to, least := none, none, s.delay[job]+leaves
	opened := false // all nodes that are not rented are alike
	try := func(n int) {
		at := &s.nodes[n]
		if at.machine == none && opened {
			return
		}
		opened = opened || at.machine == none
		machine, cost := s.suit(at.machine, s.plus(n, job))
		if n != from {
			cost = cost - at.cost + leaves
		}
		if cost < least-little {
			best, to, least = machine, n, cost
		}
	}
	if len(s.nodes) <= mostNodes {
		for n := range s.nodes {
			try(n)
		}
	} else {
		s.sample(from, try)
	}
	if least >= left-little {
		return false
	}
	var as node
	if to != none {
		as = s.divide(best, s.plus(to, job))
	}
	if from != none {
		rest := s.but(from, job)
		machine, _ := s.suit(s.nodes[from].machine, rest)
		s.adopt(from, s.divide(machine, rest), job)
	}
	if to != none {
		at := &s.nodes[to]
		if m := as.machine; m != none && m != at.machine && s.Machines[m].Most > 0 && s.count[m] >= s.Machines[m].Most {
			with := s.plus(to, job) // the node it left took the last one
			machine, _ := s.suit(at.machine, with)
			as = s.divide(machine, with)
		}
		s.adopt(to, as, none)
	}
	return true
}

// sample tries the node where a job is, one that is not rented, and the next of the others.
func (s *search) sample(from int, try func(n int)) {
	if from != none {
		try(from)
	}
	if n := slices.IndexFunc(s.nodes, func(at node) bool { return at.machine == none }); n >= 0 {
		try(n)
	}
	for range some {
		if s.turn = (s.turn + 1) % len(s.nodes); s.turn != from {
			try(s.turn)
		}
	}
}

// but lists the jobs of a node but for one, until the next list.
func (s *search) but(n, job int) []placed {
	s.with = s.with[:0]
	for _, j := range s.nodes[n].jobs {
		if j.job != job {
			s.with = append(s.with, j)
		}
	}
	return s.with
}

// adopt makes a node be as it was found to be best. Those who lost their place are
// postponed; one job is known to leave.
func (s *search) adopt(n int, as node, leaving int) {
	for _, j := range s.nodes[n].jobs {
		s.at[j.job] = none
	}
	if leaving != none {
		s.at[leaving] = none
	}
	if was := s.nodes[n].machine; was != none {
		s.count[was]--
	}
	if as.machine != none {
		s.count[as.machine]++
	}
	as.jobs = slices.DeleteFunc(as.jobs, func(p placed) bool { return p.devices == 0 })
	as.cost = s.rent(as.machine, as.jobs)
	for _, j := range as.jobs {
		s.at[j.job] = n
		as.cost += s.late(j.job, s.seconds(j.job, as.machine, j.devices))
	}
	s.nodes[n] = as
}

// plus lists the jobs of a node and one more, until the next list.
func (s *search) plus(n, job int) []placed {
	s.with = append(s.but(n, job), placed{job: job})
	return s.with
}

// suit finds the machine that suits some jobs best, of those that are to be had in the
// place of what a node was, if it is cut up among them. The cost has that of postponing
// those who get nothing.
func (s *search) suit(was int, jobs []placed) (machine int, cost float64) {
	machine = none
	for _, j := range jobs {
		cost += s.delay[j.job]
	}
	for m := range s.Machines {
		if most := s.Machines[m].Most; most > 0 && m != was && s.count[m] >= most {
			continue
		}
		if c, _ := s.cut(m, jobs); c < cost-little {
			machine, cost = m, c
		}
	}
	return machine, cost
}

// divide cuts a machine up among jobs.
func (s *search) divide(machine int, jobs []placed) node {
	as := node{machine: machine}
	if machine == none {
		return as
	}
	_, end := s.cut(machine, jobs)
	s.trace(len(jobs), 2*(s.Machines[machine].Devices+1), end)
	for i, j := range jobs {
		as.jobs = append(as.jobs, placed{j.job, s.shape[i]})
	}
	return as
}

// cell is the least cost of so many jobs on so many devices, with the one that ends
// first among them or not, and what the last of them got for it.
type cell struct {
	cost    float64
	devices int
	first   bool
}

// cut divides a machine among jobs: some get devices, some are postponed, and one of
// those that run is taken for the one that ends first, whose time is the rent's. (To
// take another than the first for it only costs more.) It returns what that costs and
// where in the table it is.
func (s *search) cut(machine int, jobs []placed) (float64, int) {
	total, price := s.Machines[machine].Devices, s.Machines[machine].PricePerHour/3600
	width := 2 * (total + 1)
	for len(s.table) < (len(jobs)+1)*width {
		s.table = append(s.table, cell{})
	}
	for i := range width {
		s.table[i].cost = math.Inf(1)
	}
	s.table[0].cost = 0
	for i, j := range jobs {
		before, after := s.table[i*width:(i+1)*width], s.table[(i+1)*width:(i+2)*width]
		delay, times := s.delay[j.job], s.Jobs[j.job].Seconds[machine]
		for u := range before {
			after[u] = cell{cost: before[u].cost + delay}
		}
		for g, t := range times[:min(len(times), total)] {
			if g++; t <= 0 {
				continue
			}
			late := s.late(j.job, t)
			for u, b := range before[:2*(total+1-g)] {
				to, cost := u+2*g, b.cost+late
				if cost < after[to].cost {
					after[to] = cell{cost, g, false}
				}
				if u%2 == 0 && cost+price*t < after[to+1].cost {
					after[to+1] = cell{cost + price*t, g, true}
				}
			}
		}
	}
	last := s.table[len(jobs)*width : (len(jobs)+1)*width]
	end := 1
	for u := 1; u < width; u += 2 {
		if last[u].cost < last[end].cost {
			end = u
		}
	}
	return last[end].cost, end
}

// trace reads from the table what every job got.
func (s *search) trace(jobs, width, u int) {
	s.shape = append(s.shape[:0], make([]int, jobs)...)
	if math.IsInf(s.table[jobs*width+u].cost, 1) {
		return
	}
	for i := jobs; i > 0; i-- {
		c := s.table[i*width+u]
		s.shape[i-1] = c.devices
		if u -= 2 * c.devices; c.first {
			u--
		}
	}
}
