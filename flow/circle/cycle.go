package circle

import (
	"math"

	"github.com/musterdl/muster/model/unit"
)

// mostSettled bounds the settling of one part of the graph: rotations tried times
// steps. What is larger keeps the shifts of the graph.
const mostSettled = 1 << 24

// turnInCycle looks at a part of the graph that has a cycle, where the shifts that suit the
// other links may be the worst for the one that closes it. It turns the job that gains
// most to where the excess over all links together is least, while that helps.
func (a *Arrangement) turnInCycle(root int32, links []meeting, jobs []Periodic) {
	var members []int32
	var arcs []Arc
	place := make([]int, len(jobs)) // of a member among them
	for j := range jobs {
		if a.Root[j] == root {
			place[j] = len(members)
			members, arcs = append(members, int32(j)), append(arcs, Arc{jobs[j].Compute, jobs[j].Communicate, 1})
		}
	}
	c := roll(1, arcs)
	at, work := make([]int, len(members)), 0
	for i, j := range members {
		at[i] = int(math.Round(float64(a.Shifts[j])/c.step)) % c.turns[i]
		work += c.turns[i] * len(c.sum)
	}
	if work > mostSettled {
		return
	}
	uses := make([][]crossed, len(members)) // by member: its links
	for i := range links {
		m := &links[i]
		if a.Root[m.Jobs[0]] != root {
			continue
		}
		sum := make([]float64, len(c.sum))
		for k, j := range m.Jobs {
			x := crossed{sum, m.rates[k] / m.capacity}
			uses[place[j]] = append(uses[place[j]], x)
			c.put(x, place[j], at[place[j]], 1)
		}
	}
	for range mostSweeps * len(members) {
		// The job that gains most turns first: it is likely to be the one out of place.
		mover, to, gain := -1, 0, slight*float64(len(c.sum))
		for i := 1; i < len(members); i++ { // the root stays
			for _, x := range uses[i] {
				c.put(x, i, at[i], -1)
			}
			now := c.over(uses[i], i, at[i])
			for p := range c.turns[i] {
				if g := now - c.over(uses[i], i, p); g > gain*(1+slight) {
					mover, to, gain = i, p, g
				}
			}
			for _, x := range uses[i] {
				c.put(x, i, at[i], 1)
			}
		}
		if mover < 0 {
			break
		}
		for _, x := range uses[mover] {
			c.put(x, mover, at[mover], -1)
			c.put(x, mover, to, 1)
		}
		at[mover] = to
	}
	for i, j := range members {
		a.Shifts[j] = Within(unit.Duration(math.Round(float64(at[i])*c.step)), jobs[j].Iteration())
	}
}

// crossed is a link as one of its jobs sees it: what all send, as parts of the
// capacity, and what part of it the job takes.
type crossed struct {
	sum  []float64
	part float64
}

// put adds a job's traffic at a rotation to a link, times a sign.
func (c *unified) put(x crossed, job, turn int, sign float64) {
	for i, s := range c.sends[job] {
		x.sum[(i+turn)%len(x.sum)] += sign * x.part * s
	}
}

// over is the excess over its links if a job is at a rotation.
func (c *unified) over(links []crossed, job, turn int) (excess float64) {
	sends := c.sends[job]
	for _, x := range links {
		for i, s := range sends[:len(sends)-turn] {
			excess += max(0, x.sum[turn+i]+x.part*s-1)
		}
		for i, s := range sends[len(sends)-turn:] {
			excess += max(0, x.sum[i]+x.part*s-1)
		}
	}
	return excess
}
