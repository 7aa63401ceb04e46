package antman

import (
	"fmt"
	"math/rand/v2"

	"github.com/musterdl/muster/control"
	"github.com/musterdl/muster/unit"
)

// Measure runs half guaranteed, half opportunistic jobs on 16 and on 64 devices, with
// and without sharing, under the law with and without yielding, and the memory of one
// shared device through bursts.
func Measure(seed uint64) map[string]float64 {
	m := map[string]float64{}
	for _, set := range []setting{{16, 60, 1, "antman-fill"}, {16, 60, 2, "antman-fill"}, {16, 60, 2, "antman"}, {16, 60, 2, "fixed"},
		{64, 240, 1, "antman-fill"}, {64, 240, 2, "antman-fill"}} {
		shared, alone := set.simulate(seed, true), set.simulate(seed, false)
		key := func(name string) string {
			return fmt.Sprintf("%s_%s_%dx%g", name, set.law, set.devices, set.load)
		}
		m[key("guaranteed_slowdown")] = shared.slowdown
		m[key("guest_rate")] = shared.guestRate
		m[key("opportunistic_jct_ratio")] = shared.opportunisticJCT / alone.opportunisticJCT
		m[key("guaranteed_jct_ratio")] = shared.guaranteedJCT / alone.guaranteedJCT
	}
	spill, crowd := burst(seed, true), burst(seed, false)
	m["oom"], m["oom_without_spill"] = spill.oom, crowd.oom
	m["guaranteed_memory_slowdown"] = spill.slowdown
	return m
}

// setting is so many devices and jobs, the work submitted per time over what the devices
// can do, and the law.
type setting struct {
	devices, jobs int
	load          float64
	law           string
}

// summary is what became of the jobs of a run.
type summary struct {
	slowdown                        float64 // of guaranteed jobs' run times, mean
	guestRate                       float64 // of guests, over the time they were guests
	guaranteedJCT, opportunisticJCT float64 // s, mean
}

func (x setting) simulate(seed uint64, share bool) summary {
	const memory = 32 << 10
	s := &shop{config: Default(), law: x.law, share: share, memory: memory, holder: make([]*work, x.devices), guest: make([]*work, x.devices)}
	all := draw(seed, x, memory)
	s.run(all)
	var sum summary
	var guaranteed, asGuest, hosted float64
	for _, w := range all {
		if w.opportunistic {
			sum.opportunisticJCT += w.end - w.submit
			asGuest, hosted = asGuest+w.asGuest, hosted+w.hosted
			continue
		}
		guaranteed++
		sum.guaranteedJCT += w.end - w.submit
		sum.slowdown += (w.end-w.start)/w.needs - 1
	}
	sum.slowdown /= guaranteed
	sum.guaranteedJCT /= guaranteed
	sum.opportunisticJCT /= float64(x.jobs) - guaranteed
	if asGuest > 0 {
		sum.guestRate = hosted / asGuest
	}
	return sum
}

// memory is what became of a device's memory.
type memory struct {
	oom      float64 // mini-batches of either job that found no room
	slowdown float64 // of the protected job, by what it had to fetch from the host
}

// burst passes ten thousand mini-batches of half a second on one device. The
// protected job holds 8 GiB and grows now and then to as much as 24 of 32 for some
// seconds; the guest wants 20. The law sets the guest's cap once a second; until it
// does, the protected job's new tensors lie in host memory where tensors may
// (universal memory, of 32 GiB), at 12 GiB a second there and back.
func burst(seed uint64, spill bool) (m memory) {
	const device, wants, mean, link, host = unit.MiB(32 << 10), unit.MiB(20 << 10), .5, 12 << 10, 32 << 10
	r := rand.New(rand.NewPCG(seed, 2))
	law, _ := control.Find("antman-fill")
	var s control.State
	var a control.Actuator
	protected, left := unit.MiB(8<<10), 0
	const batches = 10_000
	extra := 0.0
	for i := range batches {
		if left--; left < 0 {
			if protected = 8 << 10; r.IntN(100) == 0 {
				protected, left = unit.MiB(8<<10+r.IntN(16<<10)), 10+r.IntN(40)
			}
		}
		guest := min(wants, a.Memory)
		if over := protected + guest - device; over > 0 {
			if spill {
				extra += 2 * float64(over) / link
				if over+wants-guest > host {
					m.oom++
				}
			} else {
				m.oom++
			}
		}
		// Without universal memory a guest that is capped below what it needs fails
		// too; that is counted once, when the cap falls.
		before := a.Memory
		if i%2 == 1 {
			a, s = law.Step(control.Range{Ceiling: unit.Whole, Memory: wants}, control.Observation{Rate: 1, Solo: 1, Spare: device - protected}, s)
		}
		if !spill && a.Memory < min(before, wants) {
			m.oom++
		}
	}
	m.slowdown = extra / (batches * mean)
	return m
}
