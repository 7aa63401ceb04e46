package plan_test

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// oneDevice is a state of one node with one device of 16 GiB, cut as one likes.
func oneDevice(t *testing.T, jobs ...plan.Shape) *plan.State {
	t.Helper()
	part := func(milli unit.Milli, start int32) cluster.Part {
		return cluster.Part{Milli: milli, Memory: 4 << 10, Start: start}
	}
	c := cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Memory: 16 << 10, Geometries: []cluster.Geometry{
		{Name: "whole"},
		{Name: "left", Parts: []cluster.Part{part(250, 0)}},
		{Name: "both", Parts: []cluster.Part{part(250, 0), part(250, 1)}},
		{Name: "right", Parts: []cluster.Part{part(250, 1)}},
	}}, 1)
	s := plan.NewState(c)
	for i, shape := range jobs {
		shape.Models = 1
		s.Shapes = append(s.Shapes, shape)
		s.Admit("job", plan.Asked{Shape: int32(i), Profile: plan.None})
	}
	return s
}

func whole(memory int32) plan.Shape {
	return plan.Shape{Gang: 1, Devices: 1, Share: 1000, Memory: memory}
}

func guestOf(job plan.JobID) plan.Terms {
	t := plan.DefaultTerms()
	t.Share.Guest = job
	return t
}

