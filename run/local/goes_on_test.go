package local_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/trainer"
	"github.com/musterdl/muster/run/trainer/progress"
)

// sixBlocks are the options of a trainer with eight layers, and those layers as its job tells them.
func sixBlocks(microbatches int) (args []string, layers []workload.Layer) {
	c := trainer.Default()
	c.Layers, c.Dim, c.Seq = 6, 32, 16
	return []string{"--layers", "6", "--dim", "32", "--seq", "16", "--checkpoint-every", "0", "--timings-every", "4"}, trainer.Profile(c, trainer.Speed{Microbatches: microbatches, GFLOPS: 1})
}

// pipelined is a job of that trainer in two stages.
func pipelined(t *testing.T, name string, workers int32, args ...string) workload.Job {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const microbatches = 4
	flags, layers := sixBlocks(microbatches)
	return workload.Job{Name: name, Resources: workload.Resources{Gang: workers}, Estimate: unit.Hour, Retries: 1, Checkpoint: workload.Checkpoint{OnRequest: true},
		Traits:  workload.Traits{Pipeline: workload.Pipeline{Stages: 2, Microbatches: microbatches, Layers: layers}},
		Program: workload.Program{Env: []string{"GOMAXPROCS=1"}, Command: append(append([]string{exe, "train"}, flags...), args...)}}
}

// alone are the losses of the same training in one process, up to a step.
func alone(t *testing.T, last int64) map[int64]float64 {
	t.Helper()
	flags, _ := sixBlocks(1)
	file := filepath.Join(t.TempDir(), "progress")
	c := exec.Command(os.Args[0], append(append([]string{"train"}, flags...), "--steps", strconv.FormatInt(last, 10))...)
	c.Env = append(os.Environ(), "MUSTER_PROGRESS="+file)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return losses(t, file)
}

// pid is the process of a rank.
func (h *host) pid(name string, attempt, rank int32) int {
	h.t.Helper()
	records, _, err := supervise.ReadRecords(h.driver.MemberDir(name, attempt, rank), 0)
	if err != nil || len(records) == 0 {
		h.t.Fatal(records, err)
	}
	return records[0].PID
}

// hinder has a process take six times as long for what it computes, until the returned function is called:
// it stands still for five times as long as it ran, or waited for a core, before. So it is hindered as much
// on a machine that has much else to do.
func hinder(t *testing.T, pid int) (end func()) {
	t.Helper()
	stop := make(chan struct{})
	var done sync.WaitGroup
	pause := func(d time.Duration) (ended bool) {
		select {
		case <-stop:
			return true
		case <-time.After(d):
			return false
		}
	}
	done.Go(func() {
		defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }() // it may have ended
		for from := wanted(pid); !pause(2 * time.Millisecond); {
			ran := wanted(pid) - from
			if ran < 6*time.Millisecond {
				continue
			}
			if syscall.Kill(pid, syscall.SIGSTOP) != nil {
				return // it has ended
			}
			if pause(5*ran) || syscall.Kill(pid, syscall.SIGCONT) != nil {
				return
			}
			from = wanted(pid)
		}
	})
	return func() { close(stop); done.Wait() }
}

// wanted is for how long the threads of a process have run so far, or waited for a core.
func wanted(pid int) (all time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, file := range files {
		var ran, waited time.Duration
		if text, err := os.ReadFile(file); err == nil {
			if n, err := fmt.Sscan(string(text), &ran, &waited); n == 2 && err == nil {
				all += ran + waited
			}
		}
	}
	return all
}

// windows is in how many windows of time a run was seen to do its work, by what its rank 0 wrote down.
func windows(dir string) int64 {
	is, err := progress.ReadTimings(supervise.TimingsPath(dir))
	if err != nil || is.Devices == nil {
		return 0 // not yet, or half written
	}
	return is.Devices.Windows
}

