package world

import "github.com/musterdl/muster/plan"

// straggle slows the unlucky part of the jobs.
func (w *World) straggle(job plan.JobID, rate float64) float64 {
	if w.config.StragglerPart > 0 && chance(w.config.Seed, uint64(job)) < w.config.StragglerPart {
		return rate / max(1, w.config.StragglerSlowdown)
	}
	return rate
}

// chance returns a number in [0,1) that depends on its arguments alone.
func chance(seed, n uint64) float64 {
	x := seed*0x9e3779b97f4a7c15 + n*0xbf58476d1ce4e5b9 + 0x94d049bb133111eb
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}
