package plan_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

var update = flag.Bool("update", false, "write docs/states.md anew")

// TestStatesPage compares docs/states.md with the table of legal transitions.
func TestStatesPage(t *testing.T) {
	const page = "../docs/states.md"
	var b strings.Builder
	b.WriteString("# States\n\nThe one table of legal transitions, for every driver and the API. Written by\n`go test ./plan -run StatesPage -update`; the reasons are in `plan/transitions.go`.\n")
	last := plan.Transition{}
	for _, tr := range plan.Transitions() {
		if last.Noun != "" && (tr.Noun != last.Noun || tr.From != last.From) {
			b.WriteString(" |\n")
		}
		if tr.Noun != last.Noun {
			fmt.Fprintf(&b, "\n## %s\n\n| from | to |\n|---|---|\n", strings.ToUpper(tr.Noun[:1])+tr.Noun[1:])
		}
		if tr.Noun == last.Noun && tr.From == last.From {
			fmt.Fprintf(&b, ", %s", tr.To)
		} else {
			fmt.Fprintf(&b, "| %s | %s", tr.From, tr.To)
		}
		last = tr
	}
	b.WriteString(" |\n")
	text := b.String()
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != text {
		t.Errorf("%s does not say what the table says (%v): run go test ./plan -run StatesPage -update", page, err)
	}
}

// one returns a state of one node with so many devices and a job for each shape.
func one(devices int, model cluster.Model, shapes ...plan.Shape) *plan.State {
	s := plan.NewState(cluster.Uniform("one", 1, devices, model, 1))
	for i, shape := range shapes {
		shape.Models = 1
		if shape.Devices == 0 {
			shape.Devices = 1
		}
		s.Shapes = append(s.Shapes, shape)
		s.Admit(fmt.Sprint("job", i), plan.Asked{Shape: int32(i)})
	}
	return s
}

// started starts a job on a device and confirms it.
func started(t *testing.T, s *plan.State, job plan.JobID, slot plan.Slot, terms plan.Terms) plan.RunID {
	t.Helper()
	d := s.Edit()
	run, why := d.Start(job, []plan.Slot{slot}, terms, plan.Reason{})
	if why.Code != plan.NoReason {
		t.Fatalf("job %d cannot start: %s", job, why.Words(s.View()))
	}
	d.Commit()
	s.Dispatch(run)
	s.Began(run)
	return run
}

func turn(n int32) plan.Terms {
	t := plan.DefaultTerms()
	t.Share.Turn = n
	return t
}