// TestSlowDeviceIsRelieved: the process of one stage is held up by somebody else. The engine hears what
// the stages take and that it is the device, believes no layer to be slow, and gives the run another
// plan with fewer layers there; the same processes go on by it with the losses of one process. When
// nobody holds it up any more its layers come back, and no device is believed to be slow: where others have the
// machine as well, as the tests of other packages, one is.
func TestSlowDeviceIsRelieved(t *testing.T) {
	needAlone(t)
	h := start(t, stateDir(t), "dp-cut+1f1b")
	defer h.stop()
	job := pipelined(t, "pipe", 2, "--steps", "1000000")
	id := h.begin(job)
	defer h.cancel(id)
	told := keep(t, h.driver.MemberDir("pipe", 1, 0))
	goesBy := func(v plan.View) plan.Pipeline { return v.Pipeline(v.Run(v.Job(id).Run).Terms.Plan.ID) }
	h.wait(id, "running", running)
	// How slow a device is counts from what it was seen to do unhindered.
	for end := time.Now().Add(inTime); windows(h.driver.MemberDir("pipe", 1, 0)) < 10; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is told of its devices")
		}
	}
	t.Logf("hindered behind %d steps", len(losses(t, told)))
	end := hinder(t, h.pid("pipe", 1, 0))
	defer func() { end() }()
	var by plan.Pipeline
	var number int32
	h.wait(id, "relieved of a slow device", func(_ plan.Job, v plan.View) bool {
		by, number = goesBy(v), v.Run(v.Job(id).Run).Terms.Plan.ID
		return by.Slow != nil && by.Slow[0] > 2 && by.Cuts[0] < 4
	})
	var way plan.Reaction
	h.wait(id, "told why", func(_ plan.Job, v plan.View) bool { way, _ = v.Reaction(id); return true })
	if way.Cause != plan.Drifted || way.Chosen == reaction.Ride {
		t.Errorf("its reaction is %+v", way)
	}
	// Against what its job says, layers on the slow device take as long as those on the other.
	times := func(layer int) float64 {
		l := job.Pipeline.Layers[layer]
		return float64(by.Layers[layer]) / float64(l.Forward+l.Backward)
	}
	if apart := times(0) / times(7); by.Slow[1] != 1 || apart > by.Slow[0] || apart < 1/by.Slow[0] {
		t.Errorf("devices are believed to be %v times as slow, layers to take %v", by.Slow, by.Layers)
	}
	// It goes by that plan in life, or a later one: its program said so, and makes steps behind that.
	relieved := func(file string) bool {
		var attempt, at int32
		n, err := fmt.Sscanf(file, "plan.%d.%d.json", &attempt, &at)
		return n == 2 && err == nil && at >= number
	}
	taken, last := int64(0), int64(0)
	for end := time.Now().Add(inTime); time.Now().Before(end) && (taken == 0 || last < taken+3); time.Sleep(20 * time.Millisecond) {
		for _, e := range reports(t, told) {
			switch {
			case e.Kind == progress.Planned && e.Why != "":
				t.Fatalf("the plan is refused: %s", e.Why)
			case e.Kind == progress.Planned && taken == 0 && relieved(filepath.Base(e.File)):
				taken = e.Step
			case e.Kind == progress.Step:
				last = e.Step
			}
		}
	}
	if taken == 0 || last < taken+3 {
		t.Fatalf("by step %d it says that it goes by the plan behind step %d", last, taken)
	}
	if j := h.wait(id, "running", running); j.Attempt != 1 {
		t.Errorf("it is in attempt %d", j.Attempt)
	}
	t.Logf("devices are %v times as slow: %d layers there behind step %d", by.Slow, by.Cuts[0], taken)
	want := alone(t, last)
	for step, loss := range losses(t, told) {
		if step <= last && (loss-want[step] > 1e-3*want[step] || want[step]-loss > 1e-3*want[step]) {
			t.Errorf("step %d: loss %g, of one process %g", step, loss, want[step])
		}
	}
	end()
	end = func() {}
	h.wait(id, "as it was before", func(_ plan.Job, v plan.View) bool { return goesBy(v).Slow == nil && goesBy(v).Cuts[0] > by.Cuts[0] })
}

// TestJobOutlivesAWorker: of two pipelines one worker is killed, and nothing was ever saved. The job
// goes on behind the last whole step and ends. TestWhatLivesOnIsKept sees the same of the driver.
func TestJobOutlivesAWorker(t *testing.T) {
	needLong(t)
	h := start(t, stateDir(t), "dp-cut+1f1b")
	defer h.stop()
	id := h.begin(pipelined(t, "pair", 4, "--steps", "60", "--step-delay", "40ms"))
	told := keep(t, h.driver.MemberDir("pair", 1, 0))
	for end := time.Now().Add(inTime); len(losses(t, told)) < 20 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if err := syscall.Kill(h.pid("pair", 1, 2), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.wait(id, "started again", func(j plan.Job, v plan.View) bool { return j.Attempt == 2 && running(j, v) })
	again := keep(t, h.driver.MemberDir("pair", 2, 0))
	if j := h.wait(id, "over", over); j.Phase != plan.Finished || j.Attempt != 2 {
		t.Errorf("it is %s after %d attempts", j.Phase, j.Attempt)
	}
	want, made := alone(t, 60), losses(t, told)
	for step, loss := range losses(t, again) {
		if _, twice := made[step]; twice || loss-want[step] > 1e-3*want[step] || want[step]-loss > 1e-3*want[step] {
			t.Errorf("step %d: loss %g, of one process %g; made before: %v", step, loss, want[step], twice)
		}
		made[step] = loss
	}
	if len(made) < 59 { // the one in which the worker was lost may be told by nobody
		t.Errorf("%d of 60 steps were made", len(made))
	}
}
