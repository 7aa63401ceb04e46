package simulated_test

import (
	"testing"

	"github.com/musterdl/muster/allocate/envelope"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

// script is a Scheduler that does what is written for an instant, in seconds, and else
// nothing. It may put one question, at the first instant.
type script struct {
	acts     map[int]func(d *plan.Draft)
	question []byte
	answered unit.Time
}

func (s *script) Decide(d *plan.Draft, why schedule.Trigger) unit.Time {
	if len(why.Answers) > 0 {
		s.answered = d.Now()
	}
	next := unit.Never
	for at := range s.acts {
		switch t := unit.Time(unit.Duration(at) * unit.Second); {
		case t <= d.Now():
			act := s.acts[at]
			delete(s.acts, at)
			act(d)
		default:
			next = min(next, t)
		}
	}
	return next
}

func (s *script) Asks() (asks []strategy.Ask) {
	if s.question != nil {
		asks, s.question = append(asks, strategy.Ask{Asker: "me", Question: s.question}), nil
	}
	return asks
}

func (s *script) Answer([]byte) ([]byte, error) { return []byte("yes"), nil }

var because = plan.Reason{Code: plan.Fits}

// starts puts a job on the first device, with terms that edit changes.
func starts(id plan.JobID, edit func(t *plan.Terms)) func(d *plan.Draft) {
	return func(d *plan.Draft) {
		terms := plan.DefaultTerms()
		if edit != nil {
			edit(&terms)
		}
		slot := plan.Slot{Device: plan.None, Workers: 1}
		if terms.Share.Guest != plan.None || terms.Share.Turn > 0 || d.Shape(id).Share < int32(unit.Whole) {
			slot.Device = 0
		}
		if _, why := d.Start(id, []plan.Slot{slot}, terms, because); why.Code != plan.NoReason {
			panic(why.Code)
		}
	}
}

// job is one of so many seconds of work on one device.
func job(seconds int, edit func(j *workload.Job, t *workload.Truth)) scheduletest.Job {
	j := workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole, Memory: 6000}, Checkpoint: workload.Checkpoint{OnRequest: true, Load: 20 * unit.Second}}
	t := workload.Truth{Duration: unit.Duration(seconds) * unit.Second}
	if edit != nil {
		edit(&j, &t)
	}
	return scheduletest.Job{Job: j, Truth: t}
}

// priced runs jobs on one device, as a script says.
func priced(t *testing.T, prices simulated.Prices, s *script, speeds world.Speeds, jobs ...scheduletest.Job) []report.JobRecord {
	t.Helper()
	for i := range jobs {
		jobs[i].Job.Name = string(rune('a' + i))
	}
	config := scheduletest.Config(oneDevice(), jobs, scheduletest.With(fifo.Order{}))
	config.Scheduler, config.Prices, config.World.Speeds = s, prices, speeds
	o, err := scheduletest.Run(config)
	if err != nil {
		t.Fatal(err)
	}
	if !o.Balanced {
		t.Fatalf("the ledger does not balance: %v", o.Notes)
	}
	return o.Jobs
}

func oneDevice() *cluster.Cluster {
	return cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Speed: 1, Memory: 16 << 10}, 1)
}

func ends(t *testing.T, what string, got report.JobRecord, seconds float64) {
	t.Helper()
	if s := got.End.Sub(0).Seconds(); got.Outcome != report.Finished || s < seconds-1e-3 || s > seconds+1e-3 {
		t.Errorf("%s: it is %v at %.3f s, expected finished at %.3f s", what, got.Outcome, s, seconds)
	}
}

func act(at int, f func(d *plan.Draft)) *script {
	return &script{acts: map[int]func(*plan.Draft){at: f}}
}

func (s *script) then(at int, f func(d *plan.Draft)) *script {
	s.acts[at] = f
	return s
}

