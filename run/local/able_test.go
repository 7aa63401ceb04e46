package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local"
	"github.com/musterdl/muster/run/local/cgroup"
	"github.com/musterdl/muster/run/local/cgroup/cgrouptest"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/strategy"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
)

// onSlot is an order for a job of one worker on the first slot.
func onSlot(verb plan.Verb, id plan.JobID, job workload.Job, w run.Worker) run.Order {
	w.Devices = []plan.DeviceID{0}
	job.Share = unit.Whole
	return run.Order{Verb: verb, Job: id, Name: job.Name, Attempt: 1, Spec: &job, Workers: []run.Worker{w}, Terms: plan.DefaultTerms()}
}

// used is the processor time that the group of a worker has used.
func (d *drive) used(name string) unit.Duration {
	d.t.Helper()
	records, _, err := supervise.ReadRecords(d.driver.MemberDir(name, 1, 0), 0)
	if err != nil || len(records) == 0 {
		d.t.Fatal(records, err)
	}
	u, err := records[0].Group.Usage()
	if err != nil {
		d.t.Fatal(err)
	}
	return u.CPU
}

// TestEqual: a guest with equal rights and its host, which both compute all the time, get
// half of their slot each, and no more than the slot together; what one does not want is
// the other's.
func TestEqual(t *testing.T) {
	if support := cgroup.Probe(); !support.CPU {
		t.Skip(support)
	}
	d := newDrive(t, stateDir(t))
	const span = 3 * time.Second
	host := onSlot(plan.Start, 0, worker(t, "host", 10, 0, -1, 0), run.Worker{Share: unit.Whole, Ceiling: unit.Whole})
	guest := onSlot(plan.Start, 1, worker(t, "guest", 10, 0, -1, 0), run.Worker{Ceiling: unit.Whole})
	guest.Guest, guest.Host, guest.Terms.Guest, guest.Terms.Bond = true, run.Host{Name: "host", Attempt: 1}, 0, plan.AsEqual
	for _, o := range []run.Order{host, guest} {
		d.driver.Order(o)
		d.want(engine.Started)
	}
	records, _, err := supervise.ReadRecords(d.driver.MemberDir("host", 1, 0), 0)
	if err != nil || len(records) == 0 {
		t.Fatal(records, err)
	}
	cgrouptest.Favour(t, records[0].Group.CPU, records[0].Group.Unified)
	share := func() (h, g float64) {
		h0, g0, began := d.used("host"), d.used("guest"), time.Now()
		time.Sleep(span)
		whole := 0.5 * time.Since(began).Seconds() // a slot is half a core
		return (d.used("host") - h0).Seconds() / whole, (d.used("guest") - g0).Seconds() / whole
	}
	h, g := share()
	t.Logf("both: host %.3f, guest %.3f of the slot", h, g)
	if part := g / (h + g); part < .4 || part > .6 || h+g > 1.1 {
		t.Errorf("the guest has %.3f of what both have, which is %.3f of the slot: expected half of at most all", part, h+g)
	}
	host.Verb = plan.Suspend
	d.driver.Order(host)
	d.want(engine.Suspended)
	if h, alone := share(); h > .05 || alone < 1.5*g || alone > 1.1 {
		t.Errorf("beside a host that rests the guest has %.3f of the slot, after %.3f", alone, g)
	}
	for _, o := range []run.Order{guest, host} {
		o.Verb = plan.Stop
		d.driver.Order(o)
		d.want(engine.Stopped)
	}
}

// TestCeiling: a run may use what its strategy says above its share, and its share weighs.
func TestCeiling(t *testing.T) {
	if support := cgroup.Probe(); !support.CPU {
		t.Skip(support)
	}
	h := startOn(t, stateDir(t), "fifo+mps", local.Slots{Count: 1, CPU: 500, Memory: 2048})
	defer h.stop()
	j := worker(t, "part", 10, 0, -1, 0)
	j.Share = 300
	id := h.begin(j)
	if got, want := h.spec("part", 1, 0).Limits, (cgroup.Limits{CPU: 300, Memory: 614, Weight: 300}); got != want {
		t.Errorf("three tenths of a slot under a ceiling of six are held to %+v, expected %+v", got, want)
	}
	if got := quotaOf(t, h.driver.MemberDir("part", 1, 0)); got != .3 {
		t.Errorf("it may use %v cores, expected 0.3", got)
	}
	h.cancel(id)
}

