package lease_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/schedule/chronus/lease"
)

const minute = unit.Time(unit.Minute)

// TestReserve asks for leases of 20 minutes on 4 devices.
func TestReserve(t *testing.T) {
	c := lease.New(20*unit.Minute, 4)
	for _, s := range []struct {
		name     string
		now      unit.Time
		ask      lease.Ask
		want     []int64   // none: refused
		earliest unit.Time // then
	}{
		{"as late as it can", 0, lease.Ask{Job: 0, Size: 3, Need: 40 * unit.Minute, By: 120 * minute}, []int64{4, 5}, 0},
		{"one beside it", 0, lease.Ask{Job: 1, Size: 1, Need: 20 * unit.Minute, By: 120 * minute}, []int64{5}, 0},
		{"two have no room beside it", 0, lease.Ask{Job: 2, Size: 2, Need: 40 * unit.Minute, By: 120 * minute}, []int64{2, 3}, 0},
		{"part of the lease that runs and of the last", 5 * minute, lease.Ask{Job: 3, Size: 4, Need: 25 * unit.Minute, By: 35 * minute}, []int64{0, 1}, 0},
		{"no time left", 5 * minute, lease.Ask{Job: 4, Size: 1, Need: 25 * unit.Minute, By: 40 * minute}, nil, 65 * minute},
		{"never", 5 * minute, lease.Ask{Job: 5, Size: 5, Need: 1, By: 400 * minute}, nil, unit.Never},
		{"a minute of the last lease is not taken for nothing", 0, lease.Ask{Job: 6, Size: 4, Need: 20 * unit.Minute, By: 141 * minute}, []int64{6}, 0},
	} {
		ok := c.Reserve(s.now, s.ask)
		switch got := c.Find(s.ask.Job); {
		case ok != (s.want != nil):
			t.Fatalf("%s: promised %t", s.name, ok)
		case ok && !slices.Equal(got.Leases, s.want):
			t.Errorf("%s: leases %v, want %v", s.name, got.Leases, s.want)
		case !ok && c.Earliest(s.now, s.ask) != s.earliest:
			t.Errorf("%s: could end at %v, want %v", s.name, unit.Duration(c.Earliest(s.now, s.ask)), unit.Duration(s.earliest))
		}
	}
}

// TestTrimCountsTheRemainder: 15 minutes into a lease of 20, with 25 minutes left of
// the job, the next lease is still needed and the one after it is too.
func TestTrimCountsTheRemainder(t *testing.T) {
	c := lease.New(20*unit.Minute, 1)
	if !c.Reserve(0, lease.Ask{Size: 1, Need: 80 * unit.Minute, By: 80 * minute}) {
		t.Fatal("refused")
	}
	c.Trim(15*minute, 0, 26*unit.Minute)
	if got := c.Find(0).Leases; !slices.Equal(got, []int64{0, 1, 2}) {
		t.Errorf("26 min left keep %v: the lease that runs has 5 min left, the next is worth 20, a third is needed", got)
	}
	c.Trim(15*minute, 0, 25*unit.Minute)
	if got := c.Find(0).Leases; !slices.Equal(got, []int64{0, 1}) {
		t.Errorf("25 min left keep %v, want two leases", got)
	}
	if c.Used(2) != 0 || c.Used(1) != 1 {
		t.Errorf("what was given back is still taken: %d and %d", c.Used(1), c.Used(2))
	}
}

// history is a calendar with what its jobs have left, as one that keeps the promises
// would leave it: who holds the lease that runs gets on.
type history struct {
	cal  *lease.Calendar
	now  unit.Time
	asks []lease.Ask // Need is what is left
}

// sound says what is wrong.
func (h *history) sound(t *rapid.T, when string) {
	used := map[int64]int64{}
	for i, x := range h.cal.Holdings() {
		if i > 0 && h.cal.Holdings()[i-1].Job >= x.Job {
			t.Fatalf("%s: holdings are not in order", when)
		}
		worth := unit.Duration(0)
		for _, n := range x.Leases {
			used[n] += x.Size
			worth += h.cal.Worth(n, h.now, x.By)
		}
		at := slices.IndexFunc(h.asks, func(a lease.Ask) bool { return a.Job == x.Job })
		if at < 0 {
			t.Fatalf("%s: job %d holds leases and was promised none", when, x.Job)
		}
		if left := h.asks[at].Need; worth < left {
			t.Fatalf("%s at %v: job %d has %v left and leases %v worth %v before %v", when, unit.Duration(h.now), x.Job, left, x.Leases, worth, unit.Duration(x.By))
		}
	}
	for n, u := range used {
		if u > h.cal.Capacity() || u != h.cal.Used(n) {
			t.Fatalf("%s: lease %d is promised %d times, counted as %d, there are %d", when, n, u, h.cal.Used(n), h.cal.Capacity())
		}
	}
}

