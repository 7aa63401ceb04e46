package calendar_test

import (
	"fmt"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// scene is nodes of 4 devices on which runs of a given expected end are put.
type scene struct {
	s    *plan.State
	cal  calendar.Calendar
	ends map[plan.RunID]unit.Time
}

func newScene(nodes int) *scene {
	sc := &scene{s: plan.NewState(cluster.Uniform("gpus", nodes, 4, cluster.Model{Name: "gpu"}, 2)), ends: map[plan.RunID]unit.Time{}}
	sc.s.Now = 100
	return sc
}

// job admits a gang of so many workers of one device.
func (sc *scene) job(workers int32) plan.JobID {
	sc.s.Shapes = append(sc.s.Shapes, plan.Shape{Gang: workers, Devices: 1, Share: 1000, Models: 1})
	return sc.s.Admit("job", plan.Asked{Shape: int32(len(sc.s.Shapes) - 1)})
}

// run puts a run on so many devices of a node.
func (sc *scene) run(node plan.NodeID, devices int32, end unit.Time) plan.RunID {
	d := sc.s.Edit()
	run, _ := d.Start(sc.job(devices), []plan.Slot{{Node: node, Device: plan.None, Workers: devices}}, plan.DefaultTerms(), plan.Reason{})
	d.Commit()
	sc.s.Dispatch(run)
	sc.s.Began(run)
	sc.ends[run] = end
	return run
}

func (sc *scene) look() {
	sc.cal.Look(sc.s.View(), func(run plan.RunID) (unit.Time, bool) { return sc.ends[run], false })
}

// claim makes a claim for a new gang and writes it down.
func (sc *scene) claim(t *testing.T, workers int32, length unit.Duration) string {
	t.Helper()
	sc.look()
	claim, ok := sc.cal.Earliest(sc.job(workers), workers, length)
	if !ok {
		return "none"
	}
	sc.cal.Insert(len(sc.cal.Claims()), claim)
	return text(claim)
}

func text(c plan.Claim) string {
	at := fmt.Sprint(c.At)
	if c.At == unit.Never {
		at = "never"
	}
	for _, p := range c.Parts {
		at += fmt.Sprintf(" %d:%d", p.Node, p.Devices)
	}
	return at
}

func TestEarliestChooses(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(sc *scene)
		gang int32
		want string
	}{
		{"the node that comes free first", func(sc *scene) { sc.run(0, 4, 300); sc.run(1, 4, 200); sc.run(2, 3, 250) }, 2, "200 1:2"},
		{"few nodes, the one that comes free last", func(sc *scene) { sc.run(0, 2, 300); sc.run(1, 4, 200); sc.run(2, 4, 250) }, 7, "250 1:3 2:4"},
		{"the tightest that holds the rest", func(sc *scene) { sc.run(0, 4, 200); sc.run(1, 4, 200); sc.run(2, 3, unit.Never) }, 9, "200 0:4 1:4 2:1"},
		{"the next instant where one should have ended", func(sc *scene) { sc.run(0, 4, 50); sc.run(1, 4, 300); sc.run(2, 4, 300) }, 4, "101 0:4"},
		{"no node in a window", func(sc *scene) {
			sc.run(0, 4, 200)
			sc.run(1, 4, 220)
			sc.run(2, 4, 900)
			sc.cal.SetWindows([]plan.Window{{Node: 0, From: 210, To: 400}})
		}, 4, "220 1:4"},
		{"a time before a window", func(sc *scene) {
			sc.run(0, 4, 150)
			sc.run(1, 4, 220)
			sc.run(2, 4, 900)
			sc.cal.SetWindows([]plan.Window{{Node: 0, From: 200, To: 400}})
		}, 4, "150 0:4"},
		{"no node that is cordoned", func(sc *scene) { sc.s.SetNode(0, plan.Cordoned); sc.run(1, 4, 200); sc.run(2, 4, 300) }, 4, "200 1:4"},
		{"a node again after its window", func(sc *scene) {
			sc.s.SetNode(0, plan.Cordoned)
			sc.cal.SetWindows([]plan.Window{{Node: 0, From: 50, To: 400, Open: true}})
		}, 12, "400 0:4 1:4 2:4"},
		{"what waits for the fewest unknown runs", func(sc *scene) {
			for range 4 {
				sc.run(0, 1, unit.Never)
			}
			sc.run(1, 2, unit.Never)
			sc.run(1, 2, unit.Never)
			sc.run(2, 4, unit.Never)
		}, 4, "never 2:4"},
		{"what has run longest", func(sc *scene) {
			sc.run(1, 4, unit.Never)
			sc.s.Now++
			sc.run(0, 4, unit.Never)
			sc.run(2, 4, unit.Never)
		}, 4, "never 1:4"},
		{"what is known first", func(sc *scene) { sc.run(0, 4, unit.Never); sc.run(1, 4, unit.Never); sc.run(2, 4, 500) }, 6, "never 0:2 2:4"},
		{"nothing for what cannot be", func(*scene) {}, 13, "none"},
	} {
		sc := newScene(3)
		test.set(sc)
		if got := sc.claim(t, test.gang, 50); got != test.want {
			t.Errorf("%s: a gang of %d gets %s, want %s", test.name, test.gang, got, test.want)
		}
	}
}

