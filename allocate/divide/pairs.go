package divide

import "slices"

// Pairs divides units by the rule of AFS: each unit goes to the winner of a knock-out
// in the order of the jobs, in which one more unit for the job that would end sooner,
// and then for the other, is weighed against one more for the other from now on. A job
// that gains nothing by one more takes no part. The shares hold until it is asked again.
func (k *Knockout) Pairs(jobs []Claimant, units int32, rate Rate) []int32 {
	n := len(jobs)
	k.shares, k.first = append(k.shares[:0], make([]int32, n)...), slices.Grow(k.first[:0], n)[:n]
	shares := k.shares
	step := func(j int) Step {
		s := Side{Left: jobs[j].Left, First: rate(j, 1), Now: rate(j, shares[j])}
		if s.More = s.Now; shares[j] < jobs[j].Most {
			s.More = rate(j, shares[j]+1)
		}
		return Step{NewContender(s), 1}
	}
	k.Play(k.first, begin(k.first, shares, units, step), func(j int) Step {
		shares[j]++
		return step(j)
	})
	return shares
}

// begin gives everybody a first unit if there are so many, and returns how many are left: who has none goes before who has,
// unless that one would gain more by another than it has.
func begin(steps []Step, shares []int32, units int32, step func(j int) Step) int32 {
	able := int32(0)
	for j := range steps {
		if steps[j] = step(j); steps[j].gains() {
			able++
		}
	}
	if able > units {
		return units
	}
	keen := false
	for j := range steps {
		if steps[j].gains() {
			shares[j]++
			steps[j] = step(j)
			keen = keen || steps[j].keen()
		}
	}
	if !keen {
		return units - able
	}
	clear(shares)
	for j := range steps {
		steps[j] = step(j)
	}
	return units
}