// TestTurns: of those who take turns on a device one computes, and another begins only
// when that one has been suspended.
func TestTurns(t *testing.T) {
	whole := plan.Shape{Gang: 1, Share: 1000, Memory: 10}
	s := one(1, cluster.Model{Name: "gpu", Memory: 25}, whole, whole, whole)
	here := plan.Slot{Device: 0, Workers: 1}
	a := started(t, s, 0, here, turn(7))
	d := s.Edit()
	if _, why := d.Start(1, []plan.Slot{here}, turn(7), plan.Reason{}); why.Code != plan.NoRoom {
		t.Fatal("a second of a turn was started beside one that computes")
	}
	if !d.Suspend(a, plan.Reason{}) {
		t.Fatal("cannot suspend")
	}
	b, _ := d.Start(1, []plan.Slot{here}, turn(7), plan.Reason{})
	if b == plan.None {
		t.Fatal("a second of a turn cannot start after one that is suspended")
	}
	if got := d.Changes()[1].After; len(got) != 1 || got[0] != d.Changes()[0].ID {
		t.Errorf("the start waits for %v, want the suspension", got)
	}
	if _, why := d.Start(2, []plan.Slot{here}, turn(7), plan.Reason{}); why.Code != plan.NoRoom {
		t.Error("three of 10 MiB each share 25 MiB")
	}
	// The first is stopped before its suspension is confirmed: the other waits for that now.
	d.Stop(a, plan.Reason{}, 0)
	stop := d.Changes()[2].ID
	d.Commit()
	if ready := s.Confirm(stop - 2); len(ready) != 0 {
		t.Error("the suspension that never came let the second start")
	}
	s.EndRun(a, 0)
	if ready := s.Confirm(stop); len(ready) != 1 || ready[0].Run != b {
		t.Errorf("the end of the first let %v start", ready)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestSwap: what a run gives up while suspended is there for those that take turns with
// it.
func TestSwap(t *testing.T) {
	whole := plan.Shape{Gang: 1, Share: 1000, Memory: 20}
	s := one(1, cluster.Model{Name: "gpu", Memory: 25}, whole, whole)
	terms := turn(1)
	terms.Share.Swap = 18
	a := started(t, s, 0, plan.Slot{Device: 0, Workers: 1}, terms)
	d := s.Edit()
	d.Suspend(a, plan.Reason{})
	if run, _ := d.Start(1, []plan.Slot{{Device: 0, Workers: 1}}, terms, plan.Reason{}); run == plan.None {
		t.Error("2 that stay, 2 that stay and 18 that alternate do not fit 25 MiB")
	}
}

// TestPromisesAreKept: what is unoccupied but promised to a start that still waits is
// not handed over to another.
func TestPromisesAreKept(t *testing.T) {
	half := plan.Shape{Gang: 1, Share: 500}
	gang := plan.Shape{Gang: 2, Share: 500}
	s := one(2, cluster.Model{Name: "gpu"}, plan.Shape{Gang: 1, Share: 1000}, half, gang, half)
	a := started(t, s, 0, plan.Slot{Device: 0, Workers: 1}, plan.DefaultTerms())
	b := started(t, s, 1, plan.Slot{Device: 1, Workers: 1}, plan.DefaultTerms())
	d := s.Edit()
	d.Stop(a, plan.Reason{}, 0)
	d.Stop(b, plan.Reason{}, 0)
	d.Start(2, []plan.Slot{{Device: 0, Workers: 1}, {Device: 1, Workers: 1}}, plan.DefaultTerms(), plan.Reason{})
	d.Start(3, []plan.Slot{{Device: 1, Workers: 1}}, plan.DefaultTerms(), plan.Reason{})
	changes := d.Changes()
	// The gang takes the idle half of device 1 and waits for device 0; the last one must
	// not take that half while it waits.
	if got := changes[2].After; len(got) != 1 || got[0] != changes[0].ID {
		t.Errorf("the gang waits for %v, want %d", got, changes[0].ID)
	}
	if got := changes[3].After; len(got) != 1 || got[0] != changes[1].ID {
		t.Errorf("the last waits for %v, want %d", got, changes[1].ID)
	}
}

// TestPromisedIsWaiting: a job waits until its run goes to the driver, also where that was
// promised and taken back before.
func TestPromisedIsWaiting(t *testing.T) {
	whole := plan.Shape{Gang: 1, Share: 1000}
	s := one(1, cluster.Model{Name: "gpu"}, whole, whole)
	here := []plan.Slot{{Device: 0, Workers: 1}}
	a := started(t, s, 0, here[0], plan.DefaultTerms())
	promise := func() (b plan.RunID) {
		d := s.Edit()
		d.Stop(a, plan.Reason{}, 0)
		b, _ = d.Start(1, here, plan.DefaultTerms(), plan.Reason{})
		d.Commit()
		return b
	}
	pass := func(want unit.Duration) {
		t.Helper()
		s.Now = s.Now.Add(unit.Second)
		if got := s.View().WaitedFor(1); got != want*unit.Second {
			t.Errorf("it has waited %s, expected %ds", got, want)
		}
	}
	pass(1)
	b := promise()
	pass(2)
	d := s.Edit()
	d.Stop(b, plan.Reason{}, 0)
	d.Commit()
	pass(3)
	b = promise()
	pass(4)
	s.EndRun(a, 0)
	s.Dispatch(b)
	pass(4)
	s.Began(b)
	pass(4)
}

// TestCoresAreWaitedFor: cores and host memory of a stopping run are promised like its
// devices, and waited for.
func TestCoresAreWaitedFor(t *testing.T) {
	c := cluster.Uniform("one", 1, 2, cluster.Model{Name: "gpu"}, 1)
	c.Nodes[0].CPU = 1000
	s := plan.NewState(c)
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, CPU: 1000, Models: 1}}
	s.Admit("a", plan.Asked{})
	s.Admit("b", plan.Asked{})
	a := started(t, s, 0, plan.Slot{Device: 0, Workers: 1}, plan.DefaultTerms())
	d := s.Edit()
	if run, _ := d.Start(1, []plan.Slot{{Device: 1, Workers: 1}}, plan.DefaultTerms(), plan.Reason{}); run != plan.None {
		t.Fatal("one core was promised twice")
	}
	d.Stop(a, plan.Reason{}, 0)
	d.Start(1, []plan.Slot{{Device: 1, Workers: 1}}, plan.DefaultTerms(), plan.Reason{})
	if got := d.Changes()[1].After; len(got) != 1 || got[0] != d.Changes()[0].ID {
		t.Errorf("the start waits for %v, want the stop that gives it its core", got)
	}
}