func TestRevise(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(sc *scene, a, b plan.RunID)
		want   string
		due    unit.Time
	}{
		{"nothing", func(*scene, plan.RunID, plan.RunID) {}, "200 0:4", 200},
		{"a place as early", func(sc *scene, a, b plan.RunID) { sc.ends[b] = 200 }, "200 0:4", 200},
		{"an earlier place", func(sc *scene, a, b plan.RunID) { sc.ends[b] = 150 }, "150 1:4", 150},
		{"an early end", func(sc *scene, a, b plan.RunID) { sc.s.EndRun(b, 0) }, "100 1:4", 100},
		{"an overrun", func(sc *scene, a, b plan.RunID) { sc.ends[a] = 400 }, "300 1:4", 200},
		{"an overrun there as well", func(sc *scene, a, b plan.RunID) { sc.ends[a], sc.ends[b] = 260, 270 }, "260 0:4", 200},
		{"an overrun when it is due", func(sc *scene, a, b plan.RunID) { sc.s.Now, sc.ends[a] = 200, 400 }, "400 0:4", 200},
		{"an end that is no longer known", func(sc *scene, a, b plan.RunID) { sc.s.Now, sc.ends[a] = 200, unit.Never }, "never 0:4", 200},
		{"a cordon", func(sc *scene, a, b plan.RunID) { sc.s.SetNode(0, plan.Cordoned) }, "300 1:4", 200},
		{"a cordon when it is due", func(sc *scene, a, b plan.RunID) { sc.s.Now = 200; sc.s.SetNode(0, plan.Cordoned) }, "300 1:4", 200},
		{"a lost device", func(sc *scene, a, b plan.RunID) { sc.s.EndRun(a, 0); sc.s.SetDevice(0, plan.Lost) }, "300 1:4", 200},
		{"a window", func(sc *scene, a, b plan.RunID) {
			sc.cal.SetWindows([]plan.Window{{Node: 0, From: 220, To: 260}})
		}, "260 0:4", 200},
		{"a window later on", func(sc *scene, a, b plan.RunID) {
			sc.cal.SetWindows([]plan.Window{{Node: 0, From: 250, To: 260}})
		}, "200 0:4", 200},
	} {
		sc := newScene(2)
		a, b := sc.run(0, 4, 200), sc.run(1, 4, 300)
		if got := sc.claim(t, 4, 50); got != "200 0:4" {
			t.Fatalf("the claim is %s", got)
		}
		test.change(sc, a, b)
		sc.look()
		if lost := sc.cal.Revise(nil); len(lost) > 0 {
			t.Errorf("%s: the claims of %v are given up", test.name, lost)
			continue
		}
		if got := sc.cal.Claims()[0]; text(got) != test.want || got.Due != test.due {
			t.Errorf("%s: the claim is %s, due at %d, want %s, due at %d", test.name, text(got), got.Due, test.want, test.due)
		}
	}
}

// A place that is better for one claim and takes the room of another is not taken; a
// claim that has to move goes before those ranked below it.
func TestRanks(t *testing.T) {
	sc := newScene(2)
	a, b := sc.run(0, 4, 200), sc.run(1, 4, 300)
	sc.claim(t, 4, 50)
	sc.claim(t, 4, 100)
	sc.ends[b] = 150
	check := func(step string, want ...string) {
		t.Helper()
		sc.look()
		sc.cal.Revise(nil)
		for i, cl := range sc.cal.Claims() {
			if text(cl) != want[i] {
				t.Errorf("%s: claim %d is %s, want %s", step, i, text(cl), want[i])
			}
		}
	}
	check("the other node is free earlier", "150 1:4", "200 0:4")
	sc.ends[a], sc.ends[b] = 200, 500
	check("and then is not", "200 0:4", "250 0:4")
	sc.s.SetNode(0, plan.Cordoned)
	check("one node", "500 1:4", "550 1:4")
	sc.s.SetNode(1, plan.Cordoned)
	sc.look()
	if lost := sc.cal.Revise(nil); fmt.Sprint(lost) != "[2 3]" || !sc.cal.Empty() {
		t.Errorf("no node is left and the claims of %v are given up", lost)
	}
}

// Once a claim is due no other work gets its room, however short; before, what ends
// in time does.
func TestHoldsClose(t *testing.T) {
	sc := newScene(1)
	run := sc.run(0, 2, 200)
	sc.claim(t, 3, 50)
	other := sc.job(1)
	for _, test := range []struct {
		now, until unit.Time
		want       int32
	}{{100, 200, 0}, {100, 201, 1}, {200, 201, 2}, {260, 261, 2}} {
		sc.s.Now = test.now
		sc.ends[run] = max(200, test.now+40)
		sc.look()
		sc.cal.Revise(nil)
		held := int32(0)
		for _, h := range sc.cal.Holds(other, test.until, nil) {
			held += h.Devices
		}
		if closed := test.now >= 200; closed != (sc.cal.Wake(test.now) == unit.Never) {
			t.Errorf("at %d the calendar wants to be asked again at %d", test.now, sc.cal.Wake(test.now))
		}
		if held != test.want {
			t.Errorf("at %d, from work until %d, %d devices are held, want %d", test.now, test.until, held, test.want)
		}
	}
}

func TestEnds(t *testing.T) {
	sc := newScene(1)
	run := sc.run(0, 1, 0)
	for _, test := range []struct {
		name            string
		estimate, limit unit.Duration
		now, want       unit.Time
	}{
		{"nothing known", 0, 0, 150, unit.Never},
		{"an estimate", 80, 0, 150, 180},
		{"an estimate that was outlived", 40, 0, 150, 180},
		{"outlived twice", 20, 0, 150, 180},
		{"at its end", 50, 0, 150, 151},
		{"a limit", 0, 70, 150, 170},
		{"a limit before the estimate", 80, 70, 150, 170},
		{"past its limit", 80, 40, 150, 151},
	} {
		sc.s.Jobs[0].Estimate, sc.s.Jobs[0].TimeLimit, sc.s.Now = test.estimate, test.limit, test.now
		if got := calendar.Ends(sc.s.View(), run); got != test.want {
			t.Errorf("%s: the end is at %d, want %d", test.name, got, test.want)
		}
	}
}
