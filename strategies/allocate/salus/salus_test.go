package salus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/salus/reside"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

func TestConforms(t *testing.T) {
	for _, c := range []Config{Default(), {Order: "fair", Lanes: 2, Quantum: unit.Minute, Swap: true}} {
		scheduletest.ConformJoint(t, func() allocate.Joint { return New(c) })
	}
}

// On one device a short job passes a long one while that stays in memory: nothing is
// started twice. Where the two do not fit together, it waits, also where who rests gives
// nothing up.
func TestPasses(t *testing.T) {
	for _, c := range []struct {
		persistent unit.MiB
		swap       bool
		ends       [2]unit.Duration
	}{{2 << 10, true, [2]unit.Duration{125 * unit.Minute, 15 * unit.Minute}}, {9 << 10, true, [2]unit.Duration{120 * unit.Minute, 125 * unit.Minute}},
		{2 << 10, false, [2]unit.Duration{120 * unit.Minute, 125 * unit.Minute}}} {
		config := Default()
		config.Swap = c.swap
		cl := scheduletest.Nodes(1, 1, 0)
		cl.Models[0].Memory, cl.Devices[0].Memory = 16<<10, 16<<10
		job := func(name string, submit unit.Time, length unit.Duration) scheduletest.Job {
			return scheduletest.Job{Job: workload.Job{Name: name, Submit: submit, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole, Memory: 10 << 10},
				Traits: workload.Traits{Persistent: c.persistent}},
				Truth: workload.Truth{Duration: length}}
		}
		jobs := scheduletest.Jobs{job("long", 0, 2*unit.Hour), job("short", unit.Time(10*unit.Minute), 5*unit.Minute)}
		o, err := scheduletest.Run(scheduletest.JointConfig(cl, jobs, New(config), oracle.Estimator{}))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.ends {
			if j := o.Jobs[i]; j.End < unit.Time(want) || j.End > unit.Time(want+unit.Minute) || j.Preemptions != 0 {
				t.Errorf("with %d MiB that stay, %s ends at %s after %d preemptions, want %s", c.persistent, j.Name, unit.Duration(j.End), j.Preemptions, want)
			}
		}
	}
}

// Through the whole cycle, checked at every step: jobs of any memory take turns in any
// order, all end, and nobody is ever stopped.
func TestCycle(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		cl := scheduletest.Nodes(1, 2, 0)
		cl.Models[0].Memory, cl.Devices[0].Memory, cl.Devices[1].Memory = 16<<10, 16<<10, 16<<10
		var jobs scheduletest.Jobs
		for i := range rapid.IntRange(1, 12).Draw(t, "jobs") {
			memory := unit.MiB(rapid.IntRange(1, 16).Draw(t, "GiB")) << 10
			jobs = append(jobs, scheduletest.Job{Job: workload.Job{Name: fmt.Sprint("job", i), Submit: unit.Time(i) * unit.Time(rapid.IntRange(0, 600).Draw(t, "after")) * unit.Time(unit.Second),
				Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole, Memory: memory},
				Traits:    workload.Traits{Persistent: memory * unit.MiB(rapid.IntRange(0, 10).Draw(t, "stays")) / 10}},
				Truth: workload.Truth{Duration: unit.Duration(rapid.IntRange(1, 3600).Draw(t, "length")) * unit.Second}})
		}
		c := Config{Order: rapid.SampledFrom([]string{"fifo", "srtf", "fair"}).Draw(t, "order"), Lanes: rapid.IntRange(1, 3).Draw(t, "lanes"), Quantum: unit.Minute, Swap: rapid.Bool().Draw(t, "swap")}
		slices.SortStableFunc(jobs, func(a, b scheduletest.Job) int { return cmp.Compare(a.Submit, b.Submit) })
		o, err := scheduletest.Run(scheduletest.JointConfig(cl, jobs, New(c), oracle.Estimator{}))
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range o.Jobs {
			if j.Outcome != report.Finished || j.Preemptions > 0 {
				t.Fatalf("job %d is %s after %d preemptions", j.ID, j.Outcome, j.Preemptions)
			}
		}
	})
}

