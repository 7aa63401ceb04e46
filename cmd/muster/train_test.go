package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/torchtest"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/run/trainer/progress"
)

// trainingPlane is a control plane of two slots that lets shorter jobs go first.
func trainingPlane(t *testing.T) *controlPlane {
	t.Helper()
	p := newPlane(t, "--strategy", "srtf+declared", "--slots", "2", "--slot-cpu", "1", "--summary-every", "50ms", "--checkpoint-wait", "20s", "--grace", "10s")
	p.start()
	return p
}

// newPlane is a control plane that is yet to be started.
func newPlane(t *testing.T, flags ...string) *controlPlane {
	t.Helper()
	state, err := os.MkdirTemp("", "muster-train-") // sockets have short names
	if err != nil {
		t.Fatal(err)
	}
	p := &controlPlane{t: t, state: state, flags: flags}
	t.Cleanup(func() {
		if p.cmd != nil && p.cmd.Process != nil { // it runs, or did not start
			p.kill()
		}
		endAll(state)
		for range 100 { // supervisors outlive it, and may be writing how their workers ended
			if err = os.RemoveAll(state); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Error(err)
	})
	return p
}

// endAll ends whatever lives on below a state directory: workers outlive a control plane, and would slow the tests that follow.
func endAll(state string) {
	for range 500 {
		found := false
		names, _ := filepath.Glob("/proc/[0-9]*")
		for _, name := range names {
			command, _ := os.ReadFile(filepath.Join(name, "cmdline"))
			environ, _ := os.ReadFile(filepath.Join(name, "environ"))
			if strings.Contains(string(command)+string(environ), state+"/") {
				if pid, err := strconv.Atoi(filepath.Base(name)); err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
					found = true
				}
			}
		}
		if !found {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// muster runs the command line against the control plane.
func (p *controlPlane) muster(args ...string) string {
	p.t.Helper()
	cmd := p.command(args...)
	late := time.AfterFunc(atMost, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("muster %s: %v\n%s%s\n%s\n%s", strings.Join(args, " "), err, out, &problems, p.jobs(), p.logs())
	}
	return string(out)
}

// atMost is how long a command may take: who waits longer waits for a job that is stuck.
const atMost = 8 * time.Minute

// jobs is every job as the control plane shows it, and the end of what it logged.
func (p *controlPlane) jobs() string {
	var b strings.Builder
	all, err := p.client.Jobs(p.t.Context(), client.ListOptions{})
	fmt.Fprintf(&b, "%+v, %v\n", all, err)
	text, err := os.ReadFile(filepath.Join(p.state, "muster.log"))
	fmt.Fprintf(&b, "%s %v", text[max(0, len(text)-20000):], err)
	return b.String()
}

// logs is what all workers printed.
func (p *controlPlane) logs() string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(p.state, "attempts", "*", "*", "log"))
	for _, f := range files {
		data, err := os.ReadFile(f)
		fmt.Fprintf(&b, "%s: %s %v\n", f, data, err)
	}
	return b.String()
}

// show is what muster show --json says of a job.
func (p *controlPlane) show(name string) (j view.Job) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(p.muster("show", name, "--json")), &j); err != nil {
		p.t.Fatal(err)
	}
	return j
}

// until waits for a job to be as it should.
func (p *controlPlane) until(name, what string, ok func(view.Job) bool) view.Job {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		j, err := p.client.Job(p.t.Context(), name)
		if err == nil && ok(j) {
			return j
		}
		if err != nil || j.Over() || time.Now().After(deadline) {
			p.t.Fatalf("%s is %s, %.2f done (%s), not %s; %v\n%s", name, j.Phase, j.Progress, j.Reason, what, err, p.logs())
		}
	}
}

// losses reads what a job reported step by step, in all its attempts together; of a
// step that was made twice, what came last.
func (p *controlPlane) losses(name string, attempts int32) map[int64]float64 {
	p.t.Helper()
	curve := map[int64]float64{}
	for attempt := range attempts {
		maps.Copy(curve, p.lossesOf(name, attempt+1))
	}
	return curve
}

