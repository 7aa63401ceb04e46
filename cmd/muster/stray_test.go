package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/local/supervise"
)

// strays is the script of a job that leaves a process in a session of its own behind. All
// that happens is told in one file, in order.
const strays = `log=%s
(setsid sh -c "trap '' TERM HUP; while :; do echo tick $MUSTER_ATTEMPT >>$log; sleep 0.03; done" </dev/null >/dev/null 2>&1 &)
echo start $MUSTER_ATTEMPT >>$log; sleep 0.4; echo end $MUSTER_ATTEMPT >>$log`

// TestStraysDoNotOutliveTheirAttempt kills supervisors, the control plane or both while jobs
// leave processes behind, with control groups and without: nothing of an attempt runs beside
// the next one or after the job, and no job that is recorded as ended comes to its end again.
func TestStraysDoNotOutliveTheirAttempt(t *testing.T) {
	for name, bare := range map[string]bool{"with control groups": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			if bare && os.Getuid() != 0 {
				t.Skip("only root can make a machine without control groups of this one")
			}
			killStrays(t, bare)
		})
	}
}

func killStrays(t *testing.T, bare bool) {
	rounds := 6
	if os.Getenv("MUSTER_LONG") != "" {
		rounds = 150
	}
	state, err := os.MkdirTemp("", "muster-stray-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(state) })
	p := &controlPlane{t: t, state: state, bare: bare}
	p.start()
	t.Cleanup(p.kill)
	chance := rand.New(rand.NewPCG(7, 0))
	again := 0
	for round := range rounds {
		job := fmt.Sprintf("stray-%d", round)
		log := filepath.Join(state, job+".log")
		_, err := p.client.Submit(t.Context(), []workload.Job{{Name: job, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Retries: 5,
			Program: workload.Program{Command: []string{"sh", "-c", fmt.Sprintf(strays, log)}, Env: []string{"PATH=" + os.Getenv("PATH")}}}}, job)
		if err != nil {
			t.Fatal(err)
		}
		supervisor := p.supervisorOf(job, 1)
		time.Sleep(time.Duration(chance.IntN(500)) * time.Millisecond)
		both := round%3 == 2
		if both {
			p.kill()
		}
		_ = syscall.Kill(supervisor, syscall.SIGKILL) // it may have ended
		if both {
			p.start()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		j, err := p.client.Wait(ctx, job)
		cancel()
		if err != nil || j.Phase != "finished" {
			p.dump(job)
			t.Fatalf("%s is %s (%s), %v", job, j.Phase, j.Reason, err)
		}
		if judgeStrays(t, log) > 1 {
			again++
			p.unknownEnd(job, j.Attempt)
		}
	}
	judge(t, state)
	// Between a worker's last word and the record of its end is a moment in which nobody knows.
	t.Logf("%d kills, %d jobs came to their end again, which nobody had seen", rounds, again)
}

// unknownEnd proves of a job that came to its end in several attempts that nobody knew of the
// earlier ends when it was tried again.
func (p *controlPlane) unknownEnd(job string, attempts int32) {
	p.t.Helper()
	for attempt := range attempts - 1 {
		spec := supervise.Spec{State: p.state, Job: job, Attempt: attempt + 1}
		records, _, err := supervise.ReadRecords(spec.MemberDir(), 0)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, r := range records {
			if r.Kind == supervise.Exited && r.Class == supervise.Done {
				p.t.Errorf("%s: attempt %d was known to be done, and it was tried again", job, attempt+1)
			}
		}
	}
}

// judgeStrays reads what a job told, and waits whether it tells more although it is over. It
// returns how often the job came to its end.
func judgeStrays(t *testing.T, log string) (ends int) {
	t.Helper()
	read := func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text := read()
	latest := 0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		var what string
		var attempt int
		if _, err := fmt.Sscan(lines.Text(), &what, &attempt); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		if attempt < latest {
			t.Errorf("%s: %s of attempt %d beside attempt %d", log, what, attempt, latest)
			break
		}
		latest = attempt
		if what == "end" {
			ends++
		}
	}
	time.Sleep(100 * time.Millisecond)
	if more := read(); more != text {
		t.Errorf("%s: something of the job runs on after it: %q", log, more[len(text):])
	}
	return ends
}

// supervisorOf waits until an attempt of a job has started and returns the process that
// supervises its first worker.
func (p *controlPlane) supervisorOf(job string, attempt int32) int {
	p.t.Helper()
	spec := supervise.Spec{State: p.state, Job: job, Attempt: attempt}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		records, _, err := supervise.ReadRecords(spec.MemberDir(), 0)
		if err != nil {
			continue
		}
		for _, r := range records {
			if r.Kind == supervise.Started {
				if parent := parentOf(r.PID); parent > 1 {
					return parent
				}
			}
		}
	}
	p.t.Fatalf("%s did not start", job)
	return 0
}

// withoutGroups makes a command see a machine without control groups.
func withoutGroups(c *exec.Cmd) *exec.Cmd {
	script := `grep -o " /sys/fs/cgroup[^ ]*" /proc/self/mountinfo | tac | xargs -n1 umount -l; ! grep -q " - cgroup" /proc/self/mountinfo && exec "$0" "$@"`
	bare := exec.Command("/bin/sh", append([]string{"-c", script}, c.Args...)...)
	bare.Env, bare.SysProcAttr = c.Env, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return bare
}