// TestStartIsPaid: the first start takes its time, a later one the restore as well.
func TestStartIsPaid(t *testing.T) {
	stop := func(d *plan.Draft) { d.Stop(d.Job(0).Run, because, 0) }
	for _, c := range []struct {
		prices simulated.Prices
		want   float64
	}{{simulated.Prices{}, 160}, {simulated.Prices{Start: 5 * unit.Second}, 170}} {
		got := priced(t, c.prices, act(0, starts(0, nil)).then(50, stop).then(90, starts(0, nil)), nil, job(100, nil))
		ends(t, "started twice", got[0], c.want)
	}
}

// TestSaveIsPaid: who does not declare how long that takes saves its memory over the link to the store.
func TestSaveIsPaid(t *testing.T) {
	silent := job(100, func(j *workload.Job, _ *workload.Truth) { j.Checkpoint = workload.Checkpoint{OnRequest: true} })
	stop := func(d *plan.Draft) { d.Stop(d.Job(0).Run, because, 0) }
	got := priced(t, simulated.Prices{StoreGBps: .5, Restart: unit.Second}, act(0, starts(0, nil)).then(50, stop).then(51, starts(1, nil)), nil,
		silent, job(10, nil))
	// 6,000 MiB are 6.291 GB: 12.583 s, in which the device is not free for the other.
	ends(t, "behind one that saves", got[1], 50+12.582912+10)
}

// TestStreamIsPaid: one that comes in groups of layers begins when what does not hide behind
// its first pass has come, on its true layers, and leaves when what stays has gone; no
// process starts, and nothing is restored. Where the link costs nothing it is free.
func TestStreamIsPaid(t *testing.T) {
	layers := job(100, func(j *workload.Job, _ *workload.Truth) {
		j.Pipeline.Layers = []workload.Layer{{Forward: unit.Second, ParamKiB: 1e9 >> 10}, {Forward: unit.Second, ParamKiB: 1e9 >> 10}}
	})
	start := func(groups ...int32) func(d *plan.Draft) {
		return func(d *plan.Draft) {
			id := d.PlanID(plan.Pipeline{Groups: groups})
			starts(0, func(t *plan.Terms) { t.Plan.ID = id })(d)
		}
	}
	stop := func(d *plan.Draft) { d.Stop(d.Job(0).Run, because, 0) }
	for _, c := range []struct {
		prices simulated.Prices
		groups []int32
		want   float64
	}{
		// A layer takes 2 s, a transfer .1 s and a hand-over .01 s more: two groups have computed after
		// 2.1 + .01 + 1 and 4.2 + .01 + 1, one after 4.1 + .01 + 2; 2 s each time are its own. It saves for .5 s,
		// .1 s and 4 s, and goes on at 80 s.
		{simulated.Prices{Start: 60 * unit.Second, HostGBps: .5, Transfer: unit.Second / 10, HandOver: unit.Second / 100, Leave: unit.Second / 2}, []int32{1, 2}, 80 + 100 - 50 + 2*3.21},
		{simulated.Prices{Start: 60 * unit.Second, HostGBps: .5, Transfer: unit.Second / 10, HandOver: unit.Second / 100, Leave: unit.Second / 2}, []int32{2}, 80 + 100 - 50 + 2*4.11},
		{simulated.Prices{}, []int32{1, 2}, 80 + 50},
	} {
		got := priced(t, c.prices, act(0, start(c.groups...)).then(50, stop).then(80, start(c.groups...)), nil, layers)
		ends(t, "streamed twice", got[0], c.want)
	}
	other := job(10, nil)
	got := priced(t, simulated.Prices{HostGBps: .5, Leave: unit.Second / 2}, act(0, start(1, 2)).then(50, stop).then(51, starts(1, nil)), nil, layers, other)
	ends(t, "behind one that leaves", got[1], 50+.5+4+10)
}