// Whatever comes and goes, memory is kept, of each lane exactly one computes, it is
// the first by the order, and nobody who is resident moves.
func TestDecide(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 3).Draw(t, "lanes")
		var members []*member
		for id := range plan.JobID(rapid.IntRange(1, 20).Draw(t, "jobs")) {
			members = append(members, &member{job: id, device: plan.None, foot: reside.Footprint{Persistent: unit.MiB(rapid.IntRange(0, 4).Draw(t, "persistent")),
				Ephemeral: unit.MiB(rapid.IntRange(0, 8).Draw(t, "ephemeral"))}, rank: rapid.Int64Range(0, 9).Draw(t, "rank")})
			if rapid.Bool().Draw(t, "one ends") {
				members = members[1:]
			}
			was := map[plan.JobID]member{}
			for _, m := range members {
				was[m.job] = *m
			}
			devices := []device{{id: 0, memory: 20}, {id: 1, memory: 12}}
			decide(devices, most, members, func(*member, plan.DeviceID, bool) bool { return true })
			for i, d := range devices {
				lanes := map[int32]reside.Lane{}
				for _, m := range members {
					if m.device == d.id {
						lanes[m.lane] = lanes[m.lane].Join(m.foot)
					}
				}
				if need := reside.Need(slices.Collect(maps.Values(lanes))); need > d.memory || len(lanes) > most || need != reside.Need(devices[i].lanes) {
					t.Fatalf("%v on device %d with %d", lanes, d.id, d.memory)
				}
				for lane := range lanes {
					compute := 0
					for _, m := range members {
						if m.device == d.id && m.lane == lane && m.runs {
							compute++
						}
						for _, o := range members {
							if m.device == d.id && m.lane == lane && m.runs && o.device == d.id && o.lane == lane && order(o, m) < 0 {
								t.Fatalf("job %d waits for job %d", o.job, m.job)
							}
						}
					}
					if compute != 1 {
						t.Fatalf("%d compute in a lane", compute)
					}
				}
			}
			for _, m := range members {
				if w := was[m.job]; w.device != plan.None && (m.device != w.device || m.lane != w.lane) {
					t.Fatalf("job %d moved from %v", m.job, w)
				}
			}
		}
	})
}

// The worst decision: a thousand empty devices and three thousand jobs that wait.
func BenchmarkWishes(b *testing.B) {
	s := plan.NewState(scheduletest.Nodes(125, 8, 0))
	for i := range s.Devices {
		s.Devices[i].Memory, s.Devices[i].FreeMemory = 16<<10, 16<<10
	}
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Memory: 5 << 10, Models: 1}}
	s.Profiles = []plan.Profile{{Persistent: 1 << 10}}
	var jobs []plan.JobID
	for i := range 3000 {
		jobs = append(jobs, s.Admit("job", plan.Asked{}))
		s.Jobs[i].Estimate = unit.Duration(i%977+1) * unit.Minute
	}
	decider := New(Default())
	for b.Loop() {
		decider.Wishes(s.View(), jobs, nil)
	}
}

func TestConfig(t *testing.T) {
	for _, change := range []func(*Config){func(c *Config) { c.Order = "lifo" }, func(c *Config) { c.Lanes = 0 }, func(c *Config) { c.Quantum = 0 },
		func(c *Config) { c.ReserveMiB = -1 }} {
		c := Default()
		if change(&c); strategy.Check(Default()) != nil || strategy.Check(c) == nil {
			t.Errorf("validation of %+v", c)
		}
	}
	s := New(Default())
	s.since[3], s.since[1] = 5, 7
	r := New(Default())
	if err := r.Recall(s.Remember()); err != nil || len(r.since) != 2 || r.since[3] != 5 {
		t.Errorf("%v, %v", r.since, err)
	}
	if r.Recall([]byte{1}) == nil {
		t.Error("half a pair is read")
	}
}
