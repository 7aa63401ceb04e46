// Package lease is the mechanism of promises in time slices: time is cut in leases of
// one length, every lease has the same capacity, and a job that was promised to end in
// time holds as many of them as it needs, as late as its deadline allows, so that what
// comes first stays open for those who come later (after Gao et al., Chronus, SoCC
// 2021). Maintenance and serving can hold leases like jobs.
//
// A lease is worth to a job what of it lies ahead and before the job's deadline. The
// published code counts whole leases and leaves the one that runs to others; whoever
// counts the lease that runs as a whole one gives too many back and is late.
//
// Capacity is a count of devices and names none. The places of single gangs on single
// nodes are schedule/calendar's.
package lease

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Ask is what a job wants promised: Need of running time on Size devices before By.
type Ask struct {
	Job  plan.JobID
	Size int64
	Need unit.Duration
	By   unit.Time
}

// Holding is what a job was promised: the numbers of its leases, in ascending order.
// Lease n begins at n times the length of a lease.
type Holding struct {
	Job    plan.JobID
	Size   int64
	By     unit.Time
	Leases []int64
}

// Calendar is the promises. It remembers nothing of leases that are over. Where a
// method takes an instant, that may be one to come: the next at which anything can be
// started; it is never before the last one given to Pass.
type Calendar struct {
	length   unit.Duration
	capacity int64
	first    int64   // the number of used[0]
	used     []int64 // by lease: what is promised of it
	holdings []Holding
}

// furthest is how many leases ahead are looked at; a later deadline is kept by then.
const furthest = 1 << 14

// New returns an empty calendar.
func New(length unit.Duration, capacity int64) *Calendar {
	return &Calendar{length: length, capacity: capacity}
}

// Resize says how much there is in a lease from now on. What was promised stays so,
// even where that is more.
func (c *Calendar) Resize(capacity int64) { c.capacity = capacity }

// Length is that of a lease.
func (c *Calendar) Length() unit.Duration { return c.length }

// Capacity is how much there is in a lease.
func (c *Calendar) Capacity() int64 { return c.capacity }

// At is the number of the lease that an instant lies in.
func (c *Calendar) At(t unit.Time) int64 { return int64(t) / int64(c.length) }

// Begin is the instant at which a lease begins.
func (c *Calendar) Begin(lease int64) unit.Time { return unit.Time(lease * int64(c.length)) }

// Used is what is promised of a lease.
func (c *Calendar) Used(lease int64) int64 {
	if i := lease - c.first; i >= 0 && i < int64(len(c.used)) {
		return c.used[i]
	}
	return 0
}

// Room is what a lease has left.
func (c *Calendar) Room(lease int64) int64 { return c.capacity - c.Used(lease) }

// Promised is what a job's leases are worth to it from now on.
func (c *Calendar) Promised(now unit.Time, h *Holding) (worth unit.Duration) {
	for _, lease := range h.Leases {
		worth += c.Worth(lease, now, h.By)
	}
	return worth
}

// Worth is how much of a lease lies between now and an instant.
func (c *Calendar) Worth(lease int64, now, by unit.Time) unit.Duration {
	return max(0, min(c.Begin(lease+1), by).Sub(max(c.Begin(lease), now)))
}

// Holdings are the promises by job, to be read.
func (c *Calendar) Holdings() []Holding { return c.holdings }

// Find returns a job's holding; nil if nothing was promised it.
func (c *Calendar) Find(job plan.JobID) *Holding {
	if i, ok := c.find(job); ok {
		return &c.holdings[i]
	}
	return nil
}

func (c *Calendar) find(job plan.JobID) (int, bool) {
	return slices.BinarySearchFunc(c.holdings, job, func(h Holding, job plan.JobID) int { return cmp.Compare(h.Job, job) })
}

// Holds reports whether a job holds a lease.
func (h *Holding) Holds(lease int64) bool {
	if h == nil {
		return false
	}
	_, ok := slices.BinarySearch(h.Leases, lease)
	return ok
}

// Pass forgets the leases that are over.
func (c *Calendar) Pass(now unit.Time) {
	current := c.At(now)
	if gone := current - c.first; gone > 0 {
		c.used = slices.Delete(c.used, 0, int(min(gone, int64(len(c.used)))))
		c.first = current
	}
	for i := range c.holdings {
		h := &c.holdings[i]
		over, _ := slices.BinarySearch(h.Leases, current)
		h.Leases = slices.Delete(h.Leases, 0, over)
	}
}

// Drop takes back all that was promised a job.
func (c *Calendar) Drop(job plan.JobID) {
	if i, ok := c.find(job); ok {
		c.keep(&c.holdings[i], 0)
		c.holdings = slices.Delete(c.holdings, i, i+1)
	}
}

// Trim gives back the latest leases of a job that it no longer needs for what is left
// of it: it got on before its leases came, or faster than believed.
func (c *Calendar) Trim(now unit.Time, job plan.JobID, left unit.Duration) {
	i, ok := c.find(job)
	if !ok {
		return
	}
	h, n := &c.holdings[i], 0
	for n < len(h.Leases) && left > 0 {
		left -= c.Worth(h.Leases[n], now, h.By) // of the lease that runs, what remains
		n++
	}
	c.keep(h, n)
}

// keep leaves a job its first n leases.
func (c *Calendar) keep(h *Holding, n int) {
	c.takeAll(h.Leases[n:], -h.Size)
	h.Leases = h.Leases[:n]
}