// TestSuspendIsPaid: what a run gives up moves out before others go on, and back in.
func TestSuspendIsPaid(t *testing.T) {
	swap := func(t *plan.Terms) { t.Share.Swap = 6000; t.Share.Turn = 1 }
	s := act(0, starts(0, swap)).then(50, func(d *plan.Draft) { d.Suspend(d.Job(0).Run, because) }).
		then(51, starts(1, swap)).then(100, func(d *plan.Draft) { d.Resume(d.Job(0).Run, because) })
	got := priced(t, simulated.Prices{Pause: unit.Second, HostGBps: 6.291456}, s, nil, job(100, nil), job(10, nil))
	ends(t, "started behind one that moves out", got[1], 52+10) // a second, and one for what moves
	ends(t, "resumed", got[0], 100+2+50)
	s = act(0, starts(0, swap)).then(50, func(d *plan.Draft) { d.Suspend(d.Job(0).Run, because) }).
		then(100, func(d *plan.Draft) { d.Resume(d.Job(0).Run, because) })
	ends(t, "resumed for nothing", priced(t, simulated.Prices{}, s, nil, job(100, nil))[0], 150)
}

// TestStopWhileMovingOut: one that is stopped while it moves out leaves the books right.
func TestStopWhileMovingOut(t *testing.T) {
	s := act(0, starts(0, func(t *plan.Terms) { t.Share.Swap = 6000; t.Share.Turn = 1 })).
		then(50, func(d *plan.Draft) { d.Suspend(d.Job(0).Run, because) }).
		then(51, func(d *plan.Draft) { d.Stop(d.Job(0).Run, because, 0) }).then(60, starts(0, nil))
	got := priced(t, simulated.Prices{Pause: 5 * unit.Second}, s, nil, job(100, nil))
	ends(t, "stopped while it moved out", got[0], 60+20+50)
}

// half is a job that asks for half of a device and keeps that half busy.
func half(j *workload.Job, _ *workload.Truth) { j.Share = 500 }

// TestCeilingNeedsAnotherProcess: a ceiling under MPS is fixed when a process connects.
func TestCeilingNeedsAnotherProcess(t *testing.T) {
	for _, c := range []struct {
		fence plan.Fence
		want  float64
	}{{plan.MPS, 100 + 5 + 5 + 20}, {plan.TimeSliced, 100 + 5}} {
		s := act(0, starts(0, func(t *plan.Terms) { t.Share.Fence, t.Share.Ceiling = c.fence, 500 })).then(50, func(d *plan.Draft) {
			terms := d.Run(d.Job(0).Run).Terms
			terms.Share.Ceiling = 900
			if !d.Regrant(d.Job(0).Run, terms, because) {
				panic("it was not granted")
			}
		})
		got := priced(t, simulated.Prices{Start: 5 * unit.Second}, s, nil, job(100, half))
		ends(t, "raised", got[0], c.want)
	}
}

// TestFaultTakesNeighbours: a run that fails under MPS takes those along that share the
// server, and nobody else.
func TestFaultTakesNeighbours(t *testing.T) {
	for _, fence := range []plan.Fence{plan.MPS, plan.TimeSliced} {
		terms := func(t *plan.Terms) { t.Share.Fence, t.Share.Ceiling = fence, 500 }
		again := 0
		s := act(0, func(d *plan.Draft) { starts(0, terms)(d); starts(1, terms)(d) }).then(50, func(d *plan.Draft) {
			if d.Job(1).Phase == plan.Waiting {
				again++
				starts(1, terms)(d)
			}
		})
		got := priced(t, simulated.Prices{}, s, nil, job(100, func(j *workload.Job, t *workload.Truth) { half(j, t); t.FailAfter = 30 * unit.Second }), job(100, half))
		want, restarts := 100.0, int32(0)
		if fence == plan.MPS {
			want, restarts = 50+20+100, 1
		}
		ends(t, "the neighbour", got[1], want)
		if got[0].Outcome != report.Failed || got[1].Restarts != restarts {
			t.Errorf("the faulty one is %v, its neighbour was restarted %d times", got[0].Outcome, got[1].Restarts)
		}
	}
}

// pairs are the speeds of one pair.
type pairs struct{ beside float64 }

func (pairs) Rate(string, string, int, int) (float64, bool) { return 1, true }

func (p pairs) Pair(a, b, model string) (float64, float64, bool) { return p.beside, p.beside, true }

