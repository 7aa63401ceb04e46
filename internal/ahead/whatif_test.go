package ahead_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
)

func strategy(t testing.TB, name string) func() (schedule.Scheduler, error) {
	t.Helper()
	c, err := catalogue.Parse("test", name)
	if err != nil {
		t.Fatal(err)
	}
	return func() (schedule.Scheduler, error) {
		built, err := c.Build(catalogue.Env{Seed: 1}, true)
		return built.Scheduler, err
	}
}

// job takes so many devices, and as long as is declared; it can save when asked.
func job(name string, devices int32, takes unit.Duration) workload.Job {
	return workload.Job{Name: name, Resources: workload.Resources{Gang: devices, Devices: 1, Share: unit.Whole}, Estimate: takes,
		Checkpoint: workload.Checkpoint{OnRequest: true, Save: 2 * unit.Second, Load: 3 * unit.Second}}
}

// busy is two nodes of two devices at an instant: one job of two devices has run for
// 10 s of 100 and one for 10 s of 40; the others wait.
func busy(t testing.TB, name string, others ...workload.Job) ahead.Config {
	t.Helper()
	c := cluster.Uniform("small", 2, 2, cluster.Model{Name: "gpu", Speed: 1}, 2)
	sched := strategy(t, name)
	s, err := sched()
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(c, s, engine.DefaultPolicy())
	for i, j := range append([]workload.Job{job("long", 2, 100*unit.Second), job("short", 2, 40*unit.Second)}, others...) {
		e.Step(0, []engine.Event{{Kind: engine.Submit, Spec: &j}})
		if i < 2 {
			e.Step(0, []engine.Event{{Kind: engine.Started, Job: plan.JobID(i), Attempt: 1}})
		}
	}
	e.Step(unit.Time(10*unit.Second), []engine.Event{{Kind: engine.Tick}})
	return ahead.Config{State: e.State(), Scheduler: sched, Policy: engine.DefaultPolicy()}
}

// queued is busy with one job of four devices and 50 s waiting, and behind it, since
// nobody passes, one of one device and 20 s.
func queued(t testing.TB) ahead.Config {
	return busy(t, "fifo-strict", job("wide", 4, 50*unit.Second), job("small", 1, 20*unit.Second))
}

// look runs a future and returns the seconds at which each of its jobs starts and ends.
func look(t *testing.T, c ahead.Config) (ahead.Future, map[string][2]float64) {
	t.Helper()
	f, err := ahead.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Result.Balanced {
		t.Errorf("the books do not balance: %+v", f.Result.Ledger)
	}
	times := map[string][2]float64{}
	for _, x := range f.Fates {
		at := [2]float64{-1, -1}
		for i, instant := range [2]unit.Time{x.Start, x.End} {
			if instant != unit.Never {
				at[i] = instant.Seconds()
			}
		}
		times[x.Name] = at
	}
	return f, times
}

