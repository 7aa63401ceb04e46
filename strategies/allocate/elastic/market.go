package elastic

import (
	"math"

	"github.com/musterdl/muster/allocate/ladder"
	"github.com/musterdl/muster/mechanism/heap"
	"github.com/musterdl/muster/plan"
)

// market is jobs that want devices at one price.
type market struct {
	jobs  []job
	holds float64 // seconds for which a share is expected to last
	drain float64 // seconds in which all devices could do the work that is there
	rungs []rung  // of all jobs
	next  heap.Heap[step]
}

// job is one of them. Rungs are those of its ladder; 0 is nothing.
type job struct {
	*ladder.Ladder
	left    float64 // seconds of reference running time
	restart float64 // seconds that a start takes of its devices
	has     int     // rung that it has
	goes    float64 // how fast it is there, as far as that is known
	rungs   []rung  // what is known of each before there is a price
	ends    float64 // seconds until its end, as it is
	then    float64 // part of the price that is left by then
	worth   float64 // of a second of its work, in seconds of waiting
	gets    int     // rung that it is to have
}

// rung is a count of devices, how much faster than its reference a job is on them, for how long it would
// hold them, and how long that and a restart take, in seconds.
type rung struct{ devices, rate, held, whole float64 }

// rate is how much faster than its reference a job is on a rung: where it is, as it is seen to go.
func (j *job) rate(rung int) float64 {
	if rung == j.has && rung > 0 && j.goes > 0 {
		return j.goes
	}
	return j.Micro[rung] / plan.FullRate
}

// climb works out what is known of the rungs of all jobs.
func (m *market) climb() {
	m.rungs = m.rungs[:0]
	for i := range m.jobs {
		j := &m.jobs[i]
		for k := range j.Count {
			r := rung{devices: float64(j.Devices[k]), rate: j.rate(k)}
			r.held = min(m.holds, j.left/r.rate)
			r.whole = r.held + j.restart
			m.rungs = append(m.rungs, r)
		}
	}
	at := 0
	for i := range m.jobs { // now that they stay where they are
		n := len(m.jobs[i].Count)
		m.jobs[i].rungs = m.rungs[at : at+n : at+n]
		at += n
	}
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

// cut stops jobs when devices were lost and even the highest price leaves more in use than there are: first the
// job that gains least by each device. It returns how many devices are to spare then.
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
	m.climb()
	m.drain = 0
	for i := range m.jobs {
		j := &m.jobs[i]
		if len(j.Count) == 1 {
			continue // it can be nowhere
		}
		rung := max(1, j.has)
		j.ends = j.left / j.rungs[rung].rate
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
		for k := 1; k < len(j.rungs); k++ {
			if g := m.gain(j, k) - price*j.rungs[k].devices; g > best {
				best, j.gets = g, k
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
	for k := 1; k < len(j.rungs); k++ {
		least = min(least, (1+price*j.rungs[k].devices)/j.rungs[k].rate)
	}
	return least
}

// gain is what a second on a rung gains, in seconds of waiting. A restart takes its part of the
// time for which the rung will be held; one that is stopped has it to come.
func (m *market) gain(j *job, rung int) float64 {
	r := &j.rungs[rung]
	switch {
	case len(j.rungs) == 1:
		return 0
	case rung == j.has:
		return j.worth * r.rate
	case rung == 0:
		return -j.worth * j.rungs[j.has].rate * j.restart / m.holds
	}
	return j.worth * r.rate * r.held / r.whole
}

// fill hands out what nobody wants at the price: again and again to the job that gains most by a
// device of a step that is within it, as long as one gains.
func (m *market) fill(spare int32) {
	m.next = heap.Heap[step]{Items: m.next.Items[:0], Before: before}
	for i := range m.jobs {
		if s := m.step(i, spare); s.gain > 0 {
			m.next.Items = append(m.next.Items, s)
		}
	}
	m.next.Init()
	for len(m.next.Items) > 0 && spare > 0 {
		top := m.next.Items[0]
		next := m.step(top.job, spare)
		if next == top {
			j := &m.jobs[top.job]
			spare -= j.Devices[top.to] - j.Devices[j.gets]
			j.gets = top.to
			next = m.step(top.job, spare)
		} // else there was more to spare when it was looked for
		if next.gain > 0 {
			m.next.Replace(next)
		} else {
			m.next.Pop()
		}
	}
}

// step is what a job would gain most by, a device, within what is to spare.
func (m *market) step(i int, spare int32) (best step) {
	j := &m.jobs[i]
	best.job = i
	for k := j.gets + 1; k < len(j.rungs) && j.Devices[k]-j.Devices[j.gets] <= spare; k++ {
		if g := (m.gain(j, k) - m.gain(j, j.gets)) / float64(j.Devices[k]-j.Devices[j.gets]); g > best.gain {
			best.gain, best.to = g, k
		}
	}
	return best
}

// step is a rung that a job could have next, and what it gains by each device.
type step struct {
	gain    float64
	job, to int
}

// before is the order of steps: who gains most is in front, of equals the first job.
func before(a, b *step) bool { return a.gain > b.gain || a.gain == b.gain && a.job < b.job }