// TestMemoryThatDoesNotFit: who comes to a device whose memory does not hold both fails
// for it; the other goes on.
func TestMemoryThatDoesNotFit(t *testing.T) {
	s := act(0, starts(0, nil)).then(10, starts(1, nil))
	got := priced(t, simulated.Prices{}, s, pairs{0}, job(100, half), job(100, half))
	ends(t, "who was there", got[0], 100)
	if got[1].Outcome != report.Failed || got[1].End != unit.Time(10*unit.Second) {
		t.Errorf("who came is %v at %v", got[1].Outcome, got[1].End)
	}
}

// TestGuestsDivideTheGap: a host that leaves .7 of its device leaves two guests .35 each.
func TestGuestsDivideTheGap(t *testing.T) {
	guest := func(j *workload.Job, _ *workload.Truth) { j.Opportunistic, j.Memory, j.Law = true, 1000, "antman-fill" }
	host := job(1000, func(j *workload.Job, t *workload.Truth) { t.Busy, j.Memory = .3, 1000 })
	beside := func(t *plan.Terms) { t.Share.Guest = 0 }
	one := priced(t, simulated.Prices{}, act(0, starts(0, nil)).then(1, starts(1, beside)), nil, host, job(70, guest))
	two := priced(t, simulated.Prices{}, act(0, starts(0, nil)).then(1, func(d *plan.Draft) { starts(1, beside)(d); starts(2, beside)(d) }), nil,
		host, job(70, guest), job(70, guest))
	alone := one[1].End.Sub(0).Seconds() - 1
	ends(t, "the first of two", two[1], 1+2*alone)
	ends(t, "the second of two", two[2], 1+2*alone)
	if alone < 99 || alone > 101 {
		t.Errorf("one guest takes %.1f s for 70 s of work in .7 of a device", alone)
	}
	late := priced(t, simulated.Prices{Settle: 40 * unit.Second}, act(0, starts(0, nil)).then(1, starts(1, beside)), nil, host, job(70, guest))
	ends(t, "under a law that has to settle", late[1], 1+20+alone)
	short := priced(t, simulated.Prices{Settle: 40 * unit.Second}, act(0, starts(0, nil)).then(1, starts(1, beside)), nil, host, job(7, guest))
	ends(t, "one that has ended before the law has settled", short[1], 1+2*alone/10)
	slowed := func(prices simulated.Prices) float64 {
		needy := job(1000, func(j *workload.Job, t *workload.Truth) { t.Busy, j.Memory = .9, 1000 })
		got := priced(t, prices, act(0, starts(0, nil)).then(1, starts(1, beside)), nil, needy, job(7000, guest))
		return got[0].End.Sub(0).Seconds()
	}
	if full, half := slowed(simulated.Prices{})-1000, slowed(simulated.Prices{Settle: 10000 * unit.Second})-1000; full < 1 || half < .49*full || half > .51*full {
		t.Errorf("a guest keeps its host for %.2f s longer, and %.2f s while its law settles", full, half)
	}
}

// TestJoiningAHost: two jobs on the same base are trained as one by processes that have to
// be started anew.
func TestJoiningAHost(t *testing.T) {
	based := func(j *workload.Job, t *workload.Truth) { j.Base, j.Memory, t.Merge = "vit", 1000, .25 }
	s := act(0, starts(0, nil)).then(50, starts(1, func(t *plan.Terms) { t.Share.Guest, t.Share.Bond = 0, plan.InOne }))
	got := priced(t, simulated.Prices{Start: 5 * unit.Second}, s, nil, job(100, based), job(500, based))
	// Both go at .8 from 55 s on, when the guest is there and the host begins to pay 25 s;
	// while the host pays the guest goes at 1.
	ends(t, "the host", got[0], 55+25+50/.8)
}

