package stand

import (
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
)

func init() {
	register("antman", "half guaranteed gangs, half opportunistic single workers under a law (law) on devices of 32 GiB (devices, jobs, load)", antman)
}

// The memory of the stand: of a device, of the host for each of its devices, and how
// much more than it declares a guaranteed job grows to in a burst, at most.
const antmanDevice, antmanHost, antmanBurst = unit.MiB(32 << 10), unit.MiB(32 << 10), 16 << 10

// antman is every other job opportunistic, gangs mostly of one, run times log-normal
// about 20 minutes, demands of 30 to 95 % of a device's time. Guaranteed jobs have bursts
// of memory: one that is on a device with a guest must find room there or on the host. The
// law gives a new guest a twentieth more every 10 s (catalogue of allocation for training,
// B1): 200 s from its floor to all of the device. Without a law there is nothing to wait for.
func antman(_ Data, o *Options, seed uint64) (*Stand, error) {
	devices, jobs, load, law := o.Int("devices", 16), o.Int("jobs", 60), o.Float("load", 1), o.Text("law", "antman")
	r := rand.New(rand.NewPCG(seed, 1))
	all, total := make([]item, jobs), 0.0
	for i := range all {
		gang, guest, priority := int32(1), i%2 == 1, int32(1-i%2)
		if u := r.Float64(); !guest && u > .7 {
			gang = 2
			if u > .85 {
				gang = 4
			}
			if u > .95 {
				gang = 8
			}
		}
		needs := math.Exp(math.Log(1200) + r.NormFloat64())
		demand := unit.Milli(300 + r.IntN(650))
		memory := antmanDevice * unit.MiB(10+r.IntN(50)) / 100
		total += needs * float64(gang)
		all[i] = item{workload.Job{Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole, Memory: memory},
			Traits: workload.Traits{Opportunistic: guest, Phase: workload.Phase{Compute: unit.Duration(demand) * unit.Millisecond, Communicate: unit.Duration(1000-demand) * unit.Millisecond}}, Priority: priority},
			workload.Truth{Duration: unit.Seconds(needs), Busy: float64(demand) / 1000}}
		if guest {
			all[i].Law = law
		}
	}
	come(all, r, total, devices, load)
	c := cluster.Uniform("antman", devices/8, 8, cluster.Model{Name: "gpu", Memory: antmanDevice, Speed: 1}, 8)
	prices := simulated.Prices{Settle: 20 * 10 * unit.Second}
	if law == "fixed" {
		prices.Settle = 0
	}
	a := &antmanRun{jobs: list(all), burst: rand.New(rand.NewPCG(seed, 2))}
	return &Stand{Cluster: c, Jobs: a.jobs, Prices: prices, Step: a.step, Figures: a.figures}, nil
}

// antmanRun is what is seen of one history.
type antmanRun struct {
	jobs  *List
	burst *rand.Rand

	at             unit.Time
	rate           float64 // sum of the rates of guests beside a host, since the last step
	guests         float64 // how many there are
	did, spent     float64 // what they did by that, and in what time, s
	bursts         float64
	spilled, fails float64 // bursts that found no room on the device, and on the host neither
}

// step adds up what guests did beside their hosts, and lets a guaranteed job that a guest
// has just joined have a burst.
func (a *antmanRun) step(at unit.Time, ready []plan.Change, v plan.View) {
	span := at.Sub(a.at).Seconds()
	a.did, a.spent, a.at = a.did+a.rate*span, a.spent+a.guests*span, at
	a.rate, a.guests = 0, 0
	for id := range plan.RunID(v.RunSlots()) {
		r := v.Run(id)
		if r.Status != plan.Running || !v.ProfileOf(r.Job).Opportunistic {
			continue
		}
		v.GrantsOf(id, func(g plan.Grant) {
			if hosted(v, g.Device, id) {
				a.rate, a.guests = a.rate+float64(r.RateMicro)/plan.FullRate, a.guests+1
			}
		})
	}
	for i := range ready {
		if c := &ready[i]; c.Verb == plan.Start {
			v.GrantsOf(c.Run, func(g plan.Grant) { a.grow(v, g.Device) })
		}
	}
}

// hosted reports whether a guaranteed job computes on a device beside a guest.
func hosted(v plan.View, d plan.DeviceID, guest plan.RunID) (yes bool) {
	v.GrantsOn(d, func(g plan.Grant) {
		yes = yes || g.Run != guest && v.Run(g.Run).Status == plan.Running && !v.ProfileOf(v.Run(g.Run).Job).Opportunistic
	})
	return yes
}

// grow is one burst on a device where a guaranteed job has company: what does not fit
// beside it goes to the host, where there is so much for each device.
func (a *antmanRun) grow(v plan.View, d plan.DeviceID) {
	held, hosts, guests := unit.MiB(0), 0, 0
	v.GrantsOn(d, func(g plan.Grant) {
		if held += unit.MiB(g.Persist + g.Peak); v.ProfileOf(v.Run(g.Run).Job).Opportunistic {
			guests++
		} else {
			hosts++
		}
	})
	if hosts == 0 || guests == 0 {
		return
	}
	a.bursts++
	if over := held + unit.MiB(a.burst.IntN(antmanBurst)) - antmanDevice; over > antmanHost {
		a.fails, a.spilled = a.fails+1, a.spilled+1
	} else if over > 0 {
		a.spilled++
	}
}

func (a *antmanRun) figures(o *Finished) map[string]float64 {
	var slowdown, guaranteed, jct, waits, others float64
	for id := range plan.JobID(o.View.Jobs()) {
		j, needs := o.View.Job(id), a.jobs.Truths[id].Duration.Seconds()
		if a.jobs.Jobs[id].Opportunistic {
			jct, others = jct+j.Ended.Sub(j.Submit).Seconds(), others+1
			continue
		}
		slowdown += o.View.Executed(id).Seconds()/needs - 1
		waits += j.Ended.Sub(j.Submit).Seconds()
		guaranteed++
	}
	return map[string]float64{"guaranteed_slowdown": slowdown / guaranteed, "guaranteed_jct_s": waits / guaranteed, "opportunistic_jct_s": jct / others,
		"guest_rate": a.did / max(1, a.spent), "hosted_h": a.spent / 3600, "bursts": a.bursts, "spilled": a.spilled, "out_of_memory": a.fails}
}