// TestWhatIf: small changes whose effects can be computed by hand.
func TestWhatIf(t *testing.T) {
	gpu := cluster.Model{Name: "gpu", Speed: 1}
	node := func(m cluster.Model, count int) ahead.NewNode {
		return ahead.NewNode{Node: cluster.Node{Name: "more", CPU: 64 * unit.Whole, Memory: 1 << 20}, Devices: m, Count: count}
	}
	for _, x := range []struct {
		name   string
		change ahead.Change
		want   map[string][2]float64
	}{
		{"nothing", ahead.Change{},
			map[string][2]float64{"long": {-1, 100}, "short": {-1, 40}, "wide": {100, 150}, "small": {150, 170}}},
		{"another strategy fills in", ahead.Change{Scheduler: strategy(t, "fifo")},
			map[string][2]float64{"long": {-1, 100}, "short": {-1, 40}, "wide": {100, 150}, "small": {40, 60}}},
		{"a node more", ahead.Change{Add: []ahead.NewNode{node(gpu, 4)}},
			map[string][2]float64{"long": {-1, 100}, "short": {-1, 40}, "wide": {10, 60}, "small": {40, 60}}},
		{"a node of a new, faster model", ahead.Change{Add: []ahead.NewNode{node(cluster.Model{Name: "new", Speed: 2}, 4)}},
			map[string][2]float64{"long": {-1, 100}, "short": {-1, 40}, "wide": {10, 35}, "small": {35, 45}}},
		// What runs there saves for 2 s. It has 90 s left and is the first in the queue.
		{"a node less", ahead.Change{Remove: []plan.NodeID{0}},
			map[string][2]float64{"long": {43, 133}, "short": {-1, 40}, "wide": {-1, -1}, "small": {-1, -1}}},
		{"a node for another", ahead.Change{Remove: []plan.NodeID{0}, Add: []ahead.NewNode{node(gpu, 2)}},
			map[string][2]float64{"long": {15, 105}, "short": {-1, 40}, "wide": {105, 155}, "small": {155, 175}}},
		{"one job more", ahead.Change{Submit: []ahead.Arrival{{Job: job("extra", 2, 30*unit.Second)}}},
			map[string][2]float64{"long": {-1, 100}, "short": {-1, 40}, "wide": {100, 150}, "small": {150, 170}, "extra": {150, 180}}},
		{"one job is cancelled", ahead.Change{First: []engine.Event{{Kind: engine.Cancel, Job: 2}}},
			map[string][2]float64{"long": {-1, 100}, "short": {-1, 40}, "wide": {-1, 10}, "small": {40, 60}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, err := queued(t).With(x.change)
			if err != nil {
				t.Fatal(err)
			}
			_, got := look(t, c)
			if len(got) != len(x.want) {
				t.Errorf("it has fates of %d jobs, %d were expected", len(got), len(x.want))
			}
			for name, want := range x.want {
				if got[name] != want {
					t.Errorf("%s starts and ends at %v s, by hand it is %v", name, got[name], want)
				}
			}
		})
	}
}

// TestVictims: a short job under a strategy that displaces says whom it displaces, and
// a comparison says who is later for it.
func TestVictims(t *testing.T) {
	base := busy(t, "srtf+declared")
	c, err := base.With(ahead.Change{Submit: []ahead.Arrival{{Job: job("urgent", 3, 5*unit.Second)}}})
	if err != nil {
		t.Fatal(err)
	}
	before, _ := look(t, base)
	f, got := look(t, c)
	urgent, ok := f.Find("urgent")
	if !ok {
		t.Fatal("the job that was submitted has no fate")
	}
	victims := f.Victims(urgent.Job)
	var names []string
	for _, v := range victims {
		names = append(names, v.Name)
	}
	// Both save for 2 s, then it starts.
	if strings.Join(names, " ") != "long short" || got["urgent"] != [2]float64{12, 17} {
		t.Errorf("urgent displaces %v and has %v: by hand it is long and short, and it runs from 12 to 17 s", names, got["urgent"])
	}
	d := ahead.Compare(&before, &f)
	if len(d.Come) != 1 || d.Come[0] != "urgent" || len(d.Gone)+d.Same != 0 || len(d.Moved) != 2 {
		t.Fatalf("%v came, %v went, %d are the same, %d moved", d.Come, d.Gone, d.Same, len(d.Moved))
	}
	// From 17 s on both restore for 3 s.
	if m := d.Moved; m[0].Name != "long" || m[0].EndBy != 10*unit.Second || m[1].EndBy != 10*unit.Second {
		t.Errorf("both end 10 s later by hand, the comparison says %+v", m)
	}
	a, b := d.Alternative, d.Base
	if a.Displacements != 2 || b.Displacements != 0 || a.Both != 2 || a.MeanJCT-b.MeanJCT != 10*unit.Second || a.Utilization <= b.Utilization || len(a.Share) == 0 {
		t.Errorf("the sums are wrong: %+v, %+v", b, a)
	}
}

