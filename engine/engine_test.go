package engine_test

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// simple starts every waiting job on the first node that has room for all of it, or
// over all nodes, and does first what a test tells it to.
type simple struct {
	first func(d *plan.Draft)
	why   schedule.Trigger
	calls int
}

func (s *simple) Decide(d *plan.Draft, why schedule.Trigger) unit.Time {
	s.calls++
	s.why = why
	if s.first != nil {
		s.first(d)
		s.first = nil
	}
	for id := range plan.JobID(d.Jobs()) {
		n := d.Shape(id).Gang
		var spread []plan.Slot
		done := d.Job(id).Phase != plan.Waiting
		for node := plan.NodeID(0); int(node) < d.Nodes() && !done; node++ {
			_, why := d.Start(id, []plan.Slot{{Node: node, Device: plan.None, Workers: n}}, plan.DefaultTerms(), plan.Reason{Code: plan.Fits})
			done = why.Code == plan.NoReason
			if free := d.Node(node).FreeDevices; free > 0 {
				spread = append(spread, plan.Slot{Node: node, Device: plan.None, Workers: free})
			}
		}
		if !done {
			d.Start(id, spread, plan.DefaultTerms(), plan.Reason{Code: plan.Fits})
		}
	}
	return unit.Never
}

// world is an engine under test, with its clock.
type world struct {
	*engine.Engine
	t     *testing.T
	sched *simple
	now   unit.Time
}

func newWorld(t *testing.T, nodes, devices int, policy engine.Policy) *world {
	s := &simple{}
	c := cluster.Uniform("test", nodes, devices, cluster.Model{Name: "gpu", Speed: 1}, 4)
	return &world{Engine: engine.New(c, s, policy), t: t, sched: s}
}

// step feeds events at a second and checks the state.
func (w *world) step(second int, events ...engine.Event) engine.Out {
	w.t.Helper()
	w.now = unit.Time(unit.Duration(second) * unit.Second)
	for i := range events {
		if err := w.Accept(&events[i]); err != nil {
			w.t.Fatalf("at %d s: %v", second, err)
		}
	}
	out := w.Step(w.now, events)
	if err := w.State().Check(); err != nil {
		w.t.Fatalf("at %d s: %v", second, err)
	}
	return out
}

func submit(name string, gang int32, more ...func(j *workload.Job)) engine.Event {
	j := &workload.Job{Name: name, Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole}, Retries: 100}
	for _, f := range more {
		f(j)
	}
	return engine.Event{Kind: engine.Submit, Spec: j}
}

func after(names ...string) func(*workload.Job) { return func(j *workload.Job) { j.After = names } }

func report(kind engine.Kind, job plan.JobID, attempt int32) engine.Event {
	return engine.Event{Kind: kind, Job: job, Attempt: attempt}
}

func (w *world) phase(job plan.JobID, want plan.Phase) {
	w.t.Helper()
	if got := w.View().Job(job).Phase; got != want {
		w.t.Fatalf("at %g s job %d is %s (%s), want %s", w.now.Seconds(), job, got, w.View().Job(job).Reason.Words(w.View()), want)
	}
}

func verbs(changes []plan.Change) string {
	var words []string
	for _, c := range changes {
		words = append(words, c.Verb.String())
	}
	return strings.Join(words, " ")
}

// TestBackOffDoubles: each failure of its own making makes a job wait twice as long,
// up to the most, until it is held as a crash loop; a person lets it go on.
func TestBackOffDoubles(t *testing.T) {
	policy := engine.Policy{BackOff: 10 * unit.Second, BackOffMost: 30 * unit.Second, CrashLoop: 5, SickNode: 3}
	w := newWorld(t, 1, 1, policy)
	w.step(0, submit("a", 1))
	now := 0
	for i, wait := range []int{10, 20, 30, 30} {
		attempt := int32(i + 1)
		w.step(now+1, report(engine.Started, 0, attempt))
		fail := report(engine.Exited, 0, attempt)
		fail.Class = plan.UserFailure
		out := w.step(now+2, fail)
		w.phase(0, plan.Backoff)
		if want := w.now.Add(unit.Duration(wait) * unit.Second); out.Wake != want {
			t.Fatalf("after failure %d the engine wakes at %d, want %d", attempt, out.Wake, want)
		}
		w.step(now + 2 + wait - 1)
		w.phase(0, plan.Backoff)
		now += 2 + wait
		w.step(now)
		w.phase(0, plan.Active)
	}
	fail := report(engine.Exited, 0, 5)
	fail.Class = plan.MemoryFailure
	w.step(now+1, fail)
	w.phase(0, plan.Held)
	w.step(now+2, engine.Event{Kind: engine.Release, Job: 0})
	w.phase(0, plan.Active)
}