// TestRegrantChangesGrants: shrinking makes room, growing needs it, and a promise has
// no terms to change yet.
func TestRegrantChangesGrants(t *testing.T) {
	whole := plan.Shape{Gang: 1, Share: 1000}
	s := one(1, cluster.Model{Name: "gpu"}, whole, whole)
	a := started(t, s, 0, plan.Slot{Device: 0, Workers: 1}, plan.DefaultTerms())
	half, full := plan.DefaultTerms(), plan.DefaultTerms()
	half.Share.Milli, full.Share.Milli = 500, 1000
	d := s.Edit()
	if !d.Regrant(a, half, plan.Reason{}) || d.Device(0).Free != 500 {
		t.Fatalf("half a device was not given up: %+v", d.Device(0))
	}
	b, _ := d.Start(1, []plan.Slot{{Device: 0, Workers: 1, Reserve: 500}}, half, plan.Reason{})
	if b == plan.None || d.Regrant(a, full, plan.Reason{}) {
		t.Error("grew into room that another holds")
	}
	if d.Regrant(b, full, plan.Reason{}) {
		t.Error("the terms of a promise were changed")
	}
	if d.Stop(b, plan.Reason{}, 0) {
		t.Error("a promise was withdrawn in the draft that made it")
	}
	d.Commit()
	d = s.Edit()
	d.Stop(b, plan.Reason{}, 0)
	if !d.Regrant(a, full, plan.Reason{}) {
		t.Error("cannot grow into room that was given back")
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestReshapeSwapsTenants: two tenants are stopped, the device is cut after them, and
// both start after the cut, in one commit.
func TestReshapeSwapsTenants(t *testing.T) {
	model := cluster.Model{Name: "gpu", Memory: 100, Geometries: []cluster.Geometry{{Name: "whole"},
		{Name: "2+5", Parts: []cluster.Part{{Milli: 280, Memory: 20}, {Milli: 570, Memory: 60}}},
		{Name: "3+4", Parts: []cluster.Part{{Milli: 430, Memory: 40}, {Milli: 570, Memory: 60}}}}}
	s := one(1, model, plan.Shape{Gang: 1, Share: 280, Memory: 20}, plan.Shape{Gang: 1, Share: 500, Memory: 60}, plan.Shape{Gang: 1, Share: 400, Memory: 30})
	d := s.Edit()
	d.Reshape(0, 1, plan.Reason{})
	d.Commit()
	s.SetDevice(0, plan.Steady)
	here := []plan.Slot{{Device: 0, Workers: 1}}
	a := started(t, s, 0, here[0], plan.DefaultTerms())
	b := started(t, s, 1, here[0], plan.DefaultTerms())
	d = s.Edit()
	if d.Reshape(0, 2, plan.Reason{}) {
		t.Fatal("a device was cut under its tenants")
	}
	if _, why := d.Start(2, here, plan.DefaultTerms(), plan.Reason{}); why.Code != plan.NoRoom {
		t.Fatal("a third tenant has no part of its own")
	}
	d.Stop(a, plan.Reason{}, 0)
	d.Stop(b, plan.Reason{}, 0)
	if !d.Reshape(0, 2, plan.Reason{}) {
		t.Fatal("cannot cut a device that is being left")
	}
	cut := d.Changes()[2]
	for _, job := range []plan.JobID{2, 1} {
		if _, why := d.Start(job, here, plan.DefaultTerms(), plan.Reason{}); why.Code != plan.NoReason {
			t.Fatalf("job %d does not fit the new parts", job)
		}
		if last := d.Changes()[len(d.Changes())-1]; len(last.After) == 0 || last.After[0] != cut.ID && last.After[1] != cut.ID {
			t.Errorf("job %d waits for %v, want the cut %d among them", job, last.After, cut.ID)
		}
	}
	if len(cut.After) != 2 {
		t.Errorf("the cut waits for %v, want both stops", cut.After)
	}
	d.Commit()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestCutDevicesAreNotWhole: a free but cut device is no room for whole devices.
func TestCutDevicesAreNotWhole(t *testing.T) {
	model := cluster.Model{Name: "gpu", Geometries: []cluster.Geometry{{Name: "whole"}, {Name: "cut", Parts: []cluster.Part{{Milli: 500}, {Milli: 500}}}}}
	s := one(2, model, plan.Shape{Gang: 1, Share: 1000})
	d := s.Edit()
	d.Reshape(0, 1, plan.Reason{})
	if free := d.Room().Free(1); free != 1 {
		t.Errorf("%d devices are wholly free, want 1", free)
	}
	run, _ := d.Start(0, []plan.Slot{{Device: plan.None, Workers: 1}}, plan.DefaultTerms(), plan.Reason{})
	if run == plan.None {
		t.Fatal("the whole device was not found")
	}
	d.GrantsOf(run, func(g plan.Grant) {
		if g.Device != 1 {
			t.Errorf("a whole device was taken from cut device %d", g.Device)
		}
	})
}

// TestNonsenseIsRefused: what an outside decider may ask for.
func TestNonsenseIsRefused(t *testing.T) {
	s := one(2, cluster.Model{Name: "gpu"}, plan.Shape{Gang: 2, Share: 1000})
	d := s.Edit()
	for _, c := range []struct {
		job   plan.JobID
		slots []plan.Slot
	}{{-1, nil}, {1, nil}, {0, nil}, {0, []plan.Slot{{Node: 5, Device: plan.None, Workers: 2}}}, {0, []plan.Slot{{Device: plan.None, Workers: 1}}},
		{0, []plan.Slot{{Device: plan.None, Workers: 3}, {Device: plan.None, Workers: -1}}}, {0, []plan.Slot{{Device: 9, Workers: 2}}},
		{0, []plan.Slot{{Device: plan.None, Workers: 2, On: []plan.DeviceID{0}}}}, {0, []plan.Slot{{Device: plan.None, Workers: 2, On: []plan.DeviceID{0, 0}}}},
		{0, []plan.Slot{{Device: plan.None, Workers: 2, Reserve: 1001}}}} {
		if run, why := d.Start(c.job, c.slots, plan.DefaultTerms(), plan.Reason{}); run != plan.None || why.Code == plan.NoReason {
			t.Errorf("job %d was started on %v", c.job, c.slots)
		}
	}
	if len(d.Changes()) != 0 {
		t.Errorf("%d changes were made", len(d.Changes()))
	}
}

// TestAdmittedIsNotRefused: a job that a decision has seen stays.
func TestAdmittedIsNotRefused(t *testing.T) {
	s := one(1, cluster.Model{Name: "gpu"}, plan.Shape{Gang: 1, Share: 1000}, plan.Shape{Gang: 1, Share: 1000})
	s.Jobs[0].Admitted = true
	d := s.Edit()
	if d.Refuse(0, plan.Reason{}) || !d.Refuse(1, plan.Reason{}) {
		t.Error("want the first kept and the second refused")
	}
}

// BenchmarkCopy copies a state of 100,000 devices, all busy, and 100,000 jobs.
func BenchmarkCopy(b *testing.B) {
	const devices = 100_000
	s := plan.NewState(cluster.Uniform("large", devices/8, 8, cluster.Model{Name: "gpu", Speed: 1}, 32))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}
	for range devices {
		s.Admit("job", plan.Asked{})
	}
	d := s.Edit()
	for id := range plan.JobID(devices) {
		if _, why := d.Start(id, []plan.Slot{{Node: plan.NodeID(id / 8), Device: plan.None, Workers: 1}}, plan.DefaultTerms(), plan.Reason{}); why.Code != plan.NoReason {
			b.Fatal(why.Words(s.View()))
		}
	}
	d.Commit()
	for _, how := range []string{"fresh", "reused"} {
		b.Run(how, func(b *testing.B) {
			c := s.Copy()
			b.ResetTimer()
			for range b.N {
				if how == "fresh" {
					c = s.Copy()
				} else {
					s.CopyInto(c)
				}
				if c.Now != s.Now || len(c.Jobs) != devices {
					b.Fatal("not a copy")
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/copy")
		})
	}
}

// TestRollbackRestoresWhatWaits: a withdrawal and a stop that took a suspension's place
// are undone, and those that wait go on as if nothing had been tried.
func TestRollbackRestoresWhatWaits(t *testing.T) {
	whole := plan.Shape{Gang: 1, Share: 1000}
	for _, leave := range []func(d *plan.Draft, run plan.RunID){
		func(d *plan.Draft, run plan.RunID) { d.Stop(run, plan.Reason{}, 0) },
		func(d *plan.Draft, run plan.RunID) { d.Suspend(run, plan.Reason{}) },
	} {
		s := one(1, cluster.Model{Name: "gpu"}, whole, whole)
		here := plan.Slot{Device: 0, Workers: 1}
		a := started(t, s, 0, here, turn(1))
		d := s.Edit()
		leave(d, a)
		leaving := d.Changes()[0].ID
		b, _ := d.Start(1, []plan.Slot{here}, turn(1), plan.Reason{})
		d.Commit()
		d = s.Edit()
		mark := d.Mark()
		if d.Stop(a, plan.Reason{}, 0); !d.Stop(b, plan.Reason{}, 0) {
			t.Fatal("a promise of an earlier draft cannot be withdrawn")
		}
		d.Rollback(mark)
		d.Commit()
		if ready := s.Confirm(leaving); len(ready) != 1 || ready[0].Run != b {
			t.Errorf("after the rollback %v is ready, want the start that waited", ready)
		}
	}
}