// TestSwitched: a future under another strategy commits the bytes of a live engine that
// changes its strategy at that instant.
func TestSwitched(t *testing.T) {
	names := []string{"fifo", "fifo-strict", "las", "tiresias", "srtf+declared"}
	draws.Check(t, func(t *rapid.T) {
		h := drawLived(t, names)
		l := live{t: t, h: &h}
		l.run()
		other := h
		other.strategy, _ = catalogue.Parse("test", rapid.SampledFrom(names).Draw(t, "other"))
		again := live{t: t, h: &h, cut: rapid.IntRange(1, l.steps).Draw(t, "cut"), to: &other}
		again.run()
		config, err := h.ahead(again.saved).With(ahead.Change{Scheduler: other.scheduler})
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		config.Decisions = &got
		if _, err := ahead.Run(context.Background(), config); err != nil {
			t.Fatal(err)
		}
		if want := after(again.saved, again.lines); !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("to %s at %s:\n%sthe future decides\n%s\nthe live engine\n%s", other.strategy.Text, unit.Duration(again.saved.Now), &h, got.Bytes(), want)
		}
	})
}

// TestGrow: whatever the State, it is legal with more nodes, of old and new models.
func TestGrow(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		h := drawHistory(t, strategies)
		steps, _, _ := h.simulate(t, 0)
		_, saved, _ := h.simulate(t, rapid.IntRange(1, steps).Draw(t, "cut"))
		grown, err := ahead.Grow(saved, []ahead.NewNode{
			{Node: cluster.Node{Name: "a", CPU: 64 * unit.Whole, Memory: 1 << 20}, Devices: cluster.Model{Name: "gpu"}, Count: 3},
			{Node: cluster.Node{Name: "b", CPU: 64 * unit.Whole, Memory: 1 << 20}, Devices: cluster.Model{Name: "other", Memory: 32 << 10, Speed: 2}, Count: 2}})
		if err != nil {
			t.Fatal(err)
		}
		if len(grown.Devices) != len(saved.Devices)+5 || len(saved.Cluster.Nodes) != len(saved.Nodes) {
			t.Fatalf("%d devices became %d", len(saved.Devices), len(grown.Devices))
		}
		config := h.ahead(saved)
		config.State = grown
		config.Step = func(at unit.Time, _ []engine.Event, _ *engine.Out, _ plan.View) {}
		if f, err := ahead.Run(context.Background(), config); err != nil || !f.Result.Balanced {
			t.Fatalf("%v\n%s", err, &h)
		}
	})
	for _, n := range []ahead.NewNode{{Node: cluster.Node{Rack: 7}, Devices: cluster.Model{Name: "gpu"}}, {Count: 3}, {Devices: cluster.Model{Name: "gpu"}, Count: -1}} {
		if _, err := ahead.Grow(queued(t).State, []ahead.NewNode{n}); err == nil {
			t.Errorf("a node %+v is added", n)
		}
	}
}

// TestBelieved: what is believed where, and what happens to beliefs that are outlived.
func TestBelieved(t *testing.T) {
	c := cluster.Uniform("small", 4, 4, cluster.Model{Name: "gpu", Speed: 1}, 4)
	sched, err := strategy(t, "fifo")()
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(c, sched, engine.DefaultPolicy())
	submit := func(class, tenant string, estimate unit.Duration) plan.JobID {
		j := job(class+tenant+string(rune('a'+e.View().Jobs())), 1, estimate)
		j.Class, j.Tenant = class, tenant
		id := plan.JobID(e.View().Jobs())
		e.Step(e.View().Now(), []engine.Event{{Kind: engine.Submit, Spec: &j}})
		e.Step(e.View().Now(), []engine.Event{{Kind: engine.Started, Job: id, Attempt: 1}})
		return id
	}
	first := submit("a", "x", 0)
	if got := ahead.Believed(e.View(), 0)(e.View(), first); got != ahead.Unheard {
		t.Errorf("with nothing known a job is believed to take %s, not %s", got, ahead.Unheard)
	}
	for _, took := range []unit.Duration{30 * unit.Second, 50 * unit.Second} {
		id := submit("a", "x", 0)
		e.Step(e.View().Now().Add(took), []engine.Event{{Kind: engine.Exited, Job: id, Attempt: 1, Ending: engine.Ending{Kept: took}}})
	}
	like, unlike, told := submit("a", "x", 0), submit("b", "x", 0), submit("a", "x", 7*unit.Second)
	id := submit("b", "y", 0)
	e.Step(e.View().Now(), []engine.Event{{Kind: engine.Exited, Job: id, Attempt: 1, Ending: engine.Ending{Kept: 10 * unit.Second}}})
	now := e.View().Now()
	for _, x := range []struct {
		name string
		job  plan.JobID
		past unit.Duration // since the state
		want unit.Duration
	}{
		{"the mean of its class and tenant", like, 0, 40 * unit.Second},
		{"the mean of all", unlike, 0, 30 * unit.Second},
		{"its estimate", told, 0, 7 * unit.Second},
		{"its estimate, to the end", told, 7 * unit.Second, 7 * unit.Second},
		{"doubled", told, 7*unit.Second + 1, 14 * unit.Second},
		{"doubled twice", told, 15 * unit.Second, 28 * unit.Second},
		{"a mean, doubled", like, 41 * unit.Second, 80 * unit.Second},
		{"it has run for 80 s before the state", first, 0, 80 * unit.Second},
	} {
		if got := ahead.Believed(e.View(), now.Add(x.past))(e.View(), x.job); got != x.want {
			t.Errorf("%s: %s, by hand it is %s", x.name, got, x.want)
		}
	}
}

