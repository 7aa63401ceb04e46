package colocate_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/allocate/colocate"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/schedule/las"
	"github.com/musterdl/muster/strategies/schedule/srtf"
)

func TestConforms(t *testing.T) {
	scheduletest.ConformPart(t, allocate.SharePart, func() any { return colocate.New(colocate.Default()) })
}

// pairs are what classes keep of their rates beside each other.
type pairs map[[2]string]float64

func (pairs) Rate(string, string, int, int) (float64, bool) { return 0, false }

func (p pairs) Pair(a, b, _ string) (float64, float64, bool) {
	mine, ok := p[[2]string{a, b}]
	return mine, p[[2]string{b, a}], ok
}

// gpus are nodes with devices of 16 GiB.
func gpus(nodes, devices int) *cluster.Cluster {
	return cluster.Uniform("gpus", nodes, devices, cluster.Model{Name: "gpu", Memory: 16 << 10, Speed: 1}, nodes)
}

// job runs for some minutes and keeps its devices so busy.
func job(name, class string, at unit.Duration, gang int32, minutes int, busy float64) scheduletest.Job {
	compute := unit.Duration(busy * 100_000)
	return scheduletest.Job{Job: workload.Job{Name: name, Submit: unit.Time(at), Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole, Memory: 6 << 10},
		Traits:     workload.Traits{Class: class, Phase: workload.Phase{Compute: compute, Communicate: 100_000 - compute}},
		Checkpoint: workload.Checkpoint{OnRequest: true, Load: 10 * unit.Second}},
		Truth: workload.Truth{Duration: unit.Duration(minutes) * unit.Minute, Busy: busy}}
}