// takeAll counts devices of leases as promised.
func (c *Calendar) takeAll(leases []int64, size int64) {
	for _, lease := range leases {
		if before := c.first - lease; before > 0 {
			c.used, c.first = slices.Insert(c.used, 0, make([]int64, before)...), lease
		}
		for lease-c.first >= int64(len(c.used)) {
			c.used = append(c.used, 0)
		}
		c.used[lease-c.first] += size
	}
}

// Reserve promises a job what it asks for, beside all promises to others, in the
// latest leases there are. If that cannot be, nothing changes.
func (c *Calendar) Reserve(now unit.Time, a Ask) bool {
	var before Holding
	held := c.Find(a.Job)
	if held != nil {
		before = *held
		before.Leases = slices.Clone(held.Leases)
		c.Drop(a.Job)
	}
	leases, ok := c.latest(now, a, nil)
	if ok {
		c.promise(a, leases)
	} else if held != nil {
		c.promise(Ask{Job: before.Job, Size: before.Size, By: before.By}, before.Leases)
	}
	return ok
}

// latest finds the latest leases that are worth what is asked, besides those that have
// begun and are given.
func (c *Calendar) latest(now unit.Time, a Ask, given []int64) ([]int64, bool) {
	need := a.Need
	for _, lease := range given {
		need -= c.Worth(lease, now, a.By)
	}
	first := c.At(now)
	if len(given) > 0 && given[len(given)-1] == first {
		first++
	}
	leases := make([]int64, 0, len(given)+int(max(0, min(need/c.length, furthest)))+2)
	for lease := min(c.At(a.By-1), first+furthest); lease >= first && need > 0; lease-- {
		if c.Room(lease) >= a.Size {
			leases = append(leases, lease)
			need -= c.Worth(lease, now, a.By)
		}
	}
	if need > 0 {
		return nil, false
	}
	// A deadline that cuts a lease short may have brought in one that is not needed.
	leases = slices.DeleteFunc(leases, func(lease int64) bool {
		worth := c.Worth(lease, now, a.By)
		if need+worth > 0 {
			return false
		}
		need += worth
		return true
	})
	slices.Reverse(leases)
	return slices.Insert(leases, 0, given...), true
}

// promise writes a holding down.
func (c *Calendar) promise(a Ask, leases []int64) {
	c.takeAll(leases, a.Size)
	i, _ := c.find(a.Job)
	c.holdings = slices.Insert(c.holdings, i, Holding{Job: a.Job, Size: a.Size, By: a.By, Leases: leases})
}

// Earliest is the earliest instant before which a job could have what it asks for
// beside all other promises; Never if it needs more than a lease has, or for too long.
func (c *Calendar) Earliest(now unit.Time, a Ask) unit.Time {
	first := c.At(now)
	for lease := first; lease <= first+furthest; lease++ {
		if c.Room(lease) < a.Size {
			continue
		}
		worth := c.Worth(lease, now, unit.Never)
		if a.Need <= worth {
			return max(now, c.Begin(lease)).Add(a.Need)
		}
		a.Need -= worth
	}
	return unit.Never
}

// Begun are a job's leases that have begun by an instant: the one that runs then, and,
// where the instant is yet to come, the one that runs now.
func (c *Calendar) Begun(now unit.Time, job plan.JobID) []int64 {
	h := c.Find(job)
	if h == nil {
		return nil
	}
	n, _ := slices.BinarySearch(h.Leases, c.At(now)+1)
	return h.Leases[:n]
}

// Pack promises anew what all jobs ask for, the widest and then the most pressed
// first; what was promised before is forgotten but for the leases that have begun,
// which nobody loses. If they cannot all be satisfied so, nothing changes.
func (c *Calendar) Pack(now unit.Time, asks []Ask) bool {
	fresh := New(c.length, c.capacity)
	fresh.first, fresh.used = c.first, make([]int64, len(c.used))
	order := slices.Clone(asks)
	slices.SortFunc(order, func(a, b Ask) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.By.Sub(now)-a.Need, b.By.Sub(now)-b.Need),
			cmp.Compare(b.By, a.By), cmp.Compare(a.Job, b.Job))
	})
	for _, a := range order {
		fresh.takeAll(c.Begun(now, a.Job), a.Size)
	}
	for _, a := range order {
		begun := c.Begun(now, a.Job)
		leases, ok := fresh.latest(now, a, begun)
		if !ok {
			return false
		}
		fresh.takeAll(leases[len(begun):], a.Size)
		fresh.holdings = append(fresh.holdings, Holding{Job: a.Job, Size: a.Size, By: a.By, Leases: leases})
	}
	slices.SortFunc(fresh.holdings, func(a, b Holding) int { return cmp.Compare(a.Job, b.Job) })
	*c = *fresh
	return true
}

// Replace promises exactly these holdings, which are in order of job; it is for
// promises that somebody else worked out, or that were remembered.
func (c *Calendar) Replace(holdings []Holding) {
	*c = Calendar{length: c.length, capacity: c.capacity}
	for _, h := range holdings {
		if len(c.used) == 0 && len(h.Leases) > 0 {
			c.first = h.Leases[0]
		}
		c.promise(Ask{Job: h.Job, Size: h.Size, By: h.By}, slices.Clone(h.Leases))
	}
}
