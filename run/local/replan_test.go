package local_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/trainer/progress"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
)

// cutAt is a plan of 1F1B for a model that is cut before these layers.
func cutAt(t *testing.T, microbatches int, cuts ...int32) *plan.Pipeline {
	t.Helper()
	costs := pipeline.Like(len(cuts) + 1)
	s, why := onefoneb.Ordering{}.Schedule(len(cuts)+1, microbatches, &costs)
	if why != "" {
		t.Fatal(why)
	}
	b, err := json.Marshal(pipeline.Plan{Stages: int32(len(cuts) + 1), Microbatches: int32(microbatches), Cuts: cuts, Orders: s.Orders})
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Pipeline{Cuts: cuts, JSON: b}
}

// planned is the order to start a trainer of six blocks with so many workers by a plan.
func planned(t *testing.T, name string, workers int, id int32, by *plan.Pipeline, args ...string) run.Order {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := run.Order{Verb: plan.Start, Name: name, Attempt: 1, Plan: by, Workers: slices.Repeat([]run.Worker{{Share: unit.Whole}}, workers),
		Spec: &workload.Job{Name: name, Checkpoint: workload.Checkpoint{OnRequest: true},
			Program: workload.Program{Env: []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1"},
				Command: append([]string{exe, "train", "--dim", "16", "--layers", "6", "--seq", "16", "--batch", "8", "--checkpoint-every", "0", "--timings-every", "5"}, args...)}}}
	o.Terms.Plan.ID = id
	return o
}

// begin gives an order to start and waits until all has started. Nothing of it outlives the test.
func (d *drive) begin(o run.Order) {
	d.t.Helper()
	d.driver.Order(o)
	d.t.Cleanup(func() {
		for rank := range o.Workers {
			_ = supervise.Send(d.driver.MemberDir(o.Name, o.Attempt, int32(rank)), supervise.Kill) // who has ended does not listen
		}
	})
	d.want(engine.Started)
}

// observed waits for an observation of a kind.
func (d *drive) observed(what string, is func(o *engine.Observation) bool) engine.Observation {
	d.t.Helper()
	for deadline := time.After(inTime); ; {
		select {
		case e := <-d.events:
			if e.Kind != engine.Observed {
				d.t.Fatalf("the driver reports %s before %s", e.Kind, what)
			}
			if is(&e.Observation) {
				return e.Observation
			}
		case <-deadline:
			d.t.Fatalf("not seen: %s", what)
		}
	}
}

// keep is the file in which a worker reports, under a name that outlives the attempt.
func keep(t *testing.T, dir string) (file string) {
	t.Helper()
	file = dir + ".progress"
	if err := os.Link(supervise.ProgressPath(dir), file); err != nil {
		t.Fatal(err)
	}
	return file
}

// reports are what a file says that a worker reports in.
func reports(t *testing.T, file string) []progress.Event {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var p progress.Parser
	return p.Feed(text)
}

// stagesWhere waits for times of a plan's two stages that are as they should be. Others may come
// before them: on a busy machine a report of a few passes says who had to wait for a core.
func (d *drive) stagesWhere(what string, are func(first, second float64) bool) {
	d.t.Helper()
	d.observed("the times of stages "+what, func(o *engine.Observation) bool {
		return len(o.Stages) == 2 && are(float64(o.Stages[0]), float64(o.Stages[1]))
	})
}

// TestReplan: a run that goes on is told of another plan by the driver that hears of it, and by
// one that finds it with a plan that nobody told its program. What its program refuses, the driver
// reports, and what stages take it tells of the plan that the run goes by.
func TestReplan(t *testing.T) {
	needLong(t)
	t.Parallel()
	state := stateDir(t)
	d := newDrive(t, state)
	o := planned(t, "pipe", 2, 0, cutAt(t, 2, 6), "--steps", "1000000", "--step-delay", "10ms")
	d.begin(o)
	d.stagesWhere("of six layers and two", func(first, second float64) bool { return first > 1.2*second })
	tell := func(id int32, by *plan.Pipeline) {
		o.Verb, o.Plan, o.Terms.Plan.ID = plan.Regrant, by, id
		d.driver.Order(o)
	}
	tell(1, cutAt(t, 4, 2))
	d.stagesWhere("of two layers and six", func(first, second float64) bool { return second > 1.2*first })
	tell(2, cutAt(t, 2, 2, 4))
	refused := d.observed("a plan for three workers is refused", func(o *engine.Observation) bool { return o.Goes != nil }).Goes
	if refused.Plan != 1 || !strings.Contains(refused.Why, "its program refuses it: it is for 3 workers in a row") {
		t.Errorf("told is %+v", refused)
	}
	dir := d.driver.MemberDir("pipe", 1, 0)
	// Another driver finds it with a plan that was decided, and that nobody had told.
	o.Verb, o.Status, o.Plan, o.Terms.Plan.ID = plan.Start, plan.Running, cutAt(t, 2, 4), 3
	d = newDrive(t, state, o)
	d.want(engine.Started)
	answer := func() (last progress.Event) {
		for _, e := range reports(t, supervise.ProgressPath(dir)) {
			if e.Kind == progress.Planned {
				last = e
			}
		}
		return last
	}
	for end := time.Now().Add(inTime); answer().File != "plan.1.3.json"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the last that is said of a plan is %+v", answer())
		}
	}
	d.stagesWhere("by the plan that it was told last", func(_, _ float64) bool { return true })
	// One that finds it with the plan that it goes by tells nothing.
	asked := func() string {
		text, err := os.ReadFile(supervise.ControlPath(dir))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := asked()
	d = newDrive(t, state, o)
	d.want(engine.Started)
	d.stagesWhere("as another driver found them", func(_, _ float64) bool { return true })
	if got := asked(); got != before {
		t.Errorf("it was asked again:\n%s\nbefore\n%s", got, before)
	}
	o.Verb = plan.Stop
	d.driver.Order(o)
	d.want(engine.Stopped)
}