// TestRetriesEnd: a job is tried as often as it may be, and its time limit is final.
func TestRetriesEnd(t *testing.T) {
	w := newWorld(t, 1, 2, engine.DefaultPolicy())
	w.step(0, submit("a", 1, func(j *workload.Job) { j.Retries = 0 }), submit("b", 1))
	fail, over := report(engine.Exited, 0, 1), report(engine.Exited, 1, 1)
	fail.Class, over.Class = plan.UserFailure, plan.TimeFailure
	if out := w.step(1, fail, over); len(out.Over) != 2 {
		t.Errorf("%v ended, want both", out.Over)
	}
	w.phase(0, plan.Failed)
	w.phase(1, plan.Failed)
}

// TestSickNode: three starts in a row that fail quarantine a node, a restart in between
// or not; a job that nowhere starts is held before it takes all nodes with it.
func TestSickNode(t *testing.T) {
	policy := engine.Policy{BackOff: unit.Second, BackOffMost: unit.Second, CrashLoop: 5, SickNode: 3}
	w := newWorld(t, 4, 1, policy)
	w.step(0, submit("a", 1))
	for i := range 5 {
		w.step(10*i+1, report(engine.NotStarted, 0, int32(i+1)))
		state, err := w.State().Clone()
		if err != nil {
			t.Fatal(err)
		}
		w.Engine = engine.Restore(state, w.sched, policy)
		w.step(10*i+3, engine.Event{Kind: engine.Rebuilt})
	}
	if a, b := w.View().Node(0).Status, w.View().Node(1).Status; a != plan.Quarantined || b != plan.Up {
		t.Errorf("the nodes are %s and %s, want quarantined and up", a, b)
	}
	w.phase(0, plan.Held)
	w.step(60, engine.Event{Kind: engine.Uncordon, Node: 0}, engine.Event{Kind: engine.Release, Job: 0})
	if n := w.View().Node(0); n.Status != plan.Up || n.Sick != 0 {
		t.Errorf("node 0 is %s with %d failures counted", n.Status, n.Sick)
	}
}

// TestStoppedBeforeItStarted: a start that is called off says nothing about the node.
func TestStoppedBeforeItStarted(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	w.step(0, submit("a", 1))
	w.step(1, engine.Event{Kind: engine.Hold, Job: 0})
	w.step(2, report(engine.NotStarted, 0, 1))
	if n := w.View().Node(0).Sick; n != 0 {
		t.Errorf("%d failed starts are counted, want none", n)
	}
	w.phase(0, plan.Held)
}

// TestDependencies: jobs wait for those they come after, in whatever way those end.
func TestDependencies(t *testing.T) {
	w := newWorld(t, 1, 4, engine.DefaultPolicy())
	w.step(0, submit("a", 1), submit("b", 1))
	w.step(1, submit("c", 1, after("a", "b")), submit("x", 1))
	w.step(1, submit("d", 1, after("c")), submit("e", 1, after("b")))
	w.step(1, engine.Event{Kind: engine.Cancel, Job: 3})
	w.phase(2, plan.Blocked)
	w.step(2, report(engine.Exited, 0, 1))
	w.phase(2, plan.Blocked)
	w.step(3, engine.Event{Kind: engine.Hold, Job: 4}, engine.Event{Kind: engine.Hold, Job: 2}, report(engine.Exited, 1, 1))
	w.phase(2, plan.Held)
	w.phase(5, plan.Active)
	w.step(4, engine.Event{Kind: engine.Release, Job: 2}, engine.Event{Kind: engine.Release, Job: 4})
	w.phase(2, plan.Active)
	w.phase(4, plan.Blocked)
	w.step(5, engine.Event{Kind: engine.Cancel, Job: 2})
	w.phase(4, plan.Failed)
	w.step(6, submit("f", 1, after("d")))
	w.phase(6, plan.Failed)
}