// lossesOf is what it reported in one attempt.
func (p *controlPlane) lossesOf(name string, attempt int32) map[int64]float64 {
	p.t.Helper()
	curve := map[int64]float64{}
	data, err := os.ReadFile(filepath.Join(p.state, "jobs", name, "checkpoints", fmt.Sprintf("progress.%d.0", attempt)))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if r, ok, err := progress.ParseLine(strings.TrimSuffix(line, "\n")); ok && err == nil && r.Kind == progress.Step {
			curve[r.Step] = r.Loss
		}
	}
	return curve
}

// keepProgress is what a command goes behind so that its reports outlive the attempt.
var keepProgress = []string{"sh", "-c", `trap : TERM; "$@"; code=$?; cp "$MUSTER_PROGRESS" "$MUSTER_CHECKPOINT_DIR/progress.$MUSTER_ATTEMPT.$RANK"; exit $code`, "sh"}

// staying is what a command goes behind so that its job runs until nobody wants it any more: it still does when it is looked
// at, however fast the machine is.
func (p *controlPlane) staying(name string) []string {
	return []string{"sh", "-c", `trap : TERM; "$@"; code=$?; while [ -e ` + p.want(name) + ` ]; do sleep 0.1; done; exit $code`, "sh"}
}

// example is the first block of a language in run/trainer/PROTOCOL.md.
func example(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../run/trainer/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```"+language+"\n")
	code, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatalf("PROTOCOL.md has no example in %s", language)
	}
	return code
}

// TestTenLineJobs submits the examples of the protocol's description as they stand, but
// that the shell's stays before its last step until it was seen there, and the other is
// slower: muster show tells how far they are and their loss.
func TestTenLineJobs(t *testing.T) {
	t.Parallel()
	p := trainingPlane(t)
	script := strings.Replace(example(t, "sh"), "sleep 0\n", fmt.Sprintf("while [ $step = 3 ] && [ -e %s ]; do sleep 0.1; done\n", p.want("shell")), 1)
	p.muster("submit", "--name", "shell", "--", "sh", "-c", script)
	python, err := exec.LookPath("/usr/bin/python3")
	if err == nil {
		file := filepath.Join(p.state, "job.py")
		code := strings.Replace(example(t, "python"), "    report(f\"step", "    time.sleep(0.4)\n    report(f\"step", 1)
		if err := os.WriteFile(file, []byte("import time\n"+code), 0o644); err != nil {
			t.Fatal(err)
		}
		p.muster("submit", "--name", "python", "--", python, file)
	}
	p.until("shell", "on its way", func(j view.Job) bool { return j.Progress > 0.3 && j.Progress < 0.7 })
	p.noMore("shell")
	if j := p.show("shell"); j.Phase != "finished" || j.Progress != 1 || j.LastLoss != 0 {
		t.Errorf("the shell job is %s, %.2f done, its loss is %v", j.Phase, j.Progress, j.LastLoss)
	}
	if err != nil {
		t.Skip("there is no /usr/bin/python3 here")
	}
	p.muster("wait", "python")
	if j := p.show("python"); j.Phase != "finished" || j.LastLoss != 0.3333 || j.FirstLoss <= j.LastLoss {
		t.Errorf("the Python job is %s, its loss went from %v to %v", j.Phase, j.FirstLoss, j.LastLoss)
	}
}

// TestPreemptedTraining: a gang that is displaced by a shorter job and resumed learns
// what the same gang learns undisturbed, step by step and to the last bit.
func TestPreemptedTraining(t *testing.T) {
	t.Parallel()
	p := trainingPlane(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	train := func(name, delay string) {
		p.muster(slices.Concat([]string{"submit", "--name", name, "--workers", "2", "--estimate", "1h", "--checkpoint-on-request",
			"--env", "MUSTER_TEST_AS_MUSTER=1", "--"}, keepProgress,
			[]string{exe, "trainer", "--steps", "60", "--checkpoint-every", "0", "--seed", "7", "--dim", "32", "--step-delay", delay})...)
	}
	train("undisturbed", "20ms") // so that its first loss is seen before its last, however fast the machine is
	p.muster("wait", "undisturbed")
	train("displaced", "100ms") // so that it is not at its end before the other has come, however busy the machine is
	p.until("displaced", "on its way", func(j view.Job) bool { return j.Progress > 0.2 })
	p.muster("submit", "--name", "short", "--workers", "2", "--estimate", "1s", "--", "sleep", "0.2")
	p.muster("wait", "short", "displaced")
	a, b := p.show("undisturbed"), p.show("displaced")
	if a.Preemptions != 0 || b.Preemptions != 1 || b.Attempt != 2 || b.Restarts != 0 {
		t.Fatalf("undisturbed was preempted %d times, displaced %d times in %d attempts", a.Preemptions, b.Preemptions, b.Attempt)
	}
	one, two := p.losses("undisturbed", 1), p.losses("displaced", 2)
	again := len(p.losses("displaced", 1))
	if !maps.Equal(one, two) || len(one) != 60 || again == 0 || again >= 60 {
		t.Errorf("%d steps, displaced %d of which %d before it was: the losses differ", len(one), len(two), again)
	}
	if a.LastLoss != b.LastLoss || a.LastLoss == 0 || a.LastLoss >= a.FirstLoss {
		t.Errorf("the loss ends at %v undisturbed, at %v displaced", a.LastLoss, b.LastLoss)
	}
	t.Logf("60 steps, displaced after %d: final loss %v and %v", again, a.LastLoss, b.LastLoss)
}

// TestTorch runs a plain PyTorch script on two workers, and in the long variant takes
// it off its slots in the middle and lets it resume.
func TestTorch(t *testing.T) {
	t.Parallel()
	python := torchtest.Python(t, "torch.nn.parallel")
	script, err := filepath.Abs("../../run/trainer/testdata/ddp.py")
	if err != nil {
		t.Fatal(err)
	}
	p := trainingPlane(t)
	const steps = 120
	train := func(name, delay string) {
		p.muster(slices.Concat([]string{"submit", "--name", name, "--workers", "2", "--estimate", "1h", "--checkpoint-on-request", "--"}, keepProgress,
			[]string{python, script, "--steps", fmt.Sprint(steps), "--step-delay", delay})...)
	}
	began := time.Now()
	train("undisturbed", "0")
	p.muster("wait", "undisturbed")
	a, curve := p.show("undisturbed"), p.losses("undisturbed", 1)
	first, last := 0.0, 0.0 // of ten steps, since each has other data
	for i := range int64(10) {
		first, last = first+curve[1+i]/10, last+curve[steps-i]/10
	}
	if len(curve) != steps || curve[steps] != a.LastLoss || last >= 0.9*first {
		t.Errorf("%d steps were reported, the loss went from %v to %v, shown as %v, reported as %v", len(curve), first, last, a.LastLoss, curve[steps])
	}
	t.Logf("%d steps on 2 workers in %s: loss %.4f to %.4f", steps, time.Since(began).Round(100*time.Millisecond), first, last)
	if os.Getenv("MUSTER_LONG") == "" {
		t.Log("MUSTER_LONG=1 also preempts it")
		return
	}
	train("displaced", "0.05")
	p.until("displaced", "on its way", func(j view.Job) bool { return j.Progress > 0.2 })
	p.muster("submit", "--name", "short", "--workers", "2", "--estimate", "1s", "--", "sleep", "0.2")
	p.muster("wait", "short", "displaced")
	b := p.show("displaced")
	if diff := a.LastLoss - b.LastLoss; b.Preemptions != 1 || diff > 1e-6 || diff < -1e-6 {
		t.Errorf("preempted %d times it ends with loss %v, undisturbed with %v", b.Preemptions, b.LastLoss, a.LastLoss)
	}
	t.Logf("displaced after %d steps: final loss %v", len(p.losses("displaced", 1)), b.LastLoss)
}
