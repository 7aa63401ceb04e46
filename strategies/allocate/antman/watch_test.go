package antman

import (
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// planned is a state with one device, on which a job runs by a plan that leaves so much.
func planned(t *testing.T, spare workload.Spare) (s *plan.State, host plan.JobID) {
	t.Helper()
	s = plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Memory: 24 << 10, Speed: 1}, 1))
	host, _ = admit(s, 1, 900)
	d := s.Edit()
	terms := plan.DefaultTerms()
	terms.Plan.ID = d.PlanID(plan.Pipeline{Schedule: "tp1 pp2", Spare: spare})
	run, why := d.Start(host, []plan.Slot{{Device: plan.None, Workers: 1}}, terms, plan.Reason{})
	if run == plan.None {
		t.Fatal(why)
	}
	d.Commit()
	s.Runs[run].Status = plan.Running
	return s, host
}

// TestWatch: a host that goes by a plan is seen alone before it takes a guest. While it goes no
// more than 3 % slower beside it, the guest stays; else it ends and no other comes, also after
// what the strategy remembers was written down and read.
func TestWatch(t *testing.T) {
	s, host := planned(t, workload.Spare{IdleMicro: 200_000, Window: 20 * unit.Millisecond})
	p := New(Default())
	guest, shape := admit(s, 1, 0)
	comes := func() bool {
		return len(p.Place(s.View(), allocate.Need{Job: guest, Workers: 1, Shape: shape}, 1, nil)) > 0
	}
	if comes() {
		t.Error("a guest comes before its host was seen alone")
	}
	goesAt := func(micro int64) { s.Runs[s.Jobs[host].Run].RateMicro = micro }
	goesAt(900_000)
	if out, opened := p.Unwelcome(s.View(), []plan.JobID{host}); len(out) > 0 || !opened || !comes() {
		t.Fatalf("seen alone the host is not open: %v", out)
	}
	place(t, s, p, guest, shape)
	for _, at := range []struct {
		micro int64
		goes  bool
	}{{900_000, false}, {873_000, false}, {872_999, true}, {900_000, true}} {
		goesAt(at.micro)
		out, _ := p.Unwelcome(s.View(), []plan.JobID{host, host})
		if goes := len(out) > 0; goes != at.goes || goes && (len(out) != 1 || out[0] != allocate.Guest{Run: s.Jobs[guest].Run, Host: host}) {
			t.Errorf("at %d: %v", at.micro, out)
		}
		memory := p.Remember()
		if p = New(Default()); p.Recall(memory) != nil {
			t.Fatal("the memory cannot be read")
		}
	}
	d := s.Edit()
	d.Stop(s.Jobs[guest].Run, plan.Reason{Code: plan.Unpacked, A: int64(host)}, 0)
	if comes() {
		t.Error("a guest comes to a host that was slowed by one")
	}
	d.Discard()
}