// TestRefusedEndsItsFollowers: a refusal ends a job like any other end.
func TestRefusedEndsItsFollowers(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	w.step(0, engine.Event{Kind: engine.Pause}, submit("a", 1))
	w.step(1, submit("b", 1, after("a")))
	w.sched.first = func(d *plan.Draft) { d.Refuse(0, plan.Reason{Code: plan.NotFeasible}) }
	if out := w.step(2, engine.Event{Kind: engine.Unpause}); len(out.Over) != 2 {
		t.Errorf("%v ended, want the refused job and the one after it", out.Over)
	}
	w.phase(0, plan.Refused)
	w.phase(1, plan.Failed)
}

// TestArrayStartsInOrder: the members of an array are started in their order.
func TestArrayStartsInOrder(t *testing.T) {
	w := newWorld(t, 1, 2, engine.DefaultPolicy())
	w.step(0, submit("a-0", 1), submit("a-1", 1), submit("a-2", 1))
	w.phase(1, plan.Active)
	w.phase(2, plan.Waiting)
	out := w.step(1, report(engine.Exited, 0, 1))
	if verbs(out.Ready) != "start" || out.Ready[0].Job != 2 {
		t.Errorf("after the first ended, ready is %v", out.Ready)
	}
}

// TestOldReportsAreIgnored: of an earlier attempt, of no job, of another reshape; and
// twice.
func TestOldReportsAreIgnored(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	w.step(0, submit("a", 1))
	w.step(1, report(engine.NotStarted, 0, 1))
	w.step(20)
	w.step(21, report(engine.Started, 0, 2))
	before := w.View().Job(0)
	for _, e := range []engine.Event{report(engine.Stopped, 0, 1), report(engine.Exited, 0, 1), report(engine.NotStarted, 0, 1), report(engine.Started, 0, 2),
		report(engine.Exited, 7, 1), report(engine.Exited, -1, 1), report(engine.Suspended, 0, 2), report(engine.Resumed, 0, 2), report(engine.Stopped, 0, 2),
		{Kind: engine.Reshaped, Device: 0, Change: 9}, {Kind: engine.Reshaped, Device: 99}, {Kind: engine.NodeDown, Node: 9}, {Kind: engine.DeviceDown, Device: -1}} {
		if out := w.step(22, e); out.Commit != nil || w.View().Job(0) != before {
			t.Errorf("%s of job %d attempt %d changed something", e.Kind, e.Job, e.Attempt)
		}
	}
}

// TestTimeStandsStill: a clock that goes back does not take the engine along.
func TestTimeStandsStill(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	w.step(100, submit("a", 1))
	w.step(50, report(engine.Started, 0, 1))
	if now := w.View().Now(); now != unit.Time(100*unit.Second) {
		t.Errorf("it is %d, want the time to stand still", now)
	}
	w.step(130, report(engine.Exited, 0, 1))
	w.phase(0, plan.Finished)
}

// TestNodeLostWhileVictimStops: the start that waits for a victim on a lost node is not
// handed over, in whichever order the news come.
func TestNodeLostWhileVictimStops(t *testing.T) {
	down := engine.Event{Kind: engine.NodeDown, Node: 0}
	for _, events := range [][]engine.Event{{down}, {report(engine.Stopped, 0, 1), down}, {down, report(engine.Stopped, 0, 1)}} {
		w := newWorld(t, 1, 1, engine.DefaultPolicy())
		w.step(0, submit("a", 1))
		w.step(1, report(engine.Started, 0, 1))
		w.sched.first = func(d *plan.Draft) {
			d.Stop(d.Job(0).Run, plan.Reason{Code: plan.MadeWayFor, A: 1}, 0)
			d.Start(1, []plan.Slot{{Device: 0, Workers: 1}}, plan.DefaultTerms(), plan.Reason{})
		}
		w.step(2, submit("b", 1))
		w.phase(1, plan.Active)
		if out := w.step(3, events...); len(out.Ready) != 0 {
			t.Errorf("ready is %v, want nothing", verbs(out.Ready))
		}
		w.phase(0, plan.Waiting)
		w.phase(1, plan.Waiting)
		if r := w.View().Job(1).Restarts; r != 0 {
			t.Errorf("a promise that was taken back counts as %d restarts", r)
		}
	}
}

