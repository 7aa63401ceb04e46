package agenda_test

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/engine/agenda"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// scene is two nodes of four devices, and an agenda over them.
type scene struct {
	s      *plan.State
	agenda agenda.Agenda
	first  []plan.JobID // those within a guarantee
	turn   int64
}

func newScene(policy calendar.Policy) *scene {
	sc := &scene{s: plan.NewState(cluster.Uniform("gpus", 2, 4, cluster.Model{Name: "gpu"}, 2))}
	sc.s.Now = 100
	sc.agenda = agenda.New(policy, agenda.Rights{
		May:   func(_ plan.View, _ plan.JobID, models uint64, _ int32) uint64 { return models },
		First: func(_ plan.View, job plan.JobID) bool { return slices.Contains(sc.first, job) },
		Passes: func(_ plan.View, job, owner plan.JobID) bool {
			return slices.Contains(sc.first, job) && !slices.Contains(sc.first, owner)
		},
	})
	return sc
}

// now is the present turn of the draft.
func (sc *scene) now() agenda.Moment { return agenda.Moment{View: sc.s.View(), Turn: sc.turn} }

// open opens the agenda with the claims that the state has.
func (sc *scene) open() bool {
	return sc.agenda.Open(sc.now(), func(*plan.Claim) bool { return true })
}

// job admits a gang of so many workers of one device that is believed to take so long; 0 is that nobody knows.
func (sc *scene) job(workers int32, length unit.Duration) plan.JobID {
	sc.s.Shapes = append(sc.s.Shapes, plan.Shape{Gang: workers, Devices: 1, Share: 1000, Models: 1})
	job, d := sc.s.Admit("job", plan.Asked{Shape: int32(len(sc.s.Shapes) - 1)}), sc.s.Edit()
	d.Estimate(job, length)
	d.Commit()
	return job
}

// run starts a job on a node, as a change of the draft.
func (sc *scene) run(node plan.NodeID, workers int32, length unit.Duration) plan.RunID {
	job, d := sc.job(workers, length), sc.s.Edit()
	run, why := d.Start(job, []plan.Slot{{Node: node, Device: plan.None, Workers: workers}}, plan.DefaultTerms(), plan.Reason{})
	if d.Commit(); why.Code != plan.NoReason {
		panic("the scene has no room for its run")
	}
	sc.turn++
	return run
}

// held is how many devices are kept from a job on each node.
func held(holds []plan.Hold) (on [2]int32) {
	for _, h := range holds {
		on[h.Node] = h.Devices
	}
	return on
}

// TestClaimIsHeld: what a gang claims is kept from those who would end too late, and from nobody
// else; the gang itself may have it.
func TestClaimIsHeld(t *testing.T) {
	sc := newScene(calendar.Easy())
	sc.run(0, 4, unit.Hour)
	sc.open()
	gang, long, short := sc.job(8, unit.Hour), sc.job(1, 2*unit.Hour), sc.job(1, unit.Minute)
	at := sc.agenda.Reserve(sc.now(), gang, 0, 1)
	if want := sc.s.Now.Add(unit.Hour); at != want {
		t.Fatalf("the claim is for %d, the run ends at %d", at, want)
	}
	if !sc.agenda.Has(gang) || !sc.agenda.Full() {
		t.Fatal("the claim of the gang is not there, or more are to be made than one")
	}
	for job, want := range map[plan.JobID][2]int32{gang: {}, long: {0, 4}, short: {}} {
		if got := held(sc.agenda.Holds(sc.now(), job, 1)); got != want {
			t.Errorf("job %d: %v devices are held from it, %v were expected", job, got, want)
		}
	}
}

// TestGuaranteeGoesFirst: who is within a guarantee minds no claim of those who are not, and once
// it has started so the claims are looked at again, once.
func TestGuaranteeGoesFirst(t *testing.T) {
	sc := newScene(calendar.Easy())
	sc.run(0, 4, unit.Hour)
	sc.open()
	gang, own := sc.job(8, unit.Hour), sc.job(4, 0)
	sc.agenda.Reserve(sc.now(), gang, 0, 1)
	sc.first = []plan.JobID{own}
	if got := held(sc.agenda.Holds(sc.now(), own, 4)); got != [2]int32{} {
		t.Errorf("%v devices are held from a job within its guarantee", got)
	}
	if sc.agenda.Fulfil(own) {
		t.Error("a job is said to have had a claim that had none")
	}
	d := sc.s.Edit()
	run, _ := d.Start(own, []plan.Slot{{Node: 1, Device: plan.None, Workers: 4}}, plan.DefaultTerms(), plan.Reason{})
	d.Commit()
	sc.turn++
	sc.agenda.Started(sc.now(), run)
	if !sc.agenda.PutOff(sc.now()) {
		t.Error("the claim has not moved, and another has its room")
	}
	if sc.agenda.PutOff(sc.now()) {
		t.Error("the claims were revised twice for one start")
	}
}