// TestReplanOfWhoDoesNotListen: of a program that reports steps, and knows nothing of plans, the
// driver says that it goes on by the plan that it began with.
func TestReplanOfWhoDoesNotListen(t *testing.T) {
	t.Parallel()
	d := newDrive(t, stateDir(t))
	o := planned(t, "deaf", 2, 4, cutAt(t, 2, 6))
	o.Spec.Checkpoint.OnRequest = false
	o.Spec.Command = shell(`step=0; while :; do step=$((step+1)); echo step=$step of=100000 >>$MUSTER_PROGRESS; sleep 0.1; done`)
	d.begin(o)
	o.Verb, o.Plan, o.Terms.Plan.ID = plan.Regrant, cutAt(t, 2, 2), 5
	d.driver.Order(o)
	goes := d.observed("nothing is said of the plan", func(o *engine.Observation) bool { return o.Goes != nil }).Goes
	if goes.Plan != 4 || !strings.Contains(goes.Why, "steps and said nothing of it") {
		t.Errorf("told is %+v", goes)
	}
	o.Verb = plan.Stop
	d.driver.Order(o)
	d.want(engine.Stopped)
}

// TestWhatLivesOnIsKept: of two pipelines one worker is killed. What the others hold is all of the
// model: it is the work that is kept, and the next attempt goes on behind the last whole step with
// the losses of a job that was never disturbed.
func TestWhatLivesOnIsKept(t *testing.T) {
	t.Parallel()
	const steps = "120"
	by := cutAt(t, 2, 4)
	calm := newDrive(t, stateDir(t))
	calm.begin(planned(t, "calm", 4, 0, by, "--steps", steps, "--step-delay", "5ms"))
	told := keep(t, calm.driver.MemberDir("calm", 1, 0))
	calm.want(engine.Exited)
	want := losses(t, told)
	ranks := []int32{0, 3}
	if os.Getenv("MUSTER_LONG") == "" {
		ranks = ranks[:1] // it is the one who reports
	}
	for _, rank := range ranks {
		d := newDrive(t, stateDir(t))
		o := planned(t, "hit", 4, 0, by, "--steps", steps, "--step-delay", "20ms")
		d.begin(o)
		told := keep(t, d.driver.MemberDir("hit", 1, 0))
		for end := time.Now().Add(inTime); len(losses(t, told)) < 40 && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		records, _, err := supervise.ReadRecords(d.driver.MemberDir("hit", 1, rank), 0)
		if err != nil || len(records) == 0 {
			t.Fatal(records, err)
		}
		if err := syscall.Kill(records[0].PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		e := d.want(engine.Exited)
		began, made := unit.Time(0), int64(0)
		for _, r := range records {
			if r.Kind == supervise.Started {
				began = r.At
			}
		}
		for step := range losses(t, told) {
			made = max(made, step)
		}
		ran := unit.Time(time.Now().UnixMicro()).Sub(began)
		if e.Class != plan.UserFailure || e.Failure == nil || e.Failure.Rank != rank || e.Kept < ran/2 || e.Kept > ran {
			t.Errorf("rank %d was killed after %s: %+v, %+v", rank, ran, e.Ending, e.Failure)
		}
		o.Attempt = 2
		d.begin(o)
		told = keep(t, d.driver.MemberDir("hit", 2, 0))
		d.want(engine.Exited)
		got, first := losses(t, told), int64(1000)
		for step, loss := range got {
			first = min(first, step)
			if loss != want[step] {
				t.Errorf("rank %d was killed: step %d has loss %v, undisturbed %v", rank, step, loss, want[step])
			}
		}
		if first <= made || first > made+2 || got[120] == 0 {
			t.Errorf("rank %d was killed when %d steps were told: the next attempt goes on with step %d", rank, made, first)
		}
	}
}

// losses are what was told in a file, by step.
func losses(t *testing.T, file string) map[int64]float64 {
	t.Helper()
	all := map[int64]float64{}
	for _, e := range reports(t, file) {
		if e.Kind == progress.Step {
			all[e.Step] = e.Loss
		}
	}
	return all
}