// TestGangThatLostANode: what is left of it on other nodes is stopped before anybody
// else gets its devices.
func TestGangThatLostANode(t *testing.T) {
	w := newWorld(t, 2, 1, engine.DefaultPolicy())
	w.step(0, submit("gang", 2))
	w.step(1, report(engine.Started, 0, 1), submit("b", 1))
	out := w.step(2, engine.Event{Kind: engine.NodeDown, Node: 1})
	if verbs(out.Ready) != "stop" || out.Ready[0].Job != 0 {
		t.Fatalf("ready is %v, want the rest of the gang stopped", verbs(out.Ready))
	}
	w.phase(1, plan.Active) // promised
	if out := w.step(3, report(engine.Stopped, 0, 1)); verbs(out.Ready) != "start" {
		t.Errorf("ready is %v, want the other to start now", verbs(out.Ready))
	}
}

// TestReshapeOnLostNode: what a lost node was told about its devices holds nobody up
// when it is back.
func TestReshapeOnLostNode(t *testing.T) {
	model := cluster.Model{Name: "gpu", Speed: 1, Geometries: []cluster.Geometry{{Name: "whole"}, {Name: "cut", Parts: []cluster.Part{{Milli: 500}, {Milli: 500}}}}}
	s := &simple{first: func(d *plan.Draft) {
		d.Reshape(0, 1, plan.Reason{})
		d.Start(0, []plan.Slot{{Device: 0, Workers: 1}}, plan.DefaultTerms(), plan.Reason{})
	}}
	w := &world{Engine: engine.New(cluster.Uniform("test", 1, 1, model, 1), s, engine.DefaultPolicy()), t: t, sched: s}
	half := func(j *workload.Job) { j.Share = 500 }
	if out := w.step(0, submit("a", 1, half)); verbs(out.Ready) != "reshape" {
		t.Fatalf("ready is %v", verbs(out.Ready))
	}
	w.step(1, engine.Event{Kind: engine.NodeDown, Node: 0})
	s.first = func(d *plan.Draft) {
		d.Start(0, []plan.Slot{{Device: 0, Workers: 1}}, plan.DefaultTerms(), plan.Reason{})
	}
	if out := w.step(2, engine.Event{Kind: engine.NodeUp, Node: 0}); verbs(out.Ready) != "start" {
		t.Errorf("ready is %v, want the job to start", verbs(out.Ready))
	}
}

// TestStopWhileSuspending: who waits for a run to be suspended goes on when it is
// stopped instead.
func TestStopWhileSuspending(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	turn := plan.DefaultTerms()
	turn.Share.Turn = 1
	slot := []plan.Slot{{Device: 0, Workers: 1}}
	w.sched.first = func(d *plan.Draft) { d.Start(0, slot, turn, plan.Reason{}) }
	w.step(0, submit("a", 1))
	w.step(1, report(engine.Started, 0, 1))
	w.sched.first = func(d *plan.Draft) {
		d.Suspend(d.Job(0).Run, plan.Reason{})
		d.Start(1, slot, turn, plan.Reason{})
	}
	w.step(2, submit("b", 1))
	w.step(3, engine.Event{Kind: engine.Cancel, Job: 0})
	if out := w.step(4, report(engine.Suspended, 0, 1)); len(out.Ready) != 0 {
		t.Errorf("ready is %v while the other is stopping", verbs(out.Ready))
	}
	if out := w.step(5, report(engine.Stopped, 0, 1)); verbs(out.Ready) != "start" {
		t.Errorf("ready is %v, want the second to start", verbs(out.Ready))
	}
}

// TestStopWhileResuming: a resume that waits is dropped with the run it was for.
func TestStopWhileResuming(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	turn := plan.DefaultTerms()
	turn.Share.Turn = 1
	slot := []plan.Slot{{Device: 0, Workers: 1}}
	w.sched.first = func(d *plan.Draft) { d.Start(0, slot, turn, plan.Reason{}) }
	w.step(0, submit("a", 1))
	w.step(1, report(engine.Started, 0, 1))
	w.sched.first = func(d *plan.Draft) {
		d.Suspend(d.Job(0).Run, plan.Reason{})
		d.Start(1, slot, turn, plan.Reason{})
	}
	w.step(2, submit("b", 1))
	w.step(3, report(engine.Suspended, 0, 1))
	w.sched.first = func(d *plan.Draft) {
		d.Suspend(d.Job(1).Run, plan.Reason{})
		d.Resume(d.Job(0).Run, plan.Reason{})
	}
	if out := w.step(4, report(engine.Started, 1, 1)); verbs(out.Ready) != "suspend" {
		t.Fatalf("ready is %v", verbs(out.Ready))
	}
	w.step(5, engine.Event{Kind: engine.Cancel, Job: 0})
	if out := w.step(6, report(engine.Suspended, 1, 1)); len(out.Ready) != 0 {
		t.Errorf("ready is %v, want no word to a run that is stopping", verbs(out.Ready))
	}
}

