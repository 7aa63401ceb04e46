package elastic

import (
	"math"

	"github.com/musterdl/muster/allocate/ladder"
	"github.com/musterdl/muster/plan"
)

// market is jobs that want devices at one price.
type market struct {
	jobs  []job
	holds float64 // seconds for which a share is expected to last
	drain float64 // seconds in which all devices could do the work that is there
}

// job is one of them. Rungs are those of its ladder; 0 is nothing.
type job struct {
	*ladder.Ladder
	left    float64 // seconds of reference running time
	restart float64 // seconds that a start takes of its devices
	has     int     // rung that it has
	goes    float64 // how fast it is there, as far as that is known
	ends    float64 // seconds until its end, as it is
	then    float64 // part of the price that is left by then
	worth   float64 // of a second of its work, in seconds of waiting
	gets    int     // rung that it is to have
}

// rate is how much faster than its reference a job is on a rung: where it is, as it is seen to go.
func (j *job) rate(rung int) float64 {
	if rung == j.has && rung > 0 && j.goes > 0 {
		return j.goes
	}
	return j.Micro[rung] / plan.FullRate
}

// share finds the price at which the jobs want no more than there is, and hands out what that
// leaves. Prices are told apart to a five-hundredth.
func (m *market) share(devices int32) {
	m.measureDrain(devices)
	low, high := 1e-6, 1e12
	for high > 1.002*low {
		if price := math.Sqrt(low * high); m.demand(price) > devices {
			low = price
		} else {
			high = price
		}
	}
	m.fill(m.cut(devices - m.demand(high)))
}

// cut takes devices from the jobs that gain least by each as long as there are fewer than those
// have whom no price makes stop, since devices were lost. It returns what is to spare then.
func (m *market) cut(spare int32) int32 {
	for spare < 0 {
		least, who := math.Inf(1), 0
		for i := range m.jobs {
			j := &m.jobs[i]
			if g := (m.gain(j, j.gets) - m.gain(j, 0)) / float64(j.Devices[j.gets]); j.gets > 0 && g < least {
				least, who = g, i
			}
		}
		spare += m.jobs[who].Devices[m.jobs[who].gets]
		m.jobs[who].gets = 0
	}
	return spare
}

// measureDrain says when the jobs would end as they are, those that wait on their fewest devices, and
// how long their work is for all devices together.
func (m *market) measureDrain(devices int32) {
	m.drain = 0
	for i := range m.jobs {
		j := &m.jobs[i]
		if len(j.Count) == 1 {
			continue // it can be nowhere
		}
		rung := max(1, j.has)
		j.ends = j.left / j.rate(rung)
		m.drain += j.ends * float64(j.Devices[rung])
	}
	m.drain = max(1, m.drain/float64(max(1, devices)))
	for i := range m.jobs {
		j := &m.jobs[i]
		j.then = math.Exp(-j.ends / m.drain)
	}
}

// demand is how many devices the jobs want at a price.
func (m *market) demand(price float64) (sum int32) {
	for i := range m.jobs {
		j := &m.jobs[i]
		j.worth = j.cost(price * j.then)
		j.gets = 0
		best := m.gain(j, 0)
		for rung := 1; rung < len(j.Count); rung++ {
			if g := m.gain(j, rung) - price*float64(j.Devices[rung]); g > best {
				best, j.gets = g, rung
			}
		}
		sum += j.Devices[j.gets]
	}
	return sum
}

// cost is what a second of a job's work costs at its best count: the time that passes, and the
// devices at a price.
func (j *job) cost(price float64) float64 {
	least := math.Inf(1)
	for rung := 1; rung < len(j.Count); rung++ {
		least = min(least, (1+price*float64(j.Devices[rung]))/j.rate(rung))
	}
	return least
}

// gain is what a second on a rung gains, in seconds of waiting. A restart takes its part of the
// time for which the rung will be held; one that is stopped has it to come.
func (m *market) gain(j *job, rung int) float64 {
	switch {
	case len(j.Count) == 1:
		return 0
	case rung == j.has:
		return j.worth * j.rate(rung)
	case rung == 0:
		return -j.worth * j.rate(j.has) * j.restart / m.holds
	}
	held := min(m.holds, j.left/j.rate(rung))
	return j.worth * j.rate(rung) * held / (held + j.restart)
}

// fill hands out what nobody wants at the price: again and again to the job that gains most by a
// device of a step that is within it, as long as one gains.
func (m *market) fill(spare int32) {
	for spare > 0 {
		best, who, to := 0., -1, 0
		for i := range m.jobs {
			j := &m.jobs[i]
			for rung := j.gets + 1; rung < len(j.Count) && j.Devices[rung]-j.Devices[j.gets] <= spare; rung++ {
				if g := (m.gain(j, rung) - m.gain(j, j.gets)) / float64(j.Devices[rung]-j.Devices[j.gets]); g > best {
					best, who, to = g, i, rung
				}
			}
		}
		if who < 0 {
			return
		}
		spare -= m.jobs[who].Devices[to] - m.jobs[who].Devices[m.jobs[who].gets]
		m.jobs[who].gets = to
	}
}