// TestMeasured: where rates are measured, a host is seen alone once its rate is known as well as harm
// is to be told by it, and guests end only for what is sure. Alone again it goes faster, or what
// slowed it was not its guests: then others come.
func TestMeasured(t *testing.T) {
	for _, c := range []struct {
		name  string
		again int64 // its rate when it is alone again
		comes bool
	}{{"guests", 1_000_000, false}, {"others", 960_000, true}} {
		s, host := planned(t, workload.Spare{IdleMicro: 200_000, Window: 20 * unit.Millisecond})
		p := New(Default())
		guest, shape := admit(s, 1, 0)
		run := s.Jobs[host].Run
		sees := func(micro int64, off plan.Off) (ends, opened bool) {
			s.Runs[run].RateMicro = micro
			s.Doubt(run, off)
			out, opened := p.Unwelcome(s.View(), []plan.JobID{host})
			return len(out) > 0, opened
		}
		for _, off := range []plan.Off{plan.Unmeasured, {Less: 30_001, More: 1}} {
			if _, opened := sees(1_000_000, off); opened {
				t.Fatalf("%s: a host whose rate may be off by %+v is open", c.name, off)
			}
		}
		if _, opened := sees(1_000_000, plan.Off{Less: 20_000, More: 50_000}); !opened {
			t.Fatalf("%s: seen alone the host is not open", c.name)
		}
		place(t, s, p, guest, shape)
		for _, at := range []struct {
			micro int64
			off   plan.Off
			ends  bool
		}{{500_000, plan.Unmeasured, false}, {940_000, plan.Off{Less: 100_000, More: 10_600}, false}, {940_000, plan.Off{Less: 1, More: 10_599}, true}} {
			if ends, _ := sees(at.micro, at.off); ends != at.ends {
				t.Errorf("%s: at %d, off by %+v: guests end: %v", c.name, at.micro, at.off, ends)
			}
		}
		s.EndRun(s.Jobs[guest].Run, 0)
		for _, unseen := range []plan.Off{{Less: 1, More: 10_599}, plan.Unmeasured} {
			if _, opened := sees(940_000, unseen); opened {
				t.Errorf("%s: it is open before anybody saw it alone", c.name)
			}
		}
		if _, opened := sees(c.again, plan.Off{Less: 5000, More: 5000}); opened != c.comes {
			t.Errorf("%s: alone again at %d it is open: %v", c.name, c.again, opened)
		}
		memory := p.Remember()
		if p = New(Default()); p.Recall(memory) != nil || p.Shut(s.View(), host) == c.comes {
			t.Errorf("%s: that is not remembered", c.name)
		}
		if c.comes {
			continue
		}
		if _, opened := sees(900_000, plan.Off{}); opened {
			t.Error("what was proven is forgotten")
		}
	}
}

// TestOpens: windows so short that half of them or more is spent on handing over, a host that
// this would slow by more than it may be, and one whose plan leaves nothing take no guest.
func TestOpens(t *testing.T) {
	c := New(Default()) // 2 ms to hand over, 3 % of harm
	for _, x := range []struct {
		idleMicro int64
		window    unit.Duration
		want      bool
	}{{0, 0, false}, {50_000, 3999, false}, {50_000, 4000, true}, {90_000, 6000, true}, {90_001, 6000, false}, {500_000, 33_000, false}, {500_000, 34_000, true}} {
		if got := c.Opens(workload.Spare{IdleMicro: x.idleMicro, Window: x.window}); got != x.want {
			t.Errorf("%d millionths in windows of %v: %v", x.idleMicro, x.window, got)
		}
	}
	s, host := planned(t, workload.Spare{IdleMicro: 500_000, Window: unit.Millisecond})
	p := New(Default())
	if _, opened := p.Unwelcome(s.View(), []plan.JobID{host}); opened {
		t.Error("a host with windows of a millisecond is open")
	}
	guest, shape := admit(s, 1, 0)
	if found := p.Place(s.View(), allocate.Need{Job: guest, Workers: 1, Shape: shape}, 1, nil); len(found) > 0 {
		t.Errorf("it takes a guest: %+v", found)
	}
}

// TestOneKind: a gang of guests is on devices of one model, of which there are enough.
func TestOneKind(t *testing.T) {
	c := cluster.Uniform("two", 1, 1, cluster.Model{Name: "fast", Memory: 24 << 10, Speed: 1}, 1)
	slow := c.AddModel(cluster.Model{Name: "slow", Memory: 24 << 10, Speed: .1})
	c.AddNode(cluster.Node{Name: "n", Model: slow, CPU: 16000, Memory: 64 << 10}, 2)
	s := plan.NewState(c)
	p := New(Default())
	id, shape := admit(s, 2, 0)
	if got, ok := place(t, s, p, id, shape); !ok || got.Slots[0].Device != 1 || got.Slots[1].Device != 2 {
		t.Errorf("%v: %+v", ok, got.Slots)
	}
}