// TestOvertakenInTheSameStep: a run that ended is not told to stop.
func TestOvertakenInTheSameStep(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	w.step(0, submit("a", 1), submit("b", 1))
	w.step(1, report(engine.Started, 0, 1))
	out := w.step(2, engine.Event{Kind: engine.Requeue, Job: 0}, report(engine.Exited, 0, 1))
	w.phase(0, plan.Finished)
	if verbs(out.Ready) != "start" || out.Ready[0].Job != 1 {
		t.Errorf("ready is %v, want the other's start alone", verbs(out.Ready))
	}
}

// TestSwitchStopsTheSuspended: only the old strategy would have resumed them.
func TestSwitchStopsTheSuspended(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	w.step(0, submit("a", 1))
	w.step(1, report(engine.Started, 0, 1))
	w.sched.first = func(d *plan.Draft) { d.Suspend(d.Job(0).Run, plan.Reason{}) }
	w.step(2, submit("b", 1))
	w.step(3, report(engine.Suspended, 0, 1))
	next := &simple{}
	w.Switch(next)
	if out := w.step(4, engine.Event{Kind: engine.Switched}); verbs(out.Ready) != "stop" {
		t.Errorf("ready is %v, want the suspended run stopped", verbs(out.Ready))
	}
	if len(next.why.Jobs) != 2 || next.why.Wake {
		t.Errorf("the new strategy was called with %+v, want both jobs and no wake", next.why)
	}
	w.phase(0, plan.Active) // promised again
}

// TestPaused: nothing is decided, and nothing forgotten.
func TestPaused(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	w.step(0, engine.Event{Kind: engine.Pause})
	calls := w.sched.calls
	w.step(1, submit("a", 1))
	w.phase(0, plan.Waiting)
	if w.sched.calls != calls {
		t.Error("a paused engine asked its strategy")
	}
	w.step(2, engine.Event{Kind: engine.Unpause})
	w.phase(0, plan.Active)
}

// TestFinishedAnyway: a job that finishes while it is being stopped is done, and what it
// was promised since goes to others.
func TestFinishedAnyway(t *testing.T) {
	w := newWorld(t, 1, 2, engine.DefaultPolicy())
	w.step(0, submit("a", 2))
	w.step(1, report(engine.Started, 0, 1))
	w.step(2, engine.Event{Kind: engine.Requeue, Job: 0}, submit("b", 2))
	w.phase(0, plan.Active) // promised to start again
	out := w.step(3, report(engine.Exited, 0, 1))
	w.phase(0, plan.Finished)
	if verbs(out.Ready) != "start" || out.Ready[0].Job != 1 {
		t.Errorf("ready is %v, want the other job's start", out.Ready)
	}
}

// TestAcceptSaysWhatIsWrong.
func TestAcceptSaysWhatIsWrong(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	w.step(0, submit("a", 1))
	for _, c := range []struct {
		event engine.Event
		want  string
	}{
		{submit("a", 1), `a job named "a" is already there (active)`},
		{submit("b", 0), "workers must be at least 1"},
		{submit("b", 1, after("z")), `which does not exist`},
		{submit("b", 1, func(j *workload.Job) { j.Models = []string{"tpu"} }), `device model "tpu"`},
		{engine.Event{Kind: engine.Cancel, Job: 5}, "there is no job 5"},
		{engine.Event{Kind: engine.Release, Job: 0}, "not held"},
		{engine.Event{Kind: engine.Drain, Node: 3}, "there is no node 3"},
	} {
		if err := w.Accept(&c.event); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want %q in it", c.event.Kind, err, c.want)
		}
	}
}

