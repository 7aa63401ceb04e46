package local_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/trainer"
)

// TestMain lets this binary be the supervisor of the workers it starts, and a worker.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "work" {
		if err := work(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 3 && os.Args[1] == "last" {
		if err := lasting(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "train" {
		os.Exit(trainer.Main(os.Args[2:], os.Getenv, os.Stderr))
	}
	if len(os.Args) > 2 && os.Args[1] == "supervise" {
		os.Exit(supervise.Main(os.Args[2]))
	}
	os.Exit(m.Run())
}

// host is a control plane over real processes.
type host struct {
	t      *testing.T
	state  string
	driver *local.Driver
	plane  *plane.Plane
	stop   func()
}

func start(t *testing.T, state string, strategy string) *host {
	t.Helper()
	return startOn(t, state, strategy, local.Slots{Count: 4, CPU: 500, Memory: 512})
}

func startOn(t *testing.T, state string, strategy string, slots local.Slots) *host {
	t.Helper()
	return startAsking(t, state, strategy, slots, unit.Second)
}

// startAsking starts one that gives workers so long to save.
func startAsking(t *testing.T, state string, strategy string, slots local.Slots, wait unit.Duration) *host {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	now := func() unit.Time { return unit.Time(time.Now().UnixMicro()) }
	journal, err := store.Open(filepath.Join(state, "journal"), store.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	machine, err := local.Detect(slots)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(testWriter{t}, nil))
	driver := local.New(local.Config{State: state, Exe: exe, SlotCPU: machine.SlotCPU, SlotMemory: machine.SlotMemory, GPUs: machine.GPUs, Ability: machine.Ability,
		AllowRoot: true, CheckpointWait: wait, Grace: 2 * unit.Second, SummaryEvery: 200 * unit.Millisecond, Log: log})
	composition, err := catalogue.Resolve(strategy)
	if err != nil {
		t.Fatal(err)
	}
	policy := engine.DefaultPolicy()
	policy.BackOff = 100 * unit.Millisecond
	p, err := plane.Open(plane.Config{Cluster: machine.Cluster, Strategy: composition, Policy: policy, Journal: journal, Driver: driver, Now: now, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	h := &host{t: t, state: state, driver: driver, plane: p}
	h.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := journal.Close(); err != nil {
			t.Error(err)
		}
	}
	return h
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

func (h *host) submit(j workload.Job) plan.JobID {
	h.t.Helper()
	if j.Gang == 0 {
		j.Gang = 1
	}
	if j.Share == 0 {
		j.Share = unit.Whole
	}
	j.Devices = 1
	j.Env = append(j.Env, "PATH="+os.Getenv("PATH"))
	id, err := h.plane.Request(h.t.Context(), engine.Event{Kind: engine.Submit, Spec: &j}, "")
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// inTime is how long these tests wait for what must come, on a machine that may have much else to do. Who
// passes does not wait that long.
const inTime = 3 * time.Minute

// wait waits until the job satisfies a condition.
func (h *host) wait(id plan.JobID, what string, ok func(plan.Job, plan.View) bool) plan.Job {
	h.t.Helper()
	changed, end := h.plane.Watch()
	defer end()
	deadline := time.After(inTime)
	for {
		var j plan.Job
		good := false
		if err := h.plane.Query(h.t.Context(), func(v plan.View) { j = v.Job(id); good = ok(j, v) }); err != nil {
			h.t.Fatal(err)
		}
		if good {
			return j
		}
		select {
		case <-changed:
		case <-deadline:
			_ = h.plane.Query(h.t.Context(), func(v plan.View) {
				for id := range plan.JobID(v.Jobs()) {
					j := v.Job(id)
					h.t.Logf("job %d: %s run %d leaving %d attempt %d reason %s", id, j.Phase, j.Run, j.Leaving, j.Attempt, j.Reason.Code)
				}
				for id := range plan.RunID(v.RunSlots()) {
					h.t.Logf("run %d: %+v", id, v.Run(id))
				}
			})
			h.t.Fatalf("job %d is %s (reason %s): not %s in time", id, j.Phase, j.Reason.Code, what)
		}
	}
}

func over(j plan.Job, _ plan.View) bool { return j.Phase.Over() }

func shell(script string) []string { return []string{"sh", "-c", script} }

func TestJobsRunAndEnd(t *testing.T) {
	state := stateDir(t)
	h := start(t, state, "fifo")
	defer h.stop()
	good := h.submit(workload.Job{Name: "good", Program: workload.Program{Command: shell("echo $RANK of $WORLD_SIZE, unbuffered $PYTHONUNBUFFERED; exit 0")}})
	bad := h.submit(workload.Job{Name: "bad", Program: workload.Program{Command: shell("exit 3")}})
	missing := h.submit(workload.Job{Name: "missing", Program: workload.Program{Command: []string{"/no/such/program"}}})
	gang := h.submit(workload.Job{Name: "gang", Resources: workload.Resources{Gang: 2},
		Program: workload.Program{Command: shell(`touch "$MUSTER_CHECKPOINT_DIR/$RANK"; while [ ! -e "$MUSTER_CHECKPOINT_DIR/$((1-RANK))" ]; do sleep .05; done`)}})
	if j := h.wait(good, "over", over); j.Phase != plan.Finished {
		t.Errorf("a command that ends well leaves its job %s", j.Phase)
	}
	if j := h.wait(bad, "over", over); j.Phase != plan.Failed || plan.FailureClass(j.Reason.A) != plan.UserFailure {
		t.Errorf("a command that fails leaves its job %s, %v", j.Phase, j.Reason)
	}
	if j := h.wait(missing, "over", over); j.Phase != plan.Failed {
		t.Errorf("a command that does not exist leaves its job %s", j.Phase)
	}
	if j := h.wait(gang, "over", over); j.Phase != plan.Finished {
		t.Errorf("a gang that meets leaves its job %s", j.Phase)
	}
	log, err := os.ReadFile(filepath.Join(state, "attempts", "good.1", "0", "log"))
	if err != nil || string(log) != "0 of 1, unbuffered 1\n" {
		t.Errorf("the log is %q, %v", log, err)
	}
}

func TestRetryAfterFailure(t *testing.T) {
	h := start(t, stateDir(t), "fifo")
	defer h.stop()
	id := h.submit(workload.Job{Name: "flaky", Retries: 2, Program: workload.Program{Command: shell(`test -e "$MUSTER_CHECKPOINT_DIR/seen" || { touch "$MUSTER_CHECKPOINT_DIR/seen"; exit 1; }`)}})
	if j := h.wait(id, "over", over); j.Phase != plan.Finished || j.Attempt != 2 {
		t.Errorf("a job that fails once is %s after %d attempts", j.Phase, j.Attempt)
	}
}

func TestCancelStopsTheProcess(t *testing.T) {
	state := stateDir(t)
	h := start(t, state, "fifo")
	defer h.stop()
	id := h.submit(workload.Job{Name: "long", Program: workload.Program{Command: shell("sleep 1000")}})
	h.wait(id, "running", func(j plan.Job, v plan.View) bool { return j.Run != plan.None && v.Run(j.Run).Status == plan.Running })
	if _, err := h.plane.Request(t.Context(), engine.Event{Kind: engine.Cancel, Job: id}, ""); err != nil {
		t.Fatal(err)
	}
	h.wait(id, "gone", func(j plan.Job, v plan.View) bool { return j.Phase == plan.Cancelled && j.Leaving == plan.None })
	m := supervise.Look(filepath.Join(state, "attempts", "long.1", "0"))
	for range 100 { // the record is written just before the supervisor ends
		if !m.Alive {
			break
		}
		time.Sleep(20 * time.Millisecond)
		m = supervise.Look(filepath.Join(state, "attempts", "long.1", "0"))
	}
	if m.Alive || m.Last.Kind != supervise.Ended {
		t.Errorf("the worker is alive=%v, its last record %s", m.Alive, m.Last.Kind)
	}
}

// TestPlaneRestart: the control plane ends and another takes over; a job that ran on
// is found again with the same attempt and ends well.
func TestPlaneRestart(t *testing.T) {
	state := stateDir(t)
	h := start(t, state, "tiresias")
	release := filepath.Join(state, "release")
	id := h.submit(workload.Job{Name: "through", Program: workload.Program{Command: shell("while [ ! -e " + release + " ]; do sleep .05; done")}})
	waiting := h.submit(workload.Job{Name: "queued", Resources: workload.Resources{Gang: 4}, Program: workload.Program{Command: shell("true")}})
	h.wait(id, "running", func(j plan.Job, v plan.View) bool { return j.Run != plan.None && v.Run(j.Run).Status == plan.Running })
	h.stop()
	h = start(t, state, "tiresias")
	defer h.stop()
	if err := os.WriteFile(release, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if j := h.wait(id, "over", over); j.Phase != plan.Finished || j.Attempt != 1 {
		t.Errorf("the job that ran through is %s after %d attempts", j.Phase, j.Attempt)
	}
	if j := h.wait(waiting, "over", over); j.Phase != plan.Finished {
		t.Errorf("the queued job is %s", j.Phase)
	}
}

// TestVerify: what was decided live, through a restart, is decided again from the
// journal without a difference.
func TestVerify(t *testing.T) {
	t.Parallel()
	state := stateDir(t)
	h := start(t, state, "tiresias")
	var ids []plan.JobID
	for i := range 6 {
		ids = append(ids, h.submit(workload.Job{Name: string(rune('a' + i)), Resources: workload.Resources{Gang: int32(1 + i%3)},
			Program: workload.Program{Command: shell("sleep 0.2")}}))
	}
	h.stop()
	h = start(t, state, "tiresias")
	for _, id := range ids {
		h.wait(id, "over", over)
	}
	h.stop()
	journal, err := store.Open(filepath.Join(state, "journal"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	found, err := plane.Verify(journal)
	if err != nil || found.Differs != 0 || found.Commits == 0 {
		t.Errorf("deciding again: %+v, %v", found, err)
	}
}

// stateDir is a directory that workers may still write their last to when the test is
// over: it is removed when they are done.
func stateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "muster-local-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 100 {
			if err = os.RemoveAll(dir); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Error(err)
	})
	return dir
}