// under plays jobs under an order, with who shares devices; nobody is nil.
func under(t testing.TB, c *cluster.Cluster, order schedule.Order, sharer allocate.Sharer, jobs scheduletest.Jobs, change func(*simulated.Config)) scheduletest.Outcome {
	t.Helper()
	parts := scheduletest.With(order)
	parts.Sharer = sharer
	config := scheduletest.Config(c, jobs, parts)
	if change != nil {
		change(&config)
	}
	o, err := scheduletest.Run(config)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// starts are the starts of a job, as a guest and not, and the ends of its runs by the will of somebody.
type starts struct {
	guest, own, undone int
	at                 unit.Time // of the last end
}

// watch notes what becomes of jobs, by name.
func watch(into map[string]*starts) func(*simulated.Config) {
	return func(config *simulated.Config) {
		config.Hooks.Commit = func(v plan.View, c *plan.Commit) {
			for i := range c.Changes {
				x := &c.Changes[i]
				s := into[v.Name(x.Job)]
				if s == nil {
					s = &starts{}
					into[v.Name(x.Job)] = s
				}
				switch {
				case x.Begins() && x.Terms.Share.Guest != plan.None:
					s.guest++
				case x.Begins():
					s.own++
				case x.Verb == plan.Stop && x.Reason.Code == plan.Unpacked:
					s.undone, s.at = s.undone+1, c.At
				}
			}
		}
	}
}

// TestBothLive: a gang that would wait for two hours lives beside another whose devices are idle for seven tenths
// of the time, and hardly slows it.
func TestBothLive(t *testing.T) {
	jobs := scheduletest.Jobs{job("host", "", 0, 2, 120, .3), job("guest", "", unit.Minute, 2, 60, .3)}
	whole := under(t, gpus(1, 2), fifo.New(fifo.Default()), nil, jobs, nil)
	shared := under(t, gpus(1, 2), fifo.New(fifo.Default()), colocate.New(colocate.Default()), jobs, nil)
	if w := whole.Jobs[1].End; w < unit.Time(3*unit.Hour) {
		t.Fatalf("the gang has not waited: it ends at %s", unit.Duration(w))
	}
	host, guest := shared.Jobs[0].End, shared.Jobs[1].End
	if host > unit.Time(2*unit.Hour*103/100) || guest > unit.Time(75*unit.Minute) {
		t.Errorf("the host ends at %s and its guest at %s", unit.Duration(host), unit.Duration(guest))
	}
	if s := shared.OwnersSlowdown(); s <= 0 || s > .03 || shared.OwnedDeviceSec < 3600 {
		t.Errorf("the owner was slowed by %.4f for %.0f device seconds", s, shared.OwnedDeviceSec)
	}
}

// TestUndone: a pair of which nobody knew that it does not go together is parted in the second interval at the latest, and is
// not tried again. Who knows it beforehand does not try it.
func TestUndone(t *testing.T) {
	bad := pairs{{"a", "b"}: .5, {"b", "a"}: .5}
	jobs := scheduletest.Jobs{job("host", "a", 0, 1, 120, .4), job("guest", "b", unit.Minute, 1, 30, .5)}
	for _, known := range []bool{false, true} {
		seen, c := map[string]*starts{}, colocate.Default()
		if known {
			c = c.Knowing(bad)
		}
		began := unit.Time(0)
		o := under(t, gpus(1, 1), fifo.New(fifo.Default()), colocate.New(c), jobs, func(config *simulated.Config) {
			config.World = world.Config{Speeds: bad}
			watch(seen)(config)
			config.Hooks.Step = func(at unit.Time, _ []engine.Event, _ *engine.Out, v plan.View) {
				if v.Jobs() < 2 {
					return
				}
				if run := v.Job(1).Run; run != plan.None && v.Run(run).Status == plan.Running && began == 0 {
					began = at
				}
			}
		})
		g := seen["guest"]
		want := starts{guest: 1, own: 1, undone: 1, at: g.at}
		if known {
			want = starts{own: 1}
		}
		if *g != want || !known && g.at.Sub(began) > 20*unit.Second {
			t.Errorf("known %v: the guest has %+v; it began at %s", known, *g, unit.Duration(began))
		}
		if end := o.Jobs[0].End; end > unit.Time(2*unit.Hour+unit.Minute) {
			t.Errorf("known %v: the host ends at %s", known, unit.Duration(end))
		}
	}
}

// TestMoves: a guest that goes at a third of its rate has a device of its own as soon as one is free and it is its
// turn; one that goes hardly slower beside its host stays.
func TestMoves(t *testing.T) {
	for busy, moves := range map[float64]bool{.8: true, .01: false} {
		seen := map[string]*starts{}
		jobs := scheduletest.Jobs{job("host", "", 0, 1, 300, busy), job("short", "", 0, 1, 60, 1), job("guest", "", unit.Minute, 1, 120, .3)}
		o := under(t, gpus(1, 2), fifo.New(fifo.Default()), colocate.New(colocate.Default()), jobs, watch(seen))
		if g := seen["guest"]; g.guest != 1 || (g.own == 1) != moves {
			t.Errorf("busy %g: the guest has %+v", busy, *g)
		}
		if end := o.Jobs[2].End; end > unit.Time(3*unit.Hour) {
			t.Errorf("busy %g: the guest ends at %s", busy, unit.Duration(end))
		}
	}
}

// TestKeepsOut: no guest comes to a service, to a device whose memory does not hold both, or to a host that is
// always busy; nor does a job whose phases nobody knows where only measured pairs count.
func TestKeepsOut(t *testing.T) {
	plain := func() scheduletest.Jobs {
		return scheduletest.Jobs{job("host", "", 0, 1, 60, .2), job("guest", "", unit.Minute, 1, 30, .5)}
	}
	measured := colocate.Default()
	measured.MeasuredOnly = true
	for name, x := range map[string]struct {
		config colocate.Config
		change func(scheduletest.Jobs)
		comes  int
	}{
		"plain":    {colocate.Default(), func(scheduletest.Jobs) {}, 1},
		"service":  {colocate.Default(), func(j scheduletest.Jobs) { j[0].Service.SLO = 20 * unit.Millisecond }, 0},
		"memory":   {colocate.Default(), func(j scheduletest.Jobs) { j[0].Memory = 11 << 10 }, 0},
		"busy":     {colocate.Default(), func(j scheduletest.Jobs) { j[0].Phase = workload.Phase{}; j[0].Busy = 1 }, 0},
		"measured": {measured, func(scheduletest.Jobs) {}, 0},
	} {
		seen, jobs := map[string]*starts{}, plain()
		x.change(jobs)
		under(t, gpus(1, 1), fifo.New(fifo.Default()), colocate.New(x.config), jobs, watch(seen))
		if got := seen["guest"].guest; got != x.comes {
			t.Errorf("%s: the guest comes %d times", name, got)
		}
	}
}

// TestCycle: whatever comes under whatever order, with queues that have limits and guarantees, all ends, what is checked at every
// step holds, no owner is slowed by more than guests may, and the same again is the same.
func TestCycle(t *testing.T) {
	guests := 0
	draws.Check(t, func(r *rapid.T) {
		var jobs scheduletest.Jobs
		at := unit.Duration(0)
		for i := range rapid.IntRange(2, 14).Draw(r, "jobs") {
			at += unit.Duration(rapid.IntRange(0, 20).Draw(r, "after")) * unit.Minute
			j := job(fmt.Sprint("job", i), "", at, int32(rapid.IntRange(1, 4).Draw(r, "gang")), rapid.IntRange(1, 90).Draw(r, "minutes"), float64(rapid.IntRange(1, 100).Draw(r, "busy"))/100)
			j.Tenant = rapid.SampledFrom([]string{"a", "b"}).Draw(r, "queue")
			j.Memory = unit.MiB(rapid.IntRange(2, 12).Draw(r, "GiB")) << 10
			j.Traffic = unit.Mbps(rapid.IntRange(0, 1).Draw(r, "traffic")) * 400
			jobs = append(jobs, j)
		}
		tree := queue.Flat("a", "b")
		tree.Queues[0].Guarantee = []queue.Amount{{Milli: 2000}}
		tree.Queues[1].Limit = []queue.Amount{{Milli: 5000}}
		order := rapid.SampledFrom([]string{"fifo", "strict", "srtf", "las"}).Draw(r, "order")
		play := func() scheduletest.Outcome {
			made := map[string]schedule.Order{"fifo": fifo.New(fifo.Default()), "strict": fifo.New(fifo.Config{}), "srtf": srtf.Order{}, "las": las.New(las.Default())}
			seen := map[string]*starts{}
			o := under(t, gpus(2, 4), made[order], colocate.New(colocate.Default()), jobs, func(config *simulated.Config) {
				config.Beginning.First = append(config.Beginning.First, engine.Event{Kind: engine.Shares, Queues: &tree})
				watch(seen)(config)
			})
			for _, s := range seen {
				guests += s.guest
			}
			return o
		}
		o := play()
		for _, j := range o.Jobs {
			if j.Outcome != report.Finished {
				r.Fatalf("job %s is %s", j.Name, j.Outcome)
			}
		}
		if s := o.OwnersSlowdown(); s > .03 {
			r.Fatalf("owners were slowed by %.3f", s)
		}
		if again := play(); again.DecisionHash != o.DecisionHash {
			r.Fatal("two equal histories decide otherwise")
		}
	})
	if guests < 100 {
		t.Errorf("there were %d guests in all", guests)
	}
}
