package local_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/run/trainer/progress"
)

// habit is how a job saves.
type habit string

const (
	saves  habit = "at once"
	slowly habit = "slowly" // when asked, in slowSave
	never  habit = "never"  // and says so
	deaf   habit = "deaf"   // says that it does when asked, and does not
)

// slowSave is what a slow save takes, and askedFor how long a worker is given for one.
const slowSave, askedFor = time.Second, 2 * time.Second

// lasting is a job whose workers run for so long in all. What its rank 0 has done and saved stands in
// its folder, and what was lost when it was started again.
func lasting(args []string) error {
	takes, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	how, rank := habit(args[1]), os.Getenv("RANK")
	file := func(name string) string { return filepath.Join(os.Getenv("MUSTER_CHECKPOINT_DIR"), name) }
	read := func(name string) (sum time.Duration, err error) {
		text, err := os.ReadFile(file(name))
		if errors.Is(err, os.ErrNotExist) {
			return 0, nil
		} else if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(text)) {
			d, err := time.ParseDuration(strings.TrimSpace(line))
			if err != nil {
				return 0, err
			}
			sum += d
		}
		return sum, nil
	}
	saved, err := read("saved")
	if err != nil {
		return err
	}
	if done, err := read("done"); rank == "0" && err == nil && done > saved {
		f, err := os.OpenFile(file("lost"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(f, done-saved); errors.Join(err, f.Close()) != nil {
			return err
		}
	}
	write := func(name string, d time.Duration) error {
		if err := os.WriteFile(file(name+".new"), []byte(d.String()), 0o600); err != nil {
			return err
		}
		return os.Rename(file(name+".new"), file(name))
	}
	w, err := progress.Open(os.Getenv)
	if err != nil {
		return err
	}
	asked := progress.Listen(os.Getenv)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		done := saved + time.Since(began)
		if rank == "0" {
			if err := write("done", done); err != nil {
				return err
			}
		}
		if done >= takes {
			return w.Close()
		}
		commands, err := asked.Poll()
		if err != nil {
			return err
		}
		if rank != "0" || len(commands) == 0 || commands[0].Verb != progress.Save || how == never {
			continue
		}
		switch how {
		case slowly:
			time.Sleep(slowSave)
		case deaf:
			select {} // it does not answer, and what it does from here on counts for nobody
		}
		if err := write("saved", done); err != nil {
			return err
		}
		w.Write(progress.Event{Kind: progress.Checkpoint, Step: int64(done / time.Millisecond)})
		select {} // until it is stopped
	}
}

// arrival is a job of a case.
type arrival struct {
	at, takes, declares time.Duration
	workers             int32
	how                 habit
}

// micros is a time as the engine counts.
func micros(d time.Duration) unit.Duration { return unit.Duration(d.Microseconds()) }

// name is what the job of the i-th arrival is called.
func (a *arrival) name(i int) string { return fmt.Sprint("j", i) }

// job is an arrival as its owner submits it, and what is true of it.
func (a *arrival) job(i int) scheduletest.Job {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	j := workload.Job{Name: a.name(i), Submit: unit.Time(micros(a.at)), Estimate: micros(a.declares), Resources: workload.Resources{Gang: a.workers, Devices: 1, Share: unit.Whole},
		Checkpoint: workload.Checkpoint{OnRequest: a.how != never, Load: 1},
		Program:    workload.Program{Command: []string{exe, "last", a.takes.String(), string(a.how)}}}
	return scheduletest.Job{Job: j, Truth: workload.Truth{Duration: micros(a.takes), Deaf: a.how == deaf, Saving: micros(map[habit]time.Duration{slowly: slowSave, deaf: askedFor}[a.how])}}
}

// thrashing is jobs on four devices that once displaced each other without end, an hour of theirs in a few
// seconds.
type thrashing struct {
	name, order string
	jobs        []arrival
}

// Both orders as they are, but for times that suit jobs of a few seconds: the quantum is so long that who is stopped by
// it has computed for much longer than the starts of two jobs differ by.
const (
	house  = "order: muster\noptions: {muster: {switch: 1s, refresh: 10s}}\n"
	shares = "order: las\noptions: {las: {quantum: 3s}}\n"
)

