package gavel

import (
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/mechanism/rank"
	"github.com/musterdl/muster/mechanism/solve"
)

// Measure is what the program says of single divisions: of the paper's example, how far
// the greedy twin stays behind it on 200 jobs, and whether its objective orders the
// divisions of four policies as the completion times do.
func Measure(seed uint64) map[string]float64 {
	return map[string]float64{"example_ratio": must(Divide(example())).Objective, "twin_gap": twinGap(seed), "inner_rank_correlation": innerRank(seed)}
}

// must is for problems that are drawn here: each has a division.
func must(s Shares, err error) Shares {
	if err != nil {
		panic("gavel: " + err.Error())
	}
	return s
}

// example is that of the paper's section 3: three jobs, one device of each of two types.
func example() Problem {
	return Problem{Policy: MaxMin, Rate: [][]float64{{4, 1}, {3, 1}, {2, 1}}, Gang: []float64{1, 1, 1}, Room: []float64{1, 1}}
}

// drawn is jobs of one device on three types of the same number of devices, of which the
// second is up to as fast as the first and the third up to half as fast as the second.
func drawn(chance *rand.Rand, jobs int, devices float64) Problem {
	p := Problem{Room: []float64{devices, devices, devices}}
	for range jobs {
		second := .2 + .8*chance.Float64()
		p.Rate = append(p.Rate, []float64{1, second, second * (.1 + .4*chance.Float64())})
		p.Gang, p.Steps = append(p.Gang, 1), append(p.Steps, 3600*math.Exp(1.5*chance.NormFloat64()))
		p.Done, p.AgeSec = append(p.Done, 0), append(p.AgeSec, 3600*chance.ExpFloat64())
	}
	return p
}

// twinGap is how far the greedy twin's least rate is below the program's, as a part of
// its own.
func twinGap(seed uint64) float64 {
	p := drawn(rand.New(rand.NewPCG(seed, 200)), 200, 36)
	p.Policy = MaxMin
	best := must(Divide(p)).Objective
	return solve.Gap(must(Greedy(p)).Objective, best)
}

// innerRank compares, among four policies on the same jobs, the least normalised rate,
// which max-min makes large, with the mean time to the end if the division stays. It is
// the mean over a few sets of jobs.
func innerRank(seed uint64) float64 {
	const sets = 20
	chance, sum := rand.New(rand.NewPCG(seed, 3)), 0.0
	for range sets {
		p := drawn(chance, 20, 2)
		var scores, goals []float64
		for _, p.Policy = range []string{Agnostic, MaxMin, Makespan, FinishTimeFairest} {
			least, goal := math.Inf(1), 0.0
			for j, x := range must(Divide(p)).X {
				rate, norm := 0.0, 0.0
				for k := range x {
					rate, norm = rate+p.Rate[j][k]*x[k], norm+p.normalised()[j][k]*x[k]
				}
				least, goal = min(least, norm), goal-p.Steps[j]/rate
			}
			scores, goals = append(scores, least), append(goals, goal)
		}
		sum += rank.Correlation(scores, goals) / sets
	}
	return sum
}