// TestReshapeByInstance: cutting takes a time for every part that is made or removed.
func TestReshapeByInstance(t *testing.T) {
	part := func(start, milli int32) cluster.Part {
		return cluster.Part{Start: start, Milli: unit.Milli(milli), Memory: 4000}
	}
	c := oneDevice()
	c.Models[0].Geometries = []cluster.Geometry{{Name: "whole"},
		{Name: "two", Parts: []cluster.Part{part(0, 400), part(4, 400)}}, {Name: "other", Parts: []cluster.Part{part(0, 400), part(4, 200), part(6, 200)}}}
	at := map[string]unit.Time{}
	s := act(0, func(d *plan.Draft) { d.Reshape(0, 1, because) }).then(100, func(d *plan.Draft) { d.Reshape(0, 2, because) }).then(200, starts(0, nil))
	config := scheduletest.Config(c, scheduletest.Jobs{job(10, func(j *workload.Job, _ *workload.Truth) { j.Share, j.Memory = 100, 100 })}, scheduletest.With(fifo.Order{}))
	config.Scheduler, config.Prices = s, simulated.Prices{Instance: envelope.InstanceTime}
	config.Step = func(now unit.Time, events []engine.Event, _ *engine.Out, v plan.View) {
		for _, e := range events {
			if e.Kind == engine.Reshaped {
				at[string(rune('a'+len(at)))] = now
			}
		}
	}
	if _, err := scheduletest.Run(config); err != nil {
		t.Fatal(err)
	}
	// Two made; one removed and two made.
	if at["a"] != unit.Time(10*unit.Second) || at["b"] != unit.Time(115*unit.Second) {
		t.Errorf("cut at %v", at)
	}
}

// TestAnswersTakeTime: a question of 2 KiB at ten seconds each.
func TestAnswersTakeTime(t *testing.T) {
	for _, c := range []struct{ each, want unit.Duration }{{0, 0}, {10 * unit.Second, 20 * unit.Second}} {
		s := act(0, starts(0, nil))
		s.question = make([]byte, 2048)
		priced(t, simulated.Prices{Answer: c.each}, s, nil, job(100, nil))
		if s.answered != unit.Time(c.want) {
			t.Errorf("answered at %v, expected %v", s.answered, c.want)
		}
	}
}

// TestRentedNodesComeLater: a node that is rented is there when it has arrived.
func TestRentedNodesComeLater(t *testing.T) {
	c := cluster.Uniform("rented", 2, 1, cluster.Model{Name: "gpu", Speed: 1, Memory: 16 << 10}, 2)
	c.Nodes[1].Rental = true
	up := unit.Never
	s := act(0, func(d *plan.Draft) { starts(0, nil)(d); d.Rent(1, because) })
	config := scheduletest.Config(c, scheduletest.Jobs{job(1000, nil)}, scheduletest.With(fifo.Order{}))
	config.Scheduler, config.Prices = s, simulated.DefaultPrices()
	config.Step = func(now unit.Time, _ []engine.Event, _ *engine.Out, v plan.View) {
		if v.Node(1).Status == plan.Up {
			up = min(up, now)
		}
	}
	if _, err := scheduletest.Run(config); err != nil {
		t.Fatal(err)
	}
	if up != unit.Time(2*unit.Minute) {
		t.Errorf("it came at %v", up)
	}
}

// TestMenusAreMeasured: what a job does on other shapes is measured on its devices before
// its first start, with an error; how fast it truly goes is another matter.
func TestMenusAreMeasured(t *testing.T) {
	offers := []workload.Offer{{Workers: 1, Rate: 1}, {Workers: 2, Rate: 1.8}, {Workers: 3, Rate: 2.4}}
	believed := map[float64]int64{}
	for _, spread := range []float64{0, .1} {
		s := act(0, func(d *plan.Draft) {
			believed[spread] = d.Rate(0, 0, 2, false)
			starts(0, nil)(d)
		})
		got := priced(t, simulated.Prices{Probe: 10 * unit.Second, ProbeError: spread}, s, nil, job(100, func(j *workload.Job, t *workload.Truth) {
			j.Menu, j.Sizes = offers, []int32{1, 2, 3}
			j.Phase = workload.Phase{Compute: unit.Second, Communicate: unit.Second}
		}))
		ends(t, "measured with one worker and with two", got[0], 20+100)
	}
	if off := float64(believed[.1])/1.8e6 - 1; believed[0] != 1_800_000 || off == 0 || off < -.4 || off > .4 {
		t.Errorf("with two workers it is believed to go at %d, and where that is measured with an error at %d", believed[0], believed[.1])
	}
	if offers[1].Rate != 1.8 {
		t.Error("the source's own menu was changed")
	}
}