var thrash = []thrashing{
	{"gang-and-stream", house, stream(arrival{takes: 6 * time.Second, workers: 4, how: saves}, 12, arrival{at: time.Second, takes: 4 * time.Second, workers: 1})},
	{"deaf-gang-and-stream", house, stream(arrival{takes: 12 * time.Second, workers: 4, how: deaf}, 10, arrival{at: 2500 * time.Millisecond, takes: 5 * time.Second, workers: 1})},
	{"all-deaf", house, three(deaf)},
	{"all-deaf-by-turns", shares, three(deaf)},
	{"shorter-than-deaf", "srtf", shorter(deaf)},
	{"shorter-than-slow", "srtf", shorter(slowly)},
	{"shorter-than-prompt", "srtf", shorter(saves)},
}

// stream is a first job, and so many others that are alike but for how they save and come one after another.
func stream(first arrival, n int, each arrival) []arrival {
	list := []arrival{first}
	for i := range n {
		next := each
		next.at, next.how = time.Duration(i+1)*each.at, []habit{saves, slowly, never, deaf}[i%4]
		list = append(list, next)
	}
	return list
}

// three are jobs that fill four devices, and one that wants all of them.
func three(how habit) []arrival {
	const takes = 8 * time.Second
	return []arrival{{at: 0, takes: takes, workers: 2, how: how}, {at: time.Second, takes: takes, workers: 4, how: how},
		{at: 1200 * time.Millisecond, takes: takes, workers: 1, how: how}, {at: 1400 * time.Millisecond, takes: takes, workers: 1, how: how}}
}

// shorter are jobs that fill four devices, and then one that wants all of them, and is so much shorter that it pays to
// displace them. They declare how long they take.
func shorter(how habit) (list []arrival) {
	for i, workers := range []int32{2, 1, 1} {
		list = append(list, arrival{at: time.Duration(i) * 100 * time.Millisecond, takes: 20 * time.Second, workers: workers, how: how})
	}
	list = append(list, arrival{at: 4 * time.Second, takes: 2 * time.Second, workers: 4, how: saves})
	for i := range list {
		list[i].declares = list[i].takes
	}
	return list
}