// TestBounds: a future ends where it is told to, and its memory can be used again.
func TestBounds(t *testing.T) {
	base := queued(t)
	was, err := base.State.Clone()
	if err != nil {
		t.Fatal(err)
	}
	var memory ahead.Memory
	for _, x := range []struct {
		name  string
		vary  func(*ahead.Config)
		ended ahead.Ending
		jobs  int64 // that end
	}{
		{"all", func(*ahead.Config) {}, ahead.AllOver, 4},
		{"asked", func(c *ahead.Config) { c.Asked = []plan.JobID{2} }, ahead.AllAnswered, 3},
		{"steps", func(c *ahead.Config) { c.Steps = 2 }, ahead.OutOfSteps, 1},
		{"horizon", func(c *ahead.Config) { c.Horizon = 91 * unit.Second }, ahead.AtHorizon, 2},
		{"held", func(c *ahead.Config) { c.First = []engine.Event{{Kind: engine.Hold, Job: 2}} }, ahead.AllOver, 3},
		{"later", func(c *ahead.Config) { c.Now = unit.Time(30 * unit.Second) }, ahead.AllOver, 4},
	} {
		c := base
		x.vary(&c)
		f, err := memory.Run(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		if f.Ended != x.ended || f.Result.Finished != x.jobs || !f.Result.Balanced {
			t.Errorf("%s: it ends as %q with %d jobs finished (balanced %v)", x.name, f.Ended, f.Result.Finished, f.Result.Balanced)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ahead.Run(ctx, base); !errors.Is(err, context.Canceled) {
		t.Errorf("a future that nobody waits for: %v", err)
	}
	var a, b bytes.Buffer
	if err := errors.Join(was.Save(&a), base.State.Save(&b)); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("looking ahead has changed the State")
	}
	base.Later = []simulated.Later{{Event: engine.Event{Kind: engine.Submit}}}
	if _, err := ahead.Run(context.Background(), base); err == nil {
		t.Error("a submission is taken as an event")
	}
}

// TestRefused: a job that the cluster does not take is an error that says so; one that
// never fits is one that does not start.
func TestRefused(t *testing.T) {
	for _, x := range []struct {
		name string
		job  workload.Job
		want string
	}{
		{"a name that is taken", job("long", 1, 1), "already there"},
		{"too large", job("huge", 64, unit.Second), ""},
	} {
		c, err := queued(t).With(ahead.Change{Submit: []ahead.Arrival{{Job: x.job}}})
		if err != nil {
			t.Fatal(err)
		}
		f, err := ahead.Run(context.Background(), c)
		if x.want != "" {
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %v", x.name, err)
			}
			continue
		}
		if fate, ok := f.Find(x.job.Name); err != nil || !ok || fate.Start != unit.Never || fate.Outcome != report.Unfinished || fate.Reason.Code != plan.Unsatisfiable {
			t.Errorf("%s: %+v, %v", x.name, fate, err)
		}
	}
}
