package afs

import "math"

// climb divides the devices by one of the rules that AFS is compared with: the next legal
// count goes to the job that the rule puts first, of those whose next count is within
// what is left. The first of equals wins.
func (p *Policy) climb(devices int32) []int32 {
	shares := make([]int32, len(p.ladders))
	for {
		winner, best, to := -1, math.Inf(-1), int32(0)
		for i := range p.ladders {
			next, ok := p.ladders[i].Up(shares[i])
			if !ok || next-shares[i] > devices {
				continue
			}
			if first := p.first(i, shares[i], next); first > best {
				winner, best, to = i, first, next
			}
		}
		if winner < 0 {
			return shares
		}
		devices -= to - shares[winner]
		shares[winner] = to
	}
}

// first is how much a job is to come first with its next count.
func (p *Policy) first(i int, now, next int32) float64 {
	l, left := p.ladders[i], p.claims[i].Left
	switch {
	case p.config.Rule == "shortest":
		return -left / l.Rate(l.Most())
	case now == 0:
		return math.MaxFloat64 // everybody has something before anybody has more
	case p.config.Rule == "gain":
		return (left/l.Rate(now) - left/l.Rate(next)) / float64(next-now)
	}
	return -float64(next)
}