// TestGuests: a guest reserves nothing, takes only memory that is there, and gives way
// to whoever needs it.
func TestGuests(t *testing.T) {
	s := oneDevice(t, whole(8<<10), whole(6<<10), whole(6<<10), whole(12<<10))
	host := started(t, s, 0, plan.Slot{Device: 0, Workers: 1}, plan.DefaultTerms())
	guest := started(t, s, 1, plan.Slot{Device: 0, Workers: 1}, guestOf(0))
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if d := s.View().Device(0); d.Free != 0 || d.FreeMemory != 8<<10 {
		t.Errorf("the device has %d thousandths and %d MiB free beside its host", d.Free, d.FreeMemory)
	}
	d := s.Edit()
	if _, why := d.Start(2, []plan.Slot{{Device: 0, Workers: 1}}, guestOf(0), plan.Reason{}); why.Code == plan.NoReason {
		t.Error("a second guest was taken in without memory for it")
	}
	d.Discard()

	// The host goes; who comes next needs the guest's memory.
	s.EndRun(host, unit.Hour)
	s.SetPhase(0, plan.Finished, plan.Reason{})
	d = s.Edit()
	run, why := d.Start(3, []plan.Slot{{Device: 0, Workers: 1}}, plan.DefaultTerms(), plan.Reason{})
	if why.Code != plan.NoReason {
		t.Fatalf("a job whose device has only a guest cannot start: %s", why.Words(s.View()))
	}
	changes, _ := d.Commit()
	if len(changes) != 2 || changes[0].Verb != plan.Stop || changes[0].Run != guest || changes[1].Run != run || len(changes[1].After) != 1 {
		t.Errorf("expected the guest to be stopped and the start to wait for that, got %+v", changes)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestParts: a device may be cut another way beside a part in use only if that stays
// where it is, and nobody gets a part that somebody has.
func TestParts(t *testing.T) {
	quarter := plan.Shape{Gang: 1, Devices: 1, Share: 250, Memory: 4 << 10}
	s := oneDevice(t, quarter, quarter)
	reshape := func(geometry int16) bool {
		d := s.Edit()
		ok := d.Reshape(0, geometry, plan.Reason{})
		d.Commit()
		if ok {
			s.SetDevice(0, plan.Steady)
		}
		return ok
	}
	if !reshape(1) {
		t.Fatal("an empty device cannot be cut")
	}
	first := started(t, s, 0, plan.Slot{Device: 0, Workers: 1}, plan.DefaultTerms())
	d := s.Edit()
	if _, why := d.Start(1, []plan.Slot{{Device: 0, Workers: 1}}, plan.DefaultTerms(), plan.Reason{}); why.Code == plan.NoReason {
		t.Error("two runs got the one part")
	}
	d.Discard()
	if reshape(3) || reshape(0) {
		t.Error("a part in use was taken away")
	}
	if !reshape(2) {
		t.Fatal("a part cannot be added beside one in use")
	}
	second := started(t, s, 1, plan.Slot{Device: 0, Workers: 1}, plan.DefaultTerms())
	s.EndRun(first, 0)
	s.SetPhase(0, plan.Finished, plan.Reason{})
	if reshape(1) || !reshape(3) {
		t.Error("the part that stays is the second one")
	}
	s.View().GrantsOf(second, func(g plan.Grant) {
		if g.Part != 1 || s.View().PartOf(g).Start != 1 {
			t.Errorf("the second run has part %d at %d", g.Part, s.View().PartOf(g).Start)
		}
	})
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestRent: a rental is not there before it was sent for and has come, and is not given
// back while anything is on it.
func TestRent(t *testing.T) {
	c := cluster.Uniform("two", 2, 1, cluster.Model{Name: "gpu", Memory: 16 << 10}, 2)
	c.Nodes[1].Rental = true
	s := plan.NewState(c)
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}
	s.Admit("job", plan.Asked{Profile: plan.None})
	if free := s.View().Room().Free(1); free != 1 {
		t.Fatalf("%d devices are free beside a rental that is away", free)
	}
	d := s.Edit()
	if d.Rent(0, plan.Reason{}) || !d.Rent(1, plan.Reason{}) || d.Rent(1, plan.Reason{}) {
		t.Error("only a rental that is away can be sent for")
	}
	d.Commit()
	s.SetNode(1, plan.Up)
	run := started(t, s, 0, plan.Slot{Node: 1, Device: plan.None, Workers: 1}, plan.DefaultTerms())
	d = s.Edit()
	if d.Return(1, plan.Reason{}) {
		t.Error("a node was given back under a run")
	}
	d.Discard()
	s.EndRun(run, 0)
	d = s.Edit()
	mark := d.Mark()
	if !d.Return(1, plan.Reason{}) {
		t.Error("an idle rental cannot be given back")
	}
	d.Rollback(mark)
	if free := s.View().Room().Free(1); free != 2 {
		t.Errorf("%d devices are free after a return was taken back", free)
	}
	d.Discard()
	if err := s.Check(); err == nil {
		t.Error("the check did not miss the run of an active job")
	}
}

// TestWork: what a run has done follows its rate, as believed and then as seen, and a
// part of the running time kept keeps that part of it.
func TestWork(t *testing.T) {
	s := oneDevice(t, whole(0))
	s.Profiles = []plan.Profile{{Menu: plan.Menu{{Model: plan.None, Workers: 1, RateMicro: 500_000}}}}
	s.Jobs[0].Profile = 0
	run := started(t, s, 0, plan.Slot{Device: plan.None, Workers: 1}, plan.DefaultTerms())
	s.Now = unit.Time(unit.Hour)
	if w := s.View().Work(0); w != 30*unit.Minute {
		t.Errorf("an hour at half the rate did %s", w)
	}
	s.Observe(run, 250_000, 0)
	s.Now = unit.Time(2 * unit.Hour)
	if w := s.View().Work(0); w != 45*unit.Minute {
		t.Errorf("and another at a quarter %s in all", w)
	}
	standing := s.Copy()
	standing.Observe(run, 0, 30*unit.Minute)
	standing.Now = unit.Time(3 * unit.Hour)
	if w := standing.View().Work(0); w != 37*unit.Minute+30*unit.Second {
		t.Errorf("of the second hour it has stood the half, and all of the third: %s", w)
	}
	s.EndRun(run, unit.Hour)
	if w := s.Jobs[0].Work; w != 22*unit.Minute+30*unit.Second {
		t.Errorf("half of it kept is %s", w)
	}
}

// TestMenu: rates between two sizes are on a line, beyond the largest there is none,
// and an unlisted model goes by its speed.
func TestMenu(t *testing.T) {
	c := &cluster.Cluster{Models: []cluster.Model{{Name: "a", Speed: 1}, {Name: "b", Speed: 0.5}}}
	m := plan.Menu{{Model: plan.None, Workers: 2, RateMicro: 1_000_000}, {Model: plan.None, Workers: 4, RateMicro: 1_600_000},
		{Model: plan.None, Workers: 4, Nodes: 2, RateMicro: 1_200_000}, {Model: 0, Workers: 2, RateMicro: 1_100_000}}
	for _, x := range []struct {
		model, n int32
		several  bool
		want     int64
	}{{1, 2, false, 500_000}, {1, 3, false, 650_000}, {1, 1, false, 250_000}, {1, 5, false, 0}, {1, 4, true, 600_000},
		{0, 2, false, 1_100_000}, {0, 1, false, 550_000}, {0, 3, false, 0}, {0, 2, true, 1_100_000}} {
		if got := m.Rate(c, x.model, x.n, x.several); got != x.want {
			t.Errorf("%d on model %d, several %v: %d, want %d", x.n, x.model, x.several, got, x.want)
		}
	}
}

// TestMemoryByRank: a run that declares no memory holds of each device what its plan needs there.
func TestMemoryByRank(t *testing.T) {
	s := plan.NewState(cluster.Uniform("c", 2, 2, cluster.Model{Name: "gpu", Memory: 1000, Speed: 1}, 2))
	s.Shapes = []plan.Shape{{Gang: 4, Devices: 1, Share: 1000, Models: 1}}
	id := s.Admit("job", plan.Asked{})
	d := s.Edit()
	terms := plan.DefaultTerms()
	terms.Plan.ID = d.PlanID(plan.Pipeline{Spare: workload.Spare{Peaks: []unit.MiB{900, 2000}, PerRank: 2}})
	run, why := d.Start(id, []plan.Slot{{Node: 0, Device: plan.None, Workers: 1}, {Node: 1, Device: plan.None, Workers: 2}, {Node: 0, Device: plan.None, Workers: 1}}, terms, plan.Reason{})
	if run == plan.None {
		t.Fatal(why)
	}
	var held []int32
	d.GrantsOf(run, func(g plan.Grant) { held = append(held, g.Persist+g.Peak) })
	if want := []int32{900, 900, 1000, 1000}; !slices.Equal(held, want) {
		t.Errorf("its devices hold %d MiB, want %d: no more than there is", held, want)
	}
	d.Commit()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
