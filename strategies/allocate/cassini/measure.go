package cassini

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/flow/circle"
	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/mechanism/rank"
	"github.com/musterdl/muster/model/unit"
)

// Measure is what no engine decides of the claims: scores of jobs on one link, iterations
// with noise, and those of eight jobs on twelve nodes, under CASSINI and with shifts by
// chance.
func Measure(seed uint64) map[string]float64 {
	figures := map[string]float64{}
	var arranger circle.Arranger
	for _, jobs := range [][][2]int64{
		{{60, 40}, {60, 40}}, {{50, 50}, {50, 50}}, {{30, 70}, {30, 70}}, {{60, 40}, {120, 80}}, {{70, 30}, {70, 30}, {70, 30}},
	} {
		var all []circle.Periodic
		name := ""
		for _, j := range jobs {
			all = append(all, iteration(j, maxmin.Use{Per: 1}))
			name += fmt.Sprintf("_%d_%d", j[0], j[1])
		}
		a := arranger.Arrange(all, []float64{1})
		score, _ := a.Score(0)
		figures["score"+name] = score
	}
	two := []circle.Periodic{iteration([2]int64{60, 40}, maxmin.Use{Per: 1}), iteration([2]int64{60, 40}, maxmin.Use{Per: 1})}
	const draws = 100
	for i := range uint64(draws) {
		figures["noisy_ms_60_40_60_40"] += meanMS(two, circle.Noisy(two, []float64{1}, nil, .02, 100, draws*seed+i)) / draws
	}
	leafSpine(seed, figures)
	return figures
}

func iteration(ms [2]int64, uses ...maxmin.Use) circle.Periodic {
	return circle.Periodic{Compute: unit.Duration(ms[0]) * unit.Millisecond, Communicate: unit.Duration(ms[1]) * unit.Millisecond, Uses: uses}
}

// meanMS is the mean iteration time of the jobs.
func meanMS(jobs []circle.Periodic, slowdowns []float64) float64 {
	sum := 0.0
	for j, s := range slowdowns {
		sum += s * jobs[j].Iteration().Seconds() * 1000
	}
	return sum / float64(len(jobs))
}

const (
	racks       = 4
	rackNodes   = 3
	nodeWorkers = 2
	gang        = 2
	candidates  = 8
	randomTries = 20
)

// leafSpine places eight jobs of two workers one after another on twelve nodes of two
// devices in four racks, whose uplinks carry half of what their nodes' do: at a place
// drawn by chance, or at the one that CASSINI takes of several. A node's uplink carries
// one worker at full speed. The iterations are the kinds of the cases on one link.
func leafSpine(seed uint64, figures map[string]float64) {
	dice := rand.New(rand.NewPCG(seed, 0))
	capacities := slices.Repeat([]float64{1}, racks*rackNodes)
	for range racks {
		capacities = append(capacities, rackNodes/2.)
	}
	kinds := [][2]int64{{60, 40}, {50, 50}, {30, 70}, {120, 80}, {70, 30}, {60, 40}, {50, 50}, {70, 30}}
	dice.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	var arranger circle.Arranger
	place := func(k int) []circle.Periodic {
		free := slices.Repeat([]int{nodeWorkers}, racks*rackNodes)
		var jobs []circle.Periodic
		for _, kind := range kinds {
			var at [][]int
			var places [][]maxmin.Use
			for range k {
				nodes := draw(dice, free)
				at, places = append(at, nodes), append(places, links(nodes))
			}
			job := iteration(kind)
			best := choose(&arranger, jobs, job, places, capacities)
			for _, n := range at[best] {
				free[n]--
			}
			job.Uses = places[best]
			jobs = append(jobs, job)
		}
		return jobs
	}
	byChance := func(jobs []circle.Periodic) float64 {
		sum, shifts := 0.0, make([]unit.Duration, len(jobs))
		for range randomTries {
			for j := range jobs {
				shifts[j] = unit.Duration(dice.Int64N(int64(jobs[j].Iteration())))
			}
			sum += meanMS(jobs, circle.Steady(jobs, capacities, shifts)) / randomTries
		}
		return sum
	}
	var scores, goals []float64
	for range randomTries {
		jobs := place(1)
		a := arranger.Arrange(jobs, capacities)
		mean := 0.0
		for _, m := range a.Meetings {
			mean += m.Score / float64(len(a.Meetings))
		}
		scores, goals = append(scores, mean), append(goals, -meanMS(jobs, circle.Steady(jobs, capacities, a.Shifts)))
	}
	figures["inner_rank_correlation"] = rank.Correlation(scores, goals)
	first, chosen := place(1), place(candidates)
	a, b := arranger.Arrange(first, capacities), arranger.Arrange(chosen, capacities)
	alone := make([]float64, len(kinds))
	for j := range alone {
		alone[j] = 1
	}
	figures["leaf_spine_ms_alone"] = meanMS(chosen, alone)
	figures["leaf_spine_ms_host_random"] = byChance(first)
	figures["leaf_spine_ms_host_shifted"] = meanMS(first, circle.Steady(first, capacities, a.Shifts))
	figures["leaf_spine_ms_cassini_random"] = byChance(chosen)
	figures["leaf_spine_ms_cassini_shifted"] = meanMS(chosen, circle.Steady(chosen, capacities, b.Shifts))
}

// draw takes free workers by chance and returns their nodes in order.
func draw(dice *rand.Rand, free []int) (nodes []int) {
	var slots []int
	for n, f := range free {
		slots = append(slots, slices.Repeat([]int{n}, f)...)
	}
	for i := range gang {
		j := i + dice.IntN(len(slots)-i)
		slots[i], slots[j] = slots[j], slots[i]
	}
	nodes = slots[:gang]
	slices.Sort(nodes)
	return nodes
}

// links is what a worker per entry takes at full speed.
func links(nodes []int) (uses []maxmin.Use) {
	add := func(link int32) {
		if at := slices.IndexFunc(uses, func(u maxmin.Use) bool { return u.Link == link }); at >= 0 {
			uses[at].Per++
			return
		}
		uses = append(uses, maxmin.Use{Link: link, Per: 1})
	}
	if nodes[0] == nodes[len(nodes)-1] {
		return nil
	}
	for _, n := range nodes {
		add(int32(n))
	}
	if nodes[0]/rackNodes != nodes[len(nodes)-1]/rackNodes {
		for _, n := range nodes {
			add(int32(racks*rackNodes + n/rackNodes))
		}
	}
	return uses
}