// step lets time pass: those who hold the lease that runs get on, others by chance.
func (h *history) step(t *rapid.T) {
	next := min(h.now.Add(unit.Duration(rapid.IntRange(1, 30).Draw(t, "pass"))*unit.Minute), h.cal.Begin(h.cal.At(h.now)+1))
	for i := range h.asks {
		if a := &h.asks[i]; h.cal.Find(a.Job).Holds(h.cal.At(h.now)) || rapid.IntRange(0, 3).Draw(t, "early") == 0 {
			a.Need = max(0, a.Need-next.Sub(h.now))
		}
	}
	h.now = next
	h.cal.Pass(h.now)
	for _, a := range h.asks {
		if a.Need == 0 {
			h.cal.Drop(a.Job)
		} else {
			h.cal.Trim(h.now, a.Job, a.Need)
		}
	}
	h.asks = slices.DeleteFunc(h.asks, func(a lease.Ask) bool { return a.Need == 0 })
	for _, a := range h.asks {
		if a.By <= h.now {
			t.Fatalf("job %d was promised an end by %v and has %v left", a.Job, unit.Duration(a.By), a.Need)
		}
	}
}

// TestPromisesAreKept: whatever is asked, packed anew, given back and finished early,
// no lease is promised twice and every job's leases are worth what it has left.
func TestPromisesAreKept(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		h := &history{cal: lease.New(20*unit.Minute, rapid.Int64Range(1, 8).Draw(t, "capacity"))}
		for job := range plan.JobID(rapid.IntRange(1, 25).Draw(t, "jobs")) {
			a := lease.Ask{Job: job, Size: rapid.Int64Range(1, h.cal.Capacity()).Draw(t, "size"),
				Need: unit.Duration(rapid.IntRange(1, 120).Draw(t, "need")) * unit.Minute}
			a.By = h.now.Add(a.Need + unit.Duration(rapid.IntRange(0, 200).Draw(t, "slack"))*unit.Minute)
			ok := false
			if rapid.Bool().Draw(t, "pack") {
				ok = h.cal.Pack(h.now, append(slices.Clone(h.asks), a))
			} else {
				ok = h.cal.Reserve(h.now, a)
			}
			if ok {
				h.asks = append(h.asks, a)
			}
			h.sound(t, "after asking")
			h.step(t)
			h.sound(t, "later")
		}
		for len(h.asks) > 0 {
			h.step(t)
			h.sound(t, "in the end")
		}
	})
}

// TestEarliest: what is offered can be had, and a moment less cannot.
func TestEarliest(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		c := lease.New(20*unit.Minute, rapid.Int64Range(1, 6).Draw(t, "capacity"))
		now := minute * unit.Time(rapid.IntRange(0, 50).Draw(t, "now"))
		draw := func(job plan.JobID) lease.Ask {
			a := lease.Ask{Job: job, Size: rapid.Int64Range(1, c.Capacity()).Draw(t, "size"), Need: unit.Duration(rapid.IntRange(1, 120).Draw(t, "need")) * unit.Minute}
			a.By = now.Add(a.Need + unit.Duration(rapid.IntRange(0, 200).Draw(t, "slack"))*unit.Minute)
			return a
		}
		for job := range plan.JobID(rapid.IntRange(0, 15).Draw(t, "jobs")) {
			c.Reserve(now, draw(job))
		}
		a := draw(99)
		a.By = c.Earliest(now, a)
		sooner := a
		if sooner.By--; c.Reserve(now, sooner) {
			t.Fatalf("could end by %v, and yet before", a.By)
		}
		if !c.Reserve(now, a) {
			t.Fatalf("offered an end by %v, and refused", unit.Duration(a.By))
		}
	})
}

// TestPackExactly: three jobs that the greedy packing, the most pressed first, cannot pack
// and the integer program can.
func TestPackExactly(t *testing.T) {
	length := 20 * unit.Minute
	found := 0
	for seed := uint64(0); seed < 400 && found < 1; seed++ {
		chance := rand.New(rand.NewPCG(seed, 1))
		var asks []lease.Ask
		for job := range plan.JobID(6) {
			need := unit.Duration(1+chance.IntN(4)) * length
			asks = append(asks, lease.Ask{Job: job, Size: 1 + chance.Int64N(3), Need: need, By: unit.Time(need).Add(unit.Duration(chance.IntN(3)) * length)})
		}
		c := lease.New(length, 5)
		if c.Overfull(0, asks) || c.Pack(0, asks) || !c.PackExactly(0, asks) {
			continue
		}
		found++
		for n := range int64(8) {
			if c.Used(n) > 5 {
				t.Fatalf("seed %d: lease %d is promised %d times, there are 5", seed, n, c.Used(n))
			}
		}
		for _, a := range asks {
			if worth := c.Promised(0, c.Find(a.Job)); worth < a.Need {
				t.Fatalf("seed %d: job %d needs %v and was promised %v", seed, a.Job, a.Need, worth)
			}
		}
	}
	if found == 0 {
		t.Error("the integer program never found what the greedy packing did not")
	}
}
