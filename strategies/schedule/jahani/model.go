package jahani

import "math"

// Machine is a kind of machine that can be rented.
type Machine struct {
	Name         string
	PricePerHour float64
	Devices      int
	Most         int // how many there are to be had; 0 is any number
}

// Work is a job as the problem sees it: Seconds[m][g-1] is the running time that is
// left of it on g devices of machine m, 0 where it cannot run there.
type Work struct {
	Seconds [][]float64
	DueSec  float64 // from now; may be over
	Weight  float64 // what a second of lateness costs
}

// Problem is what is decided at once: at most so many machines are rented and cut up
// among jobs until the next decision, which comes after HorizonSec at the latest.
type Problem struct {
	Nodes      int
	Machines   []Machine
	Jobs       []Work
	HorizonSec float64
	Rho        float64 // how much dearer the lateness of postponed jobs is
}

// Choice is where a job runs: on so many devices of a node; without any it is postponed.
type Choice struct{ Node, Devices int }

// Plan is a decision: what every node is rented as (none: not at all) and where every
// job runs.
type Plan struct {
	Rented []int
	Jobs   []Choice
}

const none = -1

// seconds is a job's running time on so many devices of a machine; infinite where it
// cannot run.
func (p *Problem) seconds(job, machine, devices int) float64 {
	if t := p.Jobs[job].Seconds[machine]; devices <= len(t) && t[devices-1] > 0 {
		return t[devices-1]
	}
	return math.Inf(1)
}

// late is what a job costs that ends after so many seconds.
func (p *Problem) late(job int, seconds float64) float64 {
	return p.Jobs[job].Weight * max(0, seconds-p.Jobs[job].DueSec)
}

// postponed is what a job costs that does not run until the next decision: it is feared
// to get the slowest place there is then.
func (p *Problem) postponed(job int) float64 {
	slowest := 0.0
	for _, times := range p.Jobs[job].Seconds {
		for _, t := range times {
			slowest = max(slowest, t)
		}
	}
	return p.Rho * p.late(job, p.HorizonSec+slowest)
}

// rent is what a node costs until its first job ends: then it is decided anew.
func (p *Problem) rent(machine int, jobs []placed) float64 {
	if len(jobs) == 0 {
		return 0
	}
	first := math.Inf(1)
	for _, j := range jobs {
		first = min(first, p.seconds(j.job, machine, j.devices))
	}
	return p.Machines[machine].PricePerHour / 3600 * first
}

// placed is a job on a node.
type placed struct{ job, devices int }

// Cost is what a plan costs; infinite where it is none.
func (p *Problem) Cost(plan Plan) float64 {
	cost := 0.0
	on := make([][]placed, p.Nodes)
	used := make([]int, p.Nodes)
	for job, c := range plan.Jobs {
		if c.Devices == 0 {
			cost += p.postponed(job)
			continue
		}
		m := plan.Rented[c.Node]
		if used[c.Node] += c.Devices; m == none || used[c.Node] > p.Machines[m].Devices {
			return math.Inf(1)
		}
		on[c.Node] = append(on[c.Node], placed{job, c.Devices})
		cost += p.late(job, p.seconds(job, m, c.Devices))
	}
	count := make([]int, len(p.Machines))
	for node, m := range plan.Rented {
		if m == none {
			continue
		}
		if count[m]++; len(on[node]) == 0 || p.Machines[m].Most > 0 && count[m] > p.Machines[m].Most {
			return math.Inf(1) // rented for nothing, or more than there are
		}
		cost += p.rent(m, on[node])
	}
	return cost
}
