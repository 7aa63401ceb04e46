package local_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local"
	"github.com/musterdl/muster/run/local/cgroup"
)

// oneCore are so many slots of one core each, with memory for two jobs in each.
func oneCore(count int) local.Slots { return local.Slots{Count: count, CPU: unit.Whole, Memory: 2048} }

// guaranteed computes three fifths of its time and waits for the rest, and says so.
func guaranteed(t *testing.T, name string, core int) workload.Job {
	j := worker(t, name, 12, 8, core, 0)
	j.Phase = workload.Phase{Compute: 12 * unit.Millisecond, Communicate: 8 * unit.Millisecond}
	return j
}

// opportunistic computes all the time.
func opportunistic(t *testing.T, name string, core int) workload.Job {
	j := worker(t, name, 4, 0, core, 0)
	j.Opportunistic = true
	return j
}

// cancel ends a job and waits until its processes have ended.
func (h *host) cancel(id plan.JobID) {
	h.t.Helper()
	if _, err := h.plane.Request(h.t.Context(), engine.Event{Kind: engine.Cancel, Job: id}, ""); err != nil {
		h.t.Fatal(err)
	}
	h.wait(id, "gone", func(j plan.Job, _ plan.View) bool { return j.Phase.Over() && j.Leaving == plan.None })
}

// TestGuest: an opportunistic job beside a guaranteed one on the only slot reserves
// nothing, is in the idle class from the start, under a law that is told of the other's
// progress and leaves it no more than that leaves; the other one is as it was.
func TestGuest(t *testing.T) {
	h := startOn(t, stateDir(t), "fifo+antman", oneCore(1))
	defer h.stop()
	one := h.begin(guaranteed(t, "one", -1))
	two := h.begin(opportunistic(t, "two", -1))
	s := h.spec("two", 1, 0)
	if want := (cgroup.Limits{CPU: unit.Whole, Memory: 2048}); s.Limits != want || s.Law != "antman-fill" || s.Host != h.driver.MemberDir("one", 1, 0) {
		t.Errorf("the guest is held to %+v by the law %q beside %q, expected %+v", s.Limits, s.Law, s.Host, want)
	}
	if s := h.spec("one", 1, 0); s.Limits.CPU != unit.Whole || s.Law != "" || s.Host != "" {
		t.Errorf("its host is held to %+v by the law %q beside %q", s.Limits, s.Law, s.Host)
	}
	if support := cgroup.Probe(); support.CPU {
		if idle, shares := h.groupFile("two", "cpu.idle"), h.groupFile("two", "cpu.shares"); idle != "1" && shares != "2" {
			t.Errorf("the guest's group: cpu.idle %s, cpu.shares %s", idle, shares)
		}
		if idle := h.groupFile("one", "cpu.idle"); idle == "1" {
			t.Error("the host is in the idle class")
		}
	}
	h.cancel(two)
	h.cancel(one)
}

// TestAntManLive is AntMan's promise on one core: the guaranteed job keeps at least
// 95 % of its rate by itself, and the opportunistic one gets at least 25 % of its own,
// while as two ordinary jobs the first falls below 80 %. Each round measures all of it
// anew; medians of the rounds count. It needs the machine for itself.
func TestAntManLive(t *testing.T) {
	needAlone(t)
	if support := cgroup.Probe(); !support.CPU {
		t.Skip(support)
	}
	const core, rounds, settle = 0, 3, 18 * time.Second
	law := startOn(t, stateDir(t), "fifo+antman", oneCore(1))
	defer law.stop()
	none := startOn(t, stateDir(t), "fifo", oneCore(2))
	defer none.stop()
	var kept, got, keptNone, gotNone []float64
	for i := range rounds {
		name := func(s string) string { return fmt.Sprint(s, i) }
		guest := none.begin(opportunistic(t, name("alone"), core))
		none.favour(name("alone"))
		guestSolo := none.rates(4*time.Second, name("alone"))[0]
		none.cancel(guest)

		one := law.begin(guaranteed(t, name("one"), core))
		time.Sleep(4 * time.Second) // for its record to tell how fast it is
		solo := law.rates(4*time.Second, name("one"))[0]
		two := law.begin(opportunistic(t, name("two"), core))
		time.Sleep(settle)
		both := law.rates(8*time.Second, name("one"), name("two"))
		law.cancel(two)
		again := law.rates(4*time.Second, name("one"))[0]
		law.cancel(one)
		solo = (solo + again) / 2

		one = none.begin(guaranteed(t, name("one"), core))
		two = none.begin(opportunistic(t, name("two"), core))
		free := none.rates(4*time.Second, name("one"), name("two"))
		none.cancel(one)
		none.cancel(two)
		t.Logf("round %d: solo %.1f and %.1f steps/s; under the law %.3f and %.3f of it; without %.3f and %.3f", i, solo, guestSolo,
			both[0]/solo, both[1]/guestSolo, free[0]/solo, free[1]/guestSolo)
		kept, got = append(kept, both[0]/solo), append(got, both[1]/guestSolo)
		keptNone, gotNone = append(keptNone, free[0]/solo), append(gotNone, free[1]/guestSolo)
	}
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("medians: under the law %.3f and %.3f, without %.3f and %.3f; load %s", median(kept), median(got), median(keptNone), median(gotNone), load)
	if k, g, n := median(kept), median(got), median(keptNone); k < .95 || g < .25 || n >= .8 {
		t.Errorf("guaranteed %.3f, opportunistic %.3f, guaranteed without the law %.3f: expected at least 0.95, at least 0.25 and less than 0.80", k, g, n)
	}
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