// simulate is how many device seconds of work the simulator says are lost where starts take so long.
func (x *thrashing) simulate(t *testing.T, c *cluster.Cluster, start unit.Duration) (lost float64) {
	t.Helper()
	composition, err := catalogue.Resolve(x.order)
	if err != nil {
		t.Fatal(err)
	}
	built, err := composition.Build(catalogue.Env{}, false)
	if err != nil {
		t.Fatal(err)
	}
	var jobs scheduletest.Jobs
	for i := range x.jobs {
		jobs = append(jobs, x.jobs[i].job(i))
	}
	o, err := scheduletest.Run(simulated.Config{Cluster: c, Jobs: jobs.Source(), Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(), Prices: simulated.Prices{Start: start}, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	return o.LostDeviceSec
}

// live lets real processes do the same, and returns what they lost and how long their starts took.
func (x *thrashing) live(t *testing.T, slots local.Slots) (lost float64, starts []time.Duration) {
	t.Helper()
	state := stateDir(t)
	h := startAsking(t, state, x.order, slots, micros(askedFor))
	defer h.stop()
	began, stops := time.Now(), int32(0)
	var ids []plan.JobID
	for i := range x.jobs {
		time.Sleep(time.Until(began.Add(x.jobs[i].at)))
		ids = append(ids, h.submit(x.jobs[i].job(i).Job))
	}
	for i, id := range ids {
		j := h.wait(id, "over", over)
		if stops += j.Preemptions; j.Phase != plan.Finished || j.Restarts > 0 {
			t.Errorf("job %d is %s after %d failures", i, j.Phase, j.Restarts)
		}
		for n := int32(1); n <= j.Attempt; n++ {
			start, ran := h.course(x.jobs[i].name(i), n)
			starts = append(starts, start)
			// Who takes the room of two workers for four owes half of the second that these had, less what their start
			// took of it, and less as much again, since that is told late. So long everybody computes.
			if least := time.Second/2 - starts[0]; n < j.Attempt && ran < least {
				t.Errorf("attempt %d of job %d was stopped when it had computed for %s, of at least %s", n, i, ran, least)
			}
		}
		text, err := os.ReadFile(filepath.Join(state, "jobs", x.jobs[i].name(i), "checkpoints", "lost"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			d, err := time.ParseDuration(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			lost += d.Seconds() * float64(x.jobs[i].workers)
		}
	}
	if int(stops) > len(x.jobs) {
		t.Errorf("%d jobs were stopped %d times", len(x.jobs), stops)
	}
	t.Logf("%d jobs were stopped %d times and lost %.1f device seconds", len(x.jobs), stops, lost)
	return lost, starts
}

// course is how long the start of an attempt took, and how long it computed before it was told to stop, if
// it was.
func (h *host) course(name string, attempt int32) (start, ran time.Duration) {
	h.t.Helper()
	dir := h.driver.MemberDir(name, attempt, 0)
	records, _, err := supervise.ReadRecords(dir, 0)
	spec, err2 := os.Stat(filepath.Join(dir, "spec.json"))
	if err := errors.Join(err, err2); err != nil {
		h.t.Fatalf("attempt %d of %s was decided, and never begun: %v", attempt, name, err)
	}
	var began unit.Time
	for _, r := range records {
		switch r.Kind {
		case supervise.Started:
			began, start = r.At, time.UnixMicro(int64(r.At)).Sub(spec.ModTime())
		case supervise.StopRequested:
			ran = time.Duration(r.At.Sub(began)) * time.Microsecond
		}
	}
	if began == 0 {
		h.t.Errorf("attempt %d of %s has not begun", attempt, name)
	}
	return start, ran
}

// TestThrash: real jobs that save at once, slowly, never, or say that they do and do not, are stopped no more
// often than jobs come. Nobody is started and stopped for nothing, and what is lost is what the simulator
// says of the same jobs, within 15 % and what starts that take longer or shorter make of it.
func TestThrash(t *testing.T) {
	needLong(t)
	slots := local.Slots{Count: 4, CPU: 500, Memory: 256}
	machine, err := local.Detect(slots)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range thrash {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			lost, starts := x.live(t, slots)
			least, most := math.Inf(1), 0.
			for _, start := range starts {
				says := x.simulate(t, machine.Cluster, micros(start))
				least, most = min(least, says), max(most, says)
			}
			if t.Logf("the simulator says %.1f to %.1f", least, most); lost < .85*least || lost > 1.15*most {
				t.Errorf("%.1f device seconds are lost, the simulator says %.1f to %.1f", lost, least, most)
			}
		})
	}
}

// TestThrashWithoutGroups is TestThrash for a user who may make no control groups.
func TestThrashWithoutGroups(t *testing.T) {
	needLong(t)
	const tests = "all-deaf-by-turns|shorter-than-deaf"
	if out := asNobody(t, "^TestThrash$/^("+tests+")", "MUSTER_LONG=1"); strings.Count(out, "--- PASS: TestThrash/") != 2 {
		t.Errorf("as nobody: %s", out)
	}
}

// TestWhoDoesNotSaveIsKnown: a job that was asked to save and did not counts as one that does not; it is
// asked again all the same, and counts as before when it has saved.
func TestWhoDoesNotSaveIsKnown(t *testing.T) {
	t.Parallel()
	state := stateDir(t)
	h := startAsking(t, state, "fifo", local.Slots{Count: 1, CPU: 500, Memory: 128}, unit.Second)
	defer h.stop()
	id := h.begin(workload.Job{Name: "learns", Checkpoint: workload.Checkpoint{OnRequest: true}, Program: workload.Program{Command: shell(`trap 'exit 143' TERM
while :; do
	if [ -e $MUSTER_CHECKPOINT_DIR/able ] && grep -q checkpoint $MUSTER_CONTROL && [ ! -e saved ]; then touch saved; echo checkpoint step=7 >>$MUSTER_PROGRESS; fi
	sleep 0.02
done`)}})
	again := func() {
		if _, err := h.plane.Request(t.Context(), engine.Event{Kind: engine.Requeue, Job: id}, ""); err != nil {
			t.Fatal(err)
		}
	}
	again()
	h.wait(id, "running again", func(j plan.Job, v plan.View) bool { return j.Attempt == 2 && running(j, v) })
	if j := h.wait(id, "there", func(plan.Job, plan.View) bool { return true }); j.Checkpoint.OnRequest || !j.Checkpoint.Failed || j.Executed > 0 {
		t.Errorf("it kept %s, and is believed to save as %+v", j.Executed, j.Checkpoint)
	}
	if err := os.WriteFile(filepath.Join(state, "jobs", "learns", "checkpoints", "able"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	again()
	if j := h.wait(id, "gone", func(j plan.Job, _ plan.View) bool { return j.Attempt == 3 && j.Leaving == plan.None }); !j.Checkpoint.OnRequest || j.Checkpoint.Failed || j.Executed == 0 {
		t.Errorf("now it kept %s, and is believed to save as %+v", j.Executed, j.Checkpoint)
	}
}