// TestClaimsOutliveDecisions: what Close returns and the state keeps, Open finds again; claims that
// do not stand are dropped, and those within a guarantee go first.
func TestClaimsOutliveDecisions(t *testing.T) {
	sc := newScene(calendar.Conservative())
	sc.run(0, 4, unit.Hour)
	sc.open()
	a, b, c := sc.job(8, unit.Hour), sc.job(8, unit.Hour), sc.job(8, unit.Hour)
	for rank, job := range []plan.JobID{a, b, c} {
		sc.agenda.Reserve(sc.now(), job, rank, 1)
	}
	sc.s.Claims = slices.Clone(sc.agenda.Close())
	if sc.open() {
		t.Error("nothing has happened, and the claims are others than they were")
	}
	sc.first = []plan.JobID{c}
	changed := sc.agenda.Open(sc.now(), func(claim *plan.Claim) bool { return claim.Job != a })
	var jobs []plan.JobID
	for _, claim := range sc.agenda.Claims() {
		jobs = append(jobs, claim.Job)
	}
	if !changed || !slices.Equal(jobs, []plan.JobID{c, b}) {
		t.Errorf("the claims are those of %v and changed is %v; of %v and true were expected", jobs, changed, []plan.JobID{c, b})
	}
}

// TestOldestClaims: whoever has waited for long enough claims, the oldest first, and before that
// the agenda wakes when that will be.
func TestOldestClaims(t *testing.T) {
	sc := newScene(calendar.Policy{Patience: unit.Day})
	sc.run(0, 4, unit.Hour)
	barred, gang := sc.job(8, unit.Hour), sc.job(8, unit.Hour)
	all := func(plan.JobID) bool { return true }
	waits := func(job plan.JobID) bool { return job == barred || job == gang }
	sc.open()
	sc.agenda.ReserveForOldest(sc.now(), waits, all)
	if due := sc.s.Now.Add(unit.Day); len(sc.agenda.Claims()) > 0 || sc.agenda.Wake(sc.s.Now) != due {
		t.Fatalf("%d claims were made, and it wakes at %d: none and %d were expected", len(sc.agenda.Claims()), sc.agenda.Wake(sc.s.Now), due)
	}
	sc.s.Now = sc.s.Now.Add(unit.Day)
	sc.agenda.ReserveForOldest(sc.now(), waits, func(job plan.JobID) bool { return job != barred })
	if sc.agenda.Has(barred) || !sc.agenda.Has(gang) {
		t.Error("the oldest that may have room has no claim, or one has it that may not")
	}
}

// TestWindowsClose: a window keeps its node from those who would run into it, claims or none.
func TestWindowsClose(t *testing.T) {
	sc := newScene(calendar.Policy{})
	sc.s.Windows = []plan.Window{{Node: 1, From: sc.s.Now.Add(unit.Hour), To: sc.s.Now.Add(2 * unit.Hour)}}
	sc.open()
	job := sc.job(1, 0) // nobody knows how long it takes
	if got := held(sc.agenda.HoldsOfWindows(sc.now(), job, 1)); got != [2]int32{0, 4} {
		t.Errorf("%v devices are held", got)
	}
	now := sc.s.Now
	if sc.agenda.Closes(1, now, now.Add(unit.Minute)) || !sc.agenda.Closes(1, now, now.Add(61*unit.Minute)) || sc.agenda.Closes(0, now, unit.Never) {
		t.Error("the window closes the wrong node, or at the wrong time")
	}
}

// TestRunsIntoWindows: who saves, or is tried again, is kept from no node by a window that begins once it has run for what
// its start costs; a window that begins sooner, or has begun, closes the node for it too.
func TestRunsIntoWindows(t *testing.T) {
	for _, x := range []struct {
		name string
		does func(j *plan.Job)
		in   unit.Duration
		held int32
	}{
		{"saves when asked", func(j *plan.Job) { j.Checkpoint.OnRequest = true }, unit.Hour, 0},
		{"saves by itself", func(j *plan.Job) { j.Checkpoint.Every = unit.Minute }, unit.Hour, 0},
		{"is tried again", func(j *plan.Job) { j.Retries = 1 }, unit.Hour, 0},
		{"saves, and loads for long", func(j *plan.Job) { j.Checkpoint.OnRequest, j.Checkpoint.Load = true, unit.Hour }, unit.Hour - 1, 4},
		{"saves, and the window begins soon", func(j *plan.Job) { j.Checkpoint.OnRequest = true }, unit.Second, 4},
		{"saves, and the window has begun", func(j *plan.Job) { j.Checkpoint.OnRequest = true }, -unit.Minute, 4},
		{"would lose its work", func(*plan.Job) {}, unit.Hour, 4},
	} {
		sc := newScene(calendar.Policy{})
		sc.s.Now = unit.Time(unit.Day)
		sc.s.Windows = []plan.Window{{Node: 1, From: sc.s.Now.Add(x.in), To: sc.s.Now.Add(2 * unit.Hour)}}
		sc.open()
		loses, job := sc.job(1, 0), sc.job(1, 0)
		x.does(&sc.s.Jobs[job])
		for range 2 { // what most who ask share is not that of those who run into windows
			if got := held(sc.agenda.Holds(sc.now(), loses, 1)); got != [2]int32{0, 4} {
				t.Errorf("%s: of one that would lose its work %v devices are held", x.name, got)
			}
			if got := held(sc.agenda.Holds(sc.now(), job, 1)); got != [2]int32{0, x.held} || held(sc.agenda.HoldsOfWindows(sc.now(), job, 1)) != got {
				t.Errorf("%s: %v devices are held", x.name, got)
			}
		}
	}
}