// TestRequeueBehindOthers: an ended job that comes after one still open waits for it.
func TestRequeueBehindOthers(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	w.step(0, submit("a", 1))
	b := submit("b", 1)
	b.Spec.After = []string{"a"}
	w.step(1, b)
	w.step(2, engine.Event{Kind: engine.Cancel, Job: 1})
	w.step(3, engine.Event{Kind: engine.Requeue, Job: 1})
	w.phase(1, plan.Blocked)
	w.step(4, engine.Event{Kind: engine.Cancel, Job: 1})
	w.step(5, engine.Event{Kind: engine.Cancel, Job: 0})
	w.step(6, engine.Event{Kind: engine.Requeue, Job: 1}) // what it came after is over by now
	w.phase(1, plan.Active)
}

// TestSilentReportKeepsProgress: a report that does not say how far a job has come, as one
// of a rate alone, leaves what is known of it.
func TestSilentReportKeepsProgress(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	w.step(0, submit("a", 1))
	w.step(1, report(engine.Started, 0, 1))
	said, silent := report(engine.Observed, 0, 1), report(engine.Observed, 0, 1)
	said.Progress, silent.RateMicro = 400_000, 900_000
	w.step(2, said)
	w.step(3, silent)
	if got := w.State().Jobs[0].Progress; got != 400_000 {
		t.Errorf("the progress is %d after a report that does not tell it", got)
	}
}

// TestReportIsKept: what a job's first report after five minutes says of its whole running time is kept,
// whatever it says later, also by a state that was saved.
func TestReportIsKept(t *testing.T) {
	w := newWorld(t, 1, 2, engine.DefaultPolicy())
	w.step(0, submit("a", 1))
	w.step(10, report(engine.Started, 0, 1))
	for _, said := range []struct {
		at       int
		progress int32
		total    unit.Duration
	}{{200, 900_000, 0}, {310, 99, 0}, {410, 50_000, 8000 * unit.Second}, {1010, 1_000_000, 8000 * unit.Second}} {
		e := report(engine.Observed, 0, 1)
		e.Progress = said.progress
		w.step(said.at, e)
		s, err := w.State().Clone()
		if err != nil {
			t.Fatal(err)
		}
		if got, at := s.View().Foretold(0); got != said.total || got > 0 && at != unit.Time(410*unit.Second) {
			t.Errorf("after %d millionths at %d s the job runs for %s, as it said at %s; want %s", said.progress, said.at, got, unit.Duration(at), said.total)
		}
	}
}

// TestCommandsAreKnown: jobs that run the same have it in common, also in a state that was saved.
func TestCommandsAreKnown(t *testing.T) {
	w := newWorld(t, 1, 4, engine.DefaultPolicy())
	running := func(command ...string) func(j *workload.Job) { return func(j *workload.Job) { j.Command = command } }
	w.step(0, submit("a", 1, running("python3", "/home/a/train.py", "--lr=3")), submit("b", 1))
	w.step(1, submit("c", 1, running("python3", "train.py")), submit("d", 1, running("sleep", "9")))
	s, err := w.State().Clone()
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range []string{"python train.py", "", "python train.py", "sleep"} {
		if got := s.View().Command(plan.JobID(id)); got != want {
			t.Errorf("job %d runs %q, want %q", id, got, want)
		}
	}
	if len(s.Commands) != 2 {
		t.Errorf("there are %d commands: %q", len(s.Commands), s.Commands)
	}
}

// TestStandingIsSeen: a run that stands has a rate of 0, which a report without a rate has
// not.
func TestStandingIsSeen(t *testing.T) {
	w := newWorld(t, 1, 1, engine.DefaultPolicy())
	w.step(0, submit("a", 1))
	w.step(1, report(engine.Started, 0, 1))
	goes, stands := report(engine.Observed, 0, 1), report(engine.Observed, 0, 1)
	goes.Loss, stands.Stood = 2, 10*unit.Second
	for i, c := range []struct {
		report engine.Event
		rate   int64
	}{{goes, plan.FullRate}, {stands, 0}} {
		w.step(20*(i+1), c.report)
		if r := w.View().Run(w.View().Job(0).Run); r.RateMicro != c.rate {
			t.Errorf("report %d leaves a rate of %d, expected %d", i, r.RateMicro, c.rate)
		}
	}
	if did := w.View().Work(0); did != 29*unit.Second {
		t.Errorf("from 1 s to 40 s, of which it stood 10, it did %s", did)
	}
}