// TestMPS: where devices are GPUs and MPS's pipe is there, a process has what MPS reads.
func TestMPS(t *testing.T) {
	state := stateDir(t)
	said, tools := filepath.Join(state, "said"), t.TempDir()
	smi := "#!/bin/sh\necho '<nvidia_smi_log><gpu><product_name>A100</product_name><fb_memory_usage><total>40960 MiB</total></fb_memory_usage></gpu></nvidia_smi_log>'\n"
	if err := os.WriteFile(filepath.Join(tools, "nvidia-smi"), []byte(smi), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	t.Setenv("CUDA_MPS_PIPE_DIRECTORY", tools)
	for _, pipe := range []bool{false, true} {
		if pipe {
			if err := os.WriteFile(filepath.Join(tools, "control"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if m, err := local.Detect(local.Slots{}); err != nil || !m.GPUs || (m.Ability.Lacks([]strategy.Act{strategy.Share}) == "") != pipe {
			t.Fatalf("with the pipe %v the machine is %+v, %v", pipe, m, err)
		}
	}
	h := startOn(t, state, "fifo+mps", local.Slots{})
	defer h.stop()
	id := h.submit(workload.Job{Name: "part", Share: 300, Memory: 2048, Command: shell("echo $CUDA_VISIBLE_DEVICES $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT >" + said)})
	h.wait(id, "over", over)
	if got, err := os.ReadFile(said); err != nil || string(got) != "0 60 0=2048M\n" {
		t.Errorf("the process found %q, %v", got, err)
	}
}

// TestBatch: a process finds the batch that its strategy chose when it starts, and hears
// of another one.
func TestBatch(t *testing.T) {
	state := stateDir(t)
	said := filepath.Join(state, "said")
	d := newDrive(t, state)
	o := onSlot(plan.Start, 0, workload.Job{Name: "server", Env: []string{"PATH=" + os.Getenv("PATH")},
		Command: shell("echo $MUSTER_BATCH >" + said + "; until grep -q batch $MUSTER_CONTROL; do sleep 0.02; done; cat $MUSTER_CONTROL >>" + said)}, run.Worker{Share: 300, Ceiling: 300})
	o.Terms.Batch = 4
	d.driver.Order(o)
	d.want(engine.Started)
	o.Verb, o.Terms.Batch = plan.Regrant, 8
	d.driver.Order(o)
	d.want(engine.Exited)
	if got, err := os.ReadFile(said); err != nil || string(got) != "4\nbatch 8\n" {
		t.Errorf("the process was told %q, %v", got, err)
	}
}

// TestPipelinePlan: a process finds its pipeline plan in the file that MUSTER_PLAN names.
func TestPipelinePlan(t *testing.T) {
	state := stateDir(t)
	said := filepath.Join(state, "said")
	d := newDrive(t, state)
	o := onSlot(plan.Start, 0, workload.Job{Name: "staged", Env: []string{"PATH=" + os.Getenv("PATH")}, Command: shell("cat $MUSTER_PLAN >" + said)}, run.Worker{Share: unit.Whole})
	o.Plan = &plan.Pipeline{JSON: []byte(`{"stages": 1}`)}
	d.driver.Order(o)
	d.want(engine.Started)
	d.want(engine.Exited)
	if got, err := os.ReadFile(said); err != nil || string(got) != `{"stages": 1}` {
		t.Errorf("the process read %q, %v", got, err)
	}
}

// TestGandiva: two jobs that take turns on the only slot are tried side by side, with equal
// rights, and both end.
func TestGandiva(t *testing.T) {
	h := startOn(t, stateDir(t), "joint: gandiva\noptions:\n  gandiva:\n    quantum: 1s\n", local.Slots{Count: 1, CPU: 500, Memory: 2048})
	defer h.stop()
	var ids []plan.JobID
	for _, name := range []string{"one", "two"} {
		ids = append(ids, h.submit(worker(t, name, 2, 10, -1, 300)))
	}
	guest := plan.JobID(plan.None)
	h.wait(ids[0], "beside the other", func(_ plan.Job, v plan.View) bool {
		for _, id := range ids {
			if run := v.Job(id).Run; run != plan.None && v.Run(run).Status == plan.Running && v.Run(run).Terms.Guest != plan.None {
				guest = id
			}
		}
		return guest != plan.JobID(plan.None)
	})
	for _, name := range []string{"one", "two"} {
		if s := h.spec(name, 1, 0); s.Law != "" || s.Limits.CPU != 500 || s.Pool.CPU != 500 || s.Pool != h.spec("one", 1, 0).Pool {
			t.Errorf("%s is held to %+v in %+v by the law %q", name, s.Limits, s.Pool, s.Law)
		}
	}
	for _, id := range ids {
		if j := h.wait(id, "over", over); j.Phase != plan.Finished {
			t.Errorf("job %d is %s", id, j.Phase)
		}
	}
}

// TestEveryStrategy: with every strategy that this machine can obey a gang, an elastic job,
// half a slot and a job that is promised nothing run as real processes, and end.
func TestEveryStrategy(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("half a minute; set MUSTER_LONG=1")
	}
	often := map[string]string{"pollux": "interval: 500ms", "optimus": "interval: 500ms", "easyscale": "every: 500ms", "afs": "every: 500ms",
		"liquid-batch": "every: 500ms", "gavel": "round-s: 1"}
	for _, e := range catalogue.All {
		c, err := catalogue.Resolve(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if e.Name == "external" || c.Refuse(run.Slots) != nil {
			continue
		}
		c, err = c.Live()
		if truth := e.Name == "oracle" || e.Name == "noisy"; truth != (err != nil) {
			t.Errorf("%s: %v", e.Name, err)
		}
		if err != nil {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			text := c.Text
			switch { // those that look around now and then do so at once
			case often[e.Name] != "":
				text = fmt.Sprintf("joint: %s\noptions:\n  %[1]s:\n    %s\n", e.Name, often[e.Name])
			case e.Name == "igniter":
				text += "+first-fit" // it takes services alone
			}
			h := start(t, stateDir(t), text)
			defer h.stop()
			base := workload.Job{Estimate: unit.Second, Deadline: unit.Hour, Checkpoint: workload.Checkpoint{OnRequest: true}, Command: shell("sleep 0.2")}
			gang, elastic, half, rest := base, base, base, base
			gang.Name, gang.Gang = "gang", 2
			elastic.Name, elastic.Gang, elastic.Sizes = "elastic", 1, []int32{1, 2}
			half.Name, half.Share = "half", 500
			rest.Name, rest.Opportunistic = "rest", true
			for _, j := range []workload.Job{gang, elastic, half, rest} {
				id := h.submit(j)
				if j := h.wait(id, "over", over); j.Phase != plan.Finished {
					t.Errorf("job %d is %s, %s", id, j.Phase, j.Reason.Code)
				}
			}
		})
	}
}

// TestEveryYes: whatever a driver of this machine says that it can do, a test here does
// with real processes.
func TestEveryYes(t *testing.T) {
	shown := map[strategy.Act]string{strategy.Time: "TestRest", strategy.Share: "TestRegrant TestCeiling TestMPS", strategy.Filler: "TestGuest TestAntManLive",
		strategy.Equal: "TestEqual TestGandiva", strategy.Batch: "TestBatch", strategy.Pipeline: "TestPipelinePlan"}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, a := range []strategy.Ability{run.Slots, run.GPUs, run.WithMPS} {
		for act := range a.Means {
			tests := strings.Fields(shown[act])
			if len(tests) == 0 || slices.ContainsFunc(tests, func(name string) bool { return !strings.Contains(all.String(), "func "+name+"(") }) {
				t.Errorf("%s: no test shows it: %q", act, tests)
			}
		}
	}
}
